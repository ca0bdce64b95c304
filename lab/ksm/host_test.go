//go:build linux

package ksm

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/notebook"
)

// TestMain is also the program that holds pages, and the one that has them merged and is killed.
func TestMain(m *testing.M) {
	if seed := os.Getenv("TARE_TEST_PAGES"); seed != "" {
		if err := hold(seed); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if state := os.Getenv("TARE_TEST_MERGE"); state != "" {
		j, err := journal.Open(state)
		if err == nil {
			_, err = Merge(j, notebook.KSMPaper)
		}
		fmt.Println("merging", err)
		io.Copy(io.Discard, os.Stdin) // until it is killed
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// held is how many pages of each sort a holder has. Those that are alike in two holders must not be more than the kernel has one page stand for.
const held = 100

// Sorts of pages: all alike, each another, and all alike but not to be merged.
const (
	alike = iota
	single
	unmarked
	sorts
)

// hold makes the pages, prints where they are, and waits for the end of its input.
func hold(text string) error {
	var seed uint64
	if _, err := fmt.Sscan(text, &seed); err != nil {
		return err
	}
	var all [sorts][]byte
	for sort := range all {
		size := os.Getpagesize()
		b, err := unix.Mmap(-1, 0, held*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		err = unix.Madvise(b, unix.MADV_NOHUGEPAGE)
		for i := range held {
			v := seed
			if sort == single {
				v = rand.Uint64()
			}
			binary.NativeEndian.PutUint64(b[i*size:], v)
		}
		if sort != unmarked {
			err = errors.Join(err, unix.Madvise(b, unix.MADV_MERGEABLE))
		}
		if err != nil {
			return err
		}
		fmt.Printf("%p ", b)
		all[sort] = b
	}
	fmt.Println()
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// holder is such a process.
type holder struct {
	pid int
	at  [sorts]uint64 // addresses
}

func (t Tree) most(test *testing.T) int64 {
	test.Helper()
	n, err := t.number("max_page_sharing")
	if err != nil {
		test.Fatal(err)
	}
	return n
}

// holders starts two that have the same pages.
func holders(t *testing.T) (two [2]holder) {
	t.Helper()
	require.That(t, Host.most(t) >= 2*held, fmt.Sprintf("max_page_sharing of %d", 2*held))
	seed := rand.Uint64()
	for i := range two {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("TARE_TEST_PAGES=%d", seed))
		line := startAndRead(t, cmd)
		h := &two[i]
		h.pid = cmd.Process.Pid
		if _, err := fmt.Sscanf(line, "0x%x 0x%x 0x%x", &h.at[alike], &h.at[single], &h.at[unmarked]); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return two
}

// startAndRead starts a program, which ends with the test, and gives its first line.
func startAndRead(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe() // whose end the program waits for
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// idleHost requires a host that merges nothing and leaves it as it is found, also where the test fails. It gives what the host's files say.
func idleHost(t *testing.T) (says func() string) {
	t.Helper()
	require.NothingMerged(t)
	err := Host.idle()
	require.That(t, err == nil, fmt.Sprintf("a host that could merge pages and does not: %v", err))
	before := map[string]string{}
	says = func() string {
		var all []string
		for _, f := range settings[notebook.KSMPaper] {
			value, err := proc.Setting(Host.path(f.name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
			if _, ok := before[f.name]; !ok {
				before[f.name] = value
			}
			all = append(all, value)
		}
		return strings.Join(all, ", ")
	}
	was := says()
	t.Cleanup(func() {
		n, err := Host.number("pages_shared")
		if is := says(); is != was || err != nil || n > 0 {
			t.Errorf("the host's settings are %s and %d pages are merged, %v; they were %s, and none: putting them back", is, n, err, was)
			err = proc.Set(Host.path(run), unmergeAll)
			if before[advisor] != "" { // which may refuse the others
				err = errors.Join(err, proc.Set(Host.path(advisor), "none"))
			}
			for _, f := range slices.Backward(settings[notebook.KSMPaper]) {
				if value := before[f.name]; value != "" {
					err = errors.Join(err, proc.Set(Host.path(f.name), value))
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	return says
}

// frames returns the frames of a sort of a holder's pages, which must all be of this kind, and how often each was found among these
// pages.
func frames(t *testing.T, s *memory.Snapshot, h holder, sort int, kind memory.Kind, found map[uint64]int) {
	t.Helper()
	n := 0
	for i := range s.Pages {
		p := &s.Pages[i]
		a := s.Address(p)
		if s.Processes[s.Region(p).Process].PID != h.pid || a < h.at[sort] || a >= h.at[sort]+held*uint64(memory.PageSize) {
			continue
		}
		n++
		found[p.Frame]++
		if p.Kind() != kind {
			t.Errorf("sort %d: the page at %#x is %v, want %v", sort, a, p.Kind(), kind)
			return
		}
	}
	if n != held {
		t.Errorf("sort %d: %d pages of process %d, want %d", sort, n, h.pid, held)
	}
}

// merged reports whether the holders' mergeable identical pages are one, and all others are separate.
func merged(t *testing.T, two [2]holder, are bool) {
	t.Helper()
	s, err := memory.Scan(t.Context(), []int{two[0].pid, two[1].pid}, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for sort := range sorts {
		kind, want := memory.Anonymous, 2*held
		if are && sort == alike {
			kind, want = memory.Merged, 1
		}
		found := map[uint64]int{}
		for _, h := range two {
			frames(t, s, h, sort, kind, found)
		}
		if len(found) != want {
			t.Errorf("merged %v, sort %d: %d frames, want %d", are, sort, len(found), want)
		}
	}
}

// patience bounds every wait for something outside.
const patience = time.Minute

// Pages that are alike and may be merged are one page, to the frame, and apart again at the end; the host's settings are what they were. Again and
// again, as a study does it.
func TestPagesAreMergedAndTakenApart(t *testing.T) {
	says := idleHost(t)
	before := says()
	two := holders(t)
	j, _ := openJournal(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	merged(t, two, false)
	for _, setting := range []string{notebook.KSMPaper, notebook.KSMKernel, notebook.KSMPaper} {
		m, err := Merge(j, setting)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Merge(j, setting); err == nil || !strings.Contains(err.Error(), "KSM is already active") {
			t.Errorf("a second one at once: %v", err)
		}
		k, err := m.Settle(ctx)
		if err != nil {
			t.Fatal(err, m.End(ctx))
		}
		merged(t, two, true)
		t.Logf("%s: %+v", setting, *k)
		// Others on the host may have such pages too.
		if k.Unsettled || k.Shared < 1 || k.Sharing < 2*held-1 || k.Scans < firstScans+stillScans || k.SettledS <= 0 || k.CPUS < 0 || k.CPUS > k.SettledS+0.02 {
			t.Errorf("%s: %+v; want %d pages saved", setting, *k, 2*held-1)
		}
		if setting == notebook.KSMPaper && (k.PagesToScan != 500 || k.SleepMS != 10 || k.Advisor != "") {
			t.Errorf("%s: %+v", setting, *k)
		}
		if err := m.End(ctx); err != nil {
			t.Fatal(err)
		}
		merged(t, two, false)
		if n, err := Host.number("pages_shared"); err != nil || n != 0 {
			t.Errorf("%s: %d pages are merged at the end, %v", setting, n, err)
		}
		if after := says(); after != before {
			t.Errorf("%s: settings %s, want %s", setting, after, before)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// Where nobody has pages that may be merged, that is found out at once: the kernel would not scan.
func TestNothingToMerge(t *testing.T) {
	idleHost(t)
	j, _ := openJournal(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := Merge(j, notebook.KSMPaper)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Settle(ctx)
	if err := errors.Join(err, m.End(ctx), j.Close()); err != nil {
		t.Fatal(err)
	}
	if k.Unsettled || k.Scans < firstScans+stillScans {
		t.Errorf("%+v", *k)
	}
}

// While an advisor is on, nobody else can set how much is scanned. The advisor is off during the test, and on again afterwards.
func TestAnAdvisorIsOffMeanwhile(t *testing.T) {
	says := idleHost(t)
	is, err := proc.Setting(Host.path(advisor))
	require.That(t, err == nil, "a kernel with advisors of KSM (Linux 6.8)")
	was, err := proc.Setting(Host.path(pages))
	if err != nil {
		t.Fatal(err)
	}
	const on = "scan-time"
	t.Cleanup(func() {
		if err := proc.Set(Host.path(advisor), is); err != nil {
			t.Error(err)
		}
		if is == "none" {
			if err := proc.Set(Host.path(pages), was); err != nil {
				t.Error(err)
			}
		}
	})
	if err := proc.Set(Host.path(advisor), on); err != nil {
		t.Fatal(err)
	}
	before := says()
	j, _ := openJournal(t)
	m, err := Merge(j, notebook.KSMPaper)
	if err != nil {
		t.Fatal(err)
	}
	if got := says(); got != "none, 0, 0, 500, 10, 1" {
		t.Errorf("while pages are merged: %s", got)
	}
	if err := errors.Join(m.End(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	if after := says(); after != before {
		t.Errorf("afterwards: %s, want %s", after, before)
	}
}

// A process that merges pages is killed: the journal splits them and restores the settings.
func TestKilledWhileItMerges(t *testing.T) {
	says := idleHost(t)
	before := says()
	two := holders(t)
	state := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "TARE_TEST_MERGE="+state)
	if line := startAndRead(t, cmd); line != "merging <nil>\n" {
		t.Fatal(line)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // the kernel tells nobody
		n, err := Host.number("pages_sharing")
		if err != nil {
			t.Fatal(err)
		}
		if n >= held {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pages are merged after %v", n, patience)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if got := says(); got == before || !strings.HasSuffix(got, ", 500, 10, 1") {
		t.Errorf("after kill -9 the settings are %s: were they changed at all?", got)
	}
	undone, err := journal.Recover(t.Context(), state, Host.Undo())
	if err != nil || len(undone) < 3 {
		t.Errorf("undone: %v, %v", undone, err)
	}
	if after := says(); after != before {
		t.Errorf("settings %s, want %s", after, before)
	}
	merged(t, two, false)
	if n, err := Host.number("pages_shared"); err != nil || n != 0 {
		t.Errorf("%d pages are still merged, %v", n, err)
	}
}
