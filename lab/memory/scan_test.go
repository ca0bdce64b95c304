//go:build linux

package memory

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/proc"
	"tare/notebook"
)

// patience bounds every wait for something outside.
const patience = 30 * time.Second

// program is testdata/pages.c, compiled.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tare-memory-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "pages")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// child is a process with known pages.
type child struct {
	t   testing.TB
	pid int
	in  io.Writer
	out *bufio.Reader
}

func start(t testing.TB) *child {
	t.Helper()
	require.Root(t)
	require.Program(t, "cc")
	if _, err := os.Stat(program); err != nil {
		// Static, so that its pages are its own, not those of libraries that others map and unmap.
		if said, err := exec.CommandContext(t.Context(), "cc", "-O1", "-static", "-Wall", "-Werror", "-o", program, "testdata/pages.c").CombinedOutput(); err != nil {
			t.Fatalf("cc: %v: %s", err, said)
		}
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
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
	c := &child{t, cmd.Process.Pid, in, bufio.NewReader(out)}
	c.ask("drop 0 0") // it has answered: it runs
	return c
}

// ask has the child do something, and gives its answer.
func (c *child) ask(format string, args ...any) uint64 {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// file makes a file of n pages on a disk; page i is filled with the number seed + i.
func file(t testing.TB, n int, seed uint64) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tare-memory-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := make([]byte, n*int(PageSize))
	for i := 0; i < len(b); i += 8 {
		binary.NativeEndian.PutUint64(b[i:], seed+uint64(i)/uint64(PageSize))
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustScan(t testing.TB, o Options, pids ...int) *Snapshot {
	t.Helper()
	s, err := Scan(t.Context(), pids, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// at gives the pages that a process has in a range, by their addresses.
func at(s *Snapshot, pid int, start uint64, n int) map[uint64]*Page {
	found := map[uint64]*Page{}
	for i := range s.Pages {
		p := &s.Pages[i]
		a := s.Address(p)
		if s.Processes[s.Region(p).Process].PID == pid && a >= start && a < start+uint64(n)*uint64(PageSize) {
			found[a] = p
		}
	}
	return found
}

// want says which kind and size n pages from start on have; of what is not there none.
func want(t *testing.T, s *Snapshot, pid int, what string, start uint64, n int, kind Kind, size Size, count uint32) {
	t.Helper()
	got := at(s, pid, start, n)
	if len(got) != n {
		t.Errorf("%s: %d pages, want %d", what, len(got), n)
	}
	for a, p := range got {
		if p.Kind() != kind || p.Size() != size || p.Count != count {
			t.Errorf("%s: page at %#x is %v of size %v, mapped %d times, flags %#x; want %v, %v, %d", what, a, p.Kind(), p.Size(), p.Count, p.Flags(), kind, size, count)
			return
		}
	}
}

func TestKinds(t *testing.T) {
	c := start(t)
	path := file(t, 40, 1)
	anon := c.ask("anon 50 1000 1")
	shared := c.ask("shared 30 2000 1")
	mapped := c.ask("file %s 40", path)
	copied := c.ask("copy %s 20", path)
	zero := c.ask("zero 10")
	huge := c.ask("huge 3000 1")
	split := c.ask("huge 4000 1")
	dropped := c.ask("anon 25 5000 1")
	c.ask("drop %d 15", dropped)
	c.ask("drop %d 1", split+100*uint64(PageSize)) // splits its mapping, not the page itself
	for _, holes := range []bool{true, false} {
		s, err := scan(t.Context(), []int{c.pid}, Options{Contents: true}, holes, holes)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		whole := Huge
		if !holes {
			whole = Large // without PAGEMAP_SCAN it is not known how it is mapped
		}
		want(t, s, c.pid, "anonymous", anon, 50, Anonymous, Small, 1)
		want(t, s, c.pid, "shared", shared, 30, Shared, Small, 1)
		want(t, s, c.pid, "copied", copied, 20, Anonymous, Small, 1)
		want(t, s, c.pid, "zero", zero, 10, Zero, Small, 0)
		want(t, s, c.pid, "huge", huge, 512, Anonymous, whole, 1)
		want(t, s, c.pid, "split", split, 100, Anonymous, Large, 1)
		want(t, s, c.pid, "split", split+101*uint64(PageSize), 411, Anonymous, Large, 1)
		want(t, s, c.pid, "kept", dropped+15*uint64(PageSize), 10, Anonymous, Small, 1)
		for what, p := range map[string]map[uint64]*Page{"dropped": at(s, c.pid, dropped, 15), "hole": at(s, c.pid, split+100*uint64(PageSize), 1)} {
			if len(p) != 0 {
				t.Errorf("%s: %d pages, want none", what, len(p))
			}
		}
		for a, p := range at(s, c.pid, mapped, 40) {
			if r := s.Region(p); p.Kind() != File || r.Path != path {
				t.Errorf("page at %#x is %v of %q, want one of the file %s", a, p.Kind(), r.Path, path)
			}
		}
		sameAsNaive(t, s, c.pid)
		sameAsRollup(t, c.pid)
	}
}

// sameAsNaive compares each page with what the kernel says of it when it is asked page by page. Where the host is short of memory meanwhile, the
// kernel splits a large page that is mapped in part: a difference is one only if it stays.
func sameAsNaive(t *testing.T, s *Snapshot, pid int) {
	t.Helper()
	var differ []string
	for range 10 {
		if differ = naively(t, s, pid); len(differ) == 0 {
			return
		}
		s = mustScan(t, Options{}, pid)
	}
	t.Errorf("process %d: %s", pid, strings.Join(differ, "; "))
}

// naively says in which pages a snapshot is not as the kernel has them.
func naively(t *testing.T, s *Snapshot, pid int) (differ []string) {
	t.Helper()
	value := func(name string, i uint64) uint64 {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var b [8]byte
		if _, err := f.ReadAt(b[:], int64(i)*8); err != nil {
			t.Fatal(err)
		}
		return binary.NativeEndian.Uint64(b[:])
	}
	maps, err := proc.Maps(pid)
	if err != nil {
		t.Fatal(err)
	}
	got, n := at(s, pid, 0, 1<<51), 0
	for _, m := range maps {
		for a := m.Start; a < m.End && a < 1<<63; a += uint64(PageSize) {
			e := value(fmt.Sprintf("/proc/%d/pagemap", pid), a/uint64(PageSize))
			if e>>63 == 0 {
				continue
			}
			n++
			p := got[a]
			if p == nil {
				differ = append(differ, fmt.Sprintf("the page at %#x is missing", a))
				continue
			}
			frame := e & (1<<55 - 1)
			flags, count := uint32(value("/proc/kpageflags", frame)), value("/proc/kpagecount", frame)
			const still = kpfAnon | kpfSwapBacked | kpfCompoundHead | kpfCompoundTail | kpfHuge | kpfKSM | kpfZeroPage // others change by themselves
			if p.Frame != frame || p.Count != uint32(count) && p.Kind() != Kernel ||                                   // which all processes have
				(p.Flags()^flags)&still != 0 {
				differ = append(differ, fmt.Sprintf("page at %#x: frame %#x, flags %#x, mapped %d times; the kernel says %#x, %#x, %d", a, p.Frame, p.Flags(), p.Count, frame, flags, count))
			}
		}
	}
	if n != len(got) {
		differ = append(differ, fmt.Sprintf("%d pages, want %d", len(got), n))
	}
	return differ
}

// sameAsRollup compares the sums with smaps_rollup, to the page. What others map as well, [vdso] at least, they come and go with: a
// difference is one only if it stays.
func sameAsRollup(t *testing.T, pid int) {
	t.Helper()
	var got, want notebook.MemoryWeight
	for range 10 {
		s := mustScan(t, Options{}, pid)
		r, err := proc.RollupOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		got = s.weigh()[0]
		// The kernel prints whole kB, and so cuts its PSS off.
		if want = (notebook.MemoryWeight{RSS: r.RSS, PSS: r.PSS + got.PSS%1024, USS: r.USS, Swap: r.Swap}); got == want {
			return
		}
	}
	t.Errorf("process %d: %+v, the kernel says %+v", pid, got, want)
}

// Whatever a parent and k-1 children share is mapped k times, and what one wrote since is its own.
func TestForkAndCopyOnWrite(t *testing.T) {
	c := start(t)
	pages := c.ask("anon 64 100 1")
	shared := c.ask("shared 16 900 1")
	pids := []int{c.pid}
	for range 3 {
		pids = append(pids, int(c.ask("fork")))
	}
	c.ask("write %d 8 5000 1", pages)
	s := mustScan(t, Options{Contents: true}, pids...)
	rest := pages + 8*uint64(PageSize)
	want(t, s, c.pid, "written", pages, 8, Anonymous, Small, 1)
	frames := map[uint64]int{}
	for _, pid := range pids {
		want(t, s, pid, "not written", rest, 56, Anonymous, Small, 4)
		want(t, s, pid, "shared", shared, 16, Shared, Small, 4)
		for _, p := range at(s, pid, rest, 56) {
			frames[p.Frame]++
		}
		sameAsRollup(t, pid)
	}
	for _, pid := range pids[1:] {
		want(t, s, pid, "the parent wrote", pages, 8, Anonymous, Small, 3)
	}
	if len(frames) != 56 {
		t.Errorf("%d frames are shared, want 56", len(frames))
	}
	// Read once for all, and so the same content by construction.
	for a, p := range at(s, pids[3], rest, 56) {
		if q := at(s, c.pid, a, 1)[a]; p.Frame != q.Frame || p.hash != q.hash || p.hash == 0 {
			t.Errorf("page at %#x: frames %#x and %#x, hashes %x and %x", a, p.Frame, q.Frame, p.hash, q.hash)
		}
	}
}

// Contents that are equal have one hash, and those that change during the scan are taken for nothing.
func TestContents(t *testing.T) {
	c, other := start(t), start(t)
	path := file(t, 5, 77)
	equal := c.ask("anon 20 77 0")
	apart := c.ask("anon 300 1000000 1")
	mapped := c.ask("file %s 5", path)
	elsewhere := other.ask("anon 7 77 0")
	s := mustScan(t, Options{Contents: true}, c.pid, other.pid)
	hashes := map[uint64]int{}
	for _, pages := range []map[uint64]*Page{at(s, c.pid, equal, 20), at(s, other.pid, elsewhere, 7), at(s, c.pid, mapped, 1)} {
		for _, p := range pages {
			hashes[p.hash]++
		}
	}
	if len(hashes) != 1 || hashes[0] != 0 {
		t.Errorf("equal pages have the hashes %v", hashes)
	}
	for _, p := range at(s, c.pid, apart, 300) {
		hashes[p.hash]++
	}
	if len(hashes) != 301 {
		t.Errorf("%d contents, want 301", len(hashes))
	}

	dirty := c.ask("anon 600 77 0")
	c.ask("dirty %d 600", dirty)
	s = mustScan(t, Options{Contents: true}, c.pid, other.pid)
	for _, p := range at(s, c.pid, equal, 20) {
		hashes[p.hash]++
	}
	same := at(s, c.pid, equal, 1)[equal].hash
	for a, p := range at(s, c.pid, dirty, 600) {
		if p.hash == same {
			t.Errorf("the page at %#x, which changes all the time, counts as one that does not", a)
		}
	}
	if n := len(at(s, c.pid, dirty, 600)); n != 600 {
		t.Errorf("%d pages that change, want 600", n)
	}
}

// Pages that differ in one byte are unlike each other, wherever the byte is.
func TestOneByteDiffers(t *testing.T) {
	size := int(PageSize)
	places := []int{0, pieceAt - 1, pieceAt, pieceAt + pieceBytes - 1, pieceAt + pieceBytes, size - 1}
	contents := bytes.Repeat([]byte{7}, (len(places)+3)*size) // a page for each place, two that are alike and one of zeros
	for i, at := range places {
		contents[i*size+at] = 8
	}
	clear(contents[(len(places)+2)*size:])
	path := filepath.Join(t.TempDir(), "pages")
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	n := len(places) + 3
	c := start(t)
	mapped, copied := c.ask("file %s %d", path, n), c.ask("copy %s %d", path, n)
	for _, frames := range []bool{true, false} {
		s, err := scan(t.Context(), []int{c.pid}, Options{Contents: true}, true, frames)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		hashes := map[uint64]int{}
		for _, pages := range []map[uint64]*Page{at(s, c.pid, mapped, n), at(s, c.pid, copied, n)} {
			if len(pages) != n {
				t.Fatalf("%d pages, want %d", len(pages), n)
			}
			for _, p := range pages {
				hashes[p.hash]++
			}
		}
		if len(hashes) != n-1 || hashes[0] != 0 {
			t.Errorf("%d contents, want %d; pages of each: %v", len(hashes), n-1, hashes)
		}
		if zero := contentHash(s.seed, make([]byte, size)); hashes[zero] != 2 {
			t.Errorf("%d pages of zeros, want 2", hashes[zero])
		}
	}
}

// The program in the kernel reads the same pieces as the pages contain, and none of a frame without memory.
func TestPiecesOfFrames(t *testing.T) {
	r, err := openFrames(3, 1)
	require.That(t, err == nil, fmt.Sprintf("a program that reads frames (%v)", err))
	defer r.Close()
	c := start(t)
	const n = 300
	address := c.ask("anon %d 1 1", n)
	s := mustScan(t, Options{}, c.pid)
	pages := at(s, c.pid, address, n)
	whole := reader{seed: 3}
	byAddress, _ := whole.hash(c.pid, n, true, func(i int) uint64 { return address + uint64(i)*uint64(PageSize) })
	byFrame, err := (&reader{seed: 3, frames: r}).pieces(c.pid, n, nil, func(i int) uint64 { return pages[address+uint64(i)*uint64(PageSize)].Frame })
	if err != nil || !slices.Equal(byFrame, byAddress) {
		t.Errorf("pieces by frame are not those by address: %v\n%x\n%x", err, byFrame, byAddress)
	}
	none := []uint64{1 << 40}
	if err := r.hash(0, none); err != nil || none[0] != 0 {
		t.Errorf("of a frame that is none: %x, %v", none[0], err)
	}
}

// A page of zeros that is the only one is known as one.
func TestOneOfZeros(t *testing.T) {
	c := start(t)
	address := c.ask("anon 1 0 0")
	s := mustScan(t, Options{Contents: true}, c.pid)
	if p := at(s, c.pid, address, 1)[address]; p == nil || p.hash != contentHash(s.seed, make([]byte, PageSize)) {
		t.Errorf("%+v is not known to be of zeros", p)
	}
}

// A page that has changed at the second look counts as changed, and is not a duplicate.
func TestChangedIsCounted(t *testing.T) {
	c := start(t)
	pages := c.ask("anon 40 5 0")
	s := mustScan(t, Options{Contents: true}, c.pid)
	before := s.Changed
	c.ask("write %d 10 1000 1", pages)
	c.ask("drop %d 5", pages+10*uint64(PageSize))
	again := &scanner{Snapshot: s}
	all, free, err := again.possibleDuplicates(none)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	if err := again.verify(all); err != nil {
		t.Fatal(err)
	}
	if got := s.Changed - before; got != 15 {
		t.Errorf("%d pages changed, want 15", got)
	}
	known := 0
	for _, p := range at(s, c.pid, pages, 40) {
		if _, ok := p.Hash(); ok {
			known++
		}
	}
	if known != 25 {
		t.Errorf("%d contents are known, want 25", known)
	}
}

// A page that cannot be read is the process's all the same, is said to be one, and is like no other; those around it are read.
func TestUnreadable(t *testing.T) {
	c := start(t)
	pages := c.ask("anon 200 5 0")
	before := mustScan(t, Options{Contents: true}, c.pid).Unread
	c.ask("forbid %d 1", pages+7*uint64(PageSize))
	c.ask("forbid %d 70", pages+100*uint64(PageSize)) // more than are read together
	s := mustScan(t, Options{Contents: true}, c.pid)
	if got := s.Unread - before; got != 71 {
		t.Errorf("%d pages cannot be read, want 71", got)
	}
	want(t, s, c.pid, "all", pages, 200, Anonymous, Small, 1)
	for a, p := range at(s, c.pid, pages, 200) {
		i := (a - pages) / uint64(PageSize)
		if _, known := p.Hash(); known == (i == 7 || i >= 100 && i < 170) {
			t.Errorf("page %d: its content is known: %v", i, known)
		}
	}
	if d := s.Account([]Guest{{Name: "a", PIDs: []int{c.pid}}})[0].Duplicates; d.Within.AnonAnon < 128*PageSize || d.Within.AnonAnon > 150*PageSize {
		t.Errorf("%d pages are alike, want 128 and few more", d.Within.AnonAnon/PageSize)
	}
	sameAsRollup(t, c.pid)
}

func TestAProcessThatEnds(t *testing.T) {
	c, other := start(t), start(t)
	pid := int(c.ask("fork"))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Not waited for by its parent, it stays in /proc without any memory.
	for end := time.Now().Add(patience); ; {
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
		time.Sleep(time.Millisecond)
	}
	const none = 1 << 22 // above the largest pid
	s := mustScan(t, Options{}, pid, none, other.pid, 2)
	if s.Processes[2].Err != nil || len(s.Pages) == 0 {
		t.Errorf("the process that lives on: %v, %d pages", s.Processes[2].Err, len(s.Pages))
	}
	if err := s.Processes[1].Err; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pid that there is not: %v", err)
	}
	if err := s.Processes[3].Err; err != nil {
		t.Errorf("the kernel's own thread: %v", err)
	}
	for i := range s.Pages {
		if s.Region(&s.Pages[i]).Process != 2 {
			t.Fatal("pages of a process that has none")
		}
	}
	// One that ends between the listing of its pages and the end of the scan has none either.
	sc := &scanner{Snapshot: mustScan(t, Options{}, other.pid)}
	sc.Processes[0].start++ // the pid is another process's
	sc.dropEnded([]*process{{pid: other.pid}})
	if len(sc.Pages) != 0 || !errors.Is(sc.Processes[0].Err, fs.ErrNotExist) {
		t.Errorf("%d pages of a process that ended, error %v", len(sc.Pages), sc.Processes[0].Err)
	}
}

// Beyond the bound pages lie in a file, and all that is found is the same.
func TestMemoryIsBounded(t *testing.T) {
	c, other := start(t), start(t)
	c.ask("anon 40000 1 1")
	pages := c.ask("anon 3000 7 0")
	other.ask("anon 500 7 0")
	guests := []Guest{{Name: "a", PIDs: []int{c.pid}}, {Name: "b", PIDs: []int{other.pid}}}
	const most = 1 << 20
	var all [2][]notebook.MemoryGuest
	for i, o := range []Options{{Contents: true}, {Contents: true, Most: most}} {
		s := mustScan(t, o, c.pid, other.pid)
		if spilled := s.Spilled > 0; spilled != (o.Most > 0) || s.store.inside > s.store.most {
			t.Errorf("%d pages in at most %d bytes: %d spilled, %d not", len(s.Pages), s.store.most, s.Spilled, s.store.inside)
		}
		if perPage := (s.store.inside + s.Spilled - spillStep) / int64(len(s.Pages)); o.Most > 0 && perPage > 40 {
			t.Errorf("a page takes %d bytes", perPage)
		}
		want(t, s, c.pid, "alike", pages, 3000, Anonymous, Small, 1)
		all[i] = s.Account(guests)
	}
	for i, a := range all[0][:2] {
		if b := all[1][i]; a.Own != b.Own || !reflect.DeepEqual(a.Duplicates, b.Duplicates) || a.Duplicates == nil {
			t.Errorf("in memory %+v, duplicates %+v; in a file %+v, %+v", a, a.Duplicates, b, b.Duplicates)
		}
	}
	if d := all[0][0].Duplicates; d.Within.AnonAnon < 2999*PageSize {
		t.Errorf("duplicates %+v", d)
	}
}

// Where pages cannot lie in a file either, it is said.
func TestNoFileForPages(t *testing.T) {
	if _, err := spillFile([]string{"/dev/shm", "/no-such-folder"}); err == nil || !strings.Contains(err.Error(), "/dev/shm is in memory itself") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in memory: %v", err)
	}
	var full *Full
	if _, err := newStore(1000); !errors.As(err, &full) || !strings.Contains(err.Error(), "raise --max-memory") {
		t.Errorf("1000 bytes: %v", err)
	}
}

// Without the right to see frames the kernel gives zeros, which are not taken for a frame.
func TestFramesAreWithheld(t *testing.T) {
	if os.Getenv("TARE_TEST_WITHHELD") != "" { // as nobody
		_, err := Scan(t.Context(), []int{os.Getpid()}, Options{})
		var withheld *Withheld
		if !errors.As(err, &withheld) || !errors.As(shown(), &withheld) {
			t.Errorf("Scan = %v, frames = %v", err, shown())
		}
		return
	}
	require.Root(t)
	require.Program(t, "setpriv")
	dir, err := os.MkdirTemp("/var/tmp", "tare-memory-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/test", self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", dir+"/test", "-test.run", "^TestFramesAreWithheld$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TARE_TEST_WITHHELD=yes", "TMPDIR="+os.TempDir())
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
