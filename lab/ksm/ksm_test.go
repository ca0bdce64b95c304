//go:build linux

package ksm

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/notebook"
)

// files are a kernel's that merges nothing.
var files = map[string]string{
	advisor: "[none] scan-time", smartScan: "1", zeroPages: "1", pages: "100", sleep: "20", run: "0",
	"full_scans": "7", "pages_shared": "0", "pages_sharing": "0",
}

// plant makes a tree with these files, some with other content.
func plant(t *testing.T, others map[string]string) Tree {
	t.Helper()
	_, err := thread()
	require.That(t, err == nil, "a kernel that merges pages (CONFIG_KSM)")
	tree := Tree(t.TempDir())
	if err := os.MkdirAll(tree.path(""), 0o755); err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(files)
	maps.Copy(all, others)
	for name, text := range all {
		tree.put(t, name, text)
	}
	return tree
}

func (t Tree) put(test *testing.T, name, text string) {
	test.Helper()
	if err := os.WriteFile(t.path(name), []byte(text+"\n"), 0o644); err != nil {
		test.Error(err)
	}
}

// says gives what the files that are written say, in the order in which they are written.
func (t Tree) says(test *testing.T) string {
	test.Helper()
	var all []string
	for _, f := range settings[notebook.KSMPaper] {
		b, err := os.ReadFile(t.path(f.name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			test.Fatal(err)
		}
		all = append(all, strings.TrimSpace(string(b)))
	}
	return strings.Join(all, ", ")
}

// play plays the kernel in a tree until it is stopped: a scan in each step, which leaves so many pages merged; further ones leave what the
// last did.
func play(t *testing.T, tree Tree, step time.Duration, scans ...[2]int) (stop func()) {
	t.Helper()
	put := func(done int, merged [2]int) {
		tree.put(t, "full_scans", strconv.Itoa(done))
		tree.put(t, "pages_shared", strconv.Itoa(merged[0]))
		tree.put(t, "pages_sharing", strconv.Itoa(merged[1]))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(pause / 20) // never at the moment at which the files are read
		for done := 0; ctx.Err() == nil; time.Sleep(step) {
			b, err := os.ReadFile(tree.path(run))
			if err != nil {
				t.Error(err)
			}
			switch strings.TrimSpace(string(b)) {
			case merging:
				done++
				put(done, scans[min(done, len(scans))-1])
			case unmergeAll:
				done = 0
				put(0, [2]int{})
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func openJournal(t *testing.T) (j *journal.Journal, state string) {
	t.Helper()
	state = t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	return j, state
}

// What is set is put back, only by the journal where the run was killed.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		others          map[string]string
		setting         string
		merging, before string
	}{
		"paper":            {nil, notebook.KSMPaper, "none, 0, 0, 500, 10, 1", "none, 1, 1, 100, 20, 0"},
		"kernel":           {nil, notebook.KSMKernel, "[none] scan-time, 1, 1, 100, 20, 1", "[none] scan-time, 1, 1, 100, 20, 0"},
		"taken apart once": {map[string]string{run: "2"}, notebook.KSMPaper, "none, 0, 0, 500, 10, 1", "none, 1, 1, 100, 20, 2"},
		// The advisor itself sets how many pages are scanned.
		"an advisor":         {map[string]string{advisor: "none [scan-time]", pages: "700"}, notebook.KSMPaper, "none, 0, 0, 500, 10, 1", "scan-time, 1, 1, 500, 20, 0"},
		"the kernel's own":   {map[string]string{advisor: "none [scan-time]", pages: "700"}, notebook.KSMKernel, "none [scan-time], 1, 1, 700, 20, 1", "none [scan-time], 1, 1, 700, 20, 0"},
		"before Linux 6.7":   {map[string]string{advisor: "", smartScan: "", zeroPages: ""}, notebook.KSMPaper, ", , , 500, 10, 1", ", , , 100, 20, 0"},
		"values of its own":  {map[string]string{pages: "2500", sleep: "0"}, notebook.KSMPaper, "none, 0, 0, 500, 10, 1", "none, 1, 1, 2500, 0, 0"},
		"as the paper's are": {map[string]string{smartScan: "0", pages: "500", sleep: "10"}, notebook.KSMPaper, "none, 0, 0, 500, 10, 1", "none, 0, 1, 500, 10, 0"},
	} {
		for _, killed := range []bool{false, true} {
			tree := plant(t, c.others)
			for file, text := range c.others {
				if text == "" {
					if err := os.Remove(tree.path(file)); err != nil {
						t.Fatal(err)
					}
				}
			}
			j, state := openJournal(t)
			for range 2 { // a study does it at each number of guests
				m, err := tree.merge(j, c.setting)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := tree.says(t); got != c.merging {
					t.Errorf("%s: while pages are merged: %s, want %s", name, got, c.merging)
				}
				if killed {
					break
				}
				if err := m.End(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := j.Close(); killed != (err != nil) {
				t.Errorf("%s: the journal is closed: %v", name, err)
			}
			if _, err := journal.Recover(t.Context(), state, tree.Undo()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := tree.says(t); got != c.before {
				t.Errorf("%s: afterwards: %s, want %s", name, got, c.before)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(Tree)
		setting string
		want    string
	}{
		"another setting": {nil, "on", `"on": must be paper or kernel`},
		"no KSM": {func(tree Tree) { os.RemoveAll(tree.path("")) }, notebook.KSMPaper,
			"this kernel has no KSM (ROOT/run does not exist); boot a kernel with CONFIG_KSM, or remove ksm from the study"},
		"it merges already": {func(tree Tree) { tree.put(t, run, "1") }, notebook.KSMKernel,
			"KSM is already active on this host (ROOT/run says 1, pages_shared 0), so memory without KSM cannot be measured; stop ksmtuned or whatever started it, then: echo 2 >ROOT/run"},
		"pages stay merged": {func(tree Tree) { tree.put(t, "pages_shared", "5") }, notebook.KSMPaper, "(ROOT/run says 0, pages_shared 5)"},
		"no number":         {func(tree Tree) { tree.put(t, "pages_shared", "many") }, notebook.KSMPaper, `ROOT/pages_shared says "many"; must be a number`},
		"a value that is not taken": {func(tree Tree) {
			if err := errors.Join(os.Remove(tree.path(sleep)), os.Symlink(os.DevNull, tree.path(sleep))); err != nil {
				t.Error(err)
			}
		}, notebook.KSMPaper, `ROOT/sleep_millisecs says "" after "10" was written`},
	} {
		tree := plant(t, nil)
		if c.change != nil {
			c.change(tree)
		}
		before := strings.Replace(tree.says(t), "[none] scan-time", "none", 1)
		j, _ := openJournal(t)
		if _, err := tree.merge(j, c.setting); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), filepath.Clean(tree.path("")), "ROOT"), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if got := strings.Replace(tree.says(t), "[none] scan-time", "none", 1); got != before {
			t.Errorf("%s: the files say %s, want %s as before", name, got, before)
		}
		if err := j.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The journal is a file, and what stands in it may be wrong: only settings are written. And where the kernel cannot take pages apart, that
// is said and stays to be done.
func TestWhatIsPutBack(t *testing.T) {
	tree := plant(t, map[string]string{"pages_shared": "3"})
	back := func(ctx context.Context, path string) error {
		return tree.putBack(ctx, journal.Entry{Kind: Kind, Target: path, Detail: map[string]string{detailFrom: "0"}})
	}
	for _, path := range []string{"/etc/passwd", tree.path("full_scans"), tree.path("../ksm/run/../pages_shared")} {
		if err := back(t.Context(), path); err == nil || !strings.Contains(err.Error(), "is not a setting of KSM") {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*pause)
	defer cancel()
	if err := back(ctx, tree.path(run)); err == nil || !strings.Contains(err.Error(), "3 pages are still merged") || !strings.Contains(err.Error(), "; echo 0 >"+tree.path(run)) {
		t.Errorf("pages that stay merged: %v", err)
	}
	if err := os.RemoveAll(tree.path("")); err != nil {
		t.Fatal(err)
	}
	for _, f := range settings[notebook.KSMPaper] {
		if err := back(t.Context(), tree.path(f.name)); err != nil {
			t.Errorf("%s of a kernel without KSM: %v", f.name, err)
		}
	}
}

func TestSettle(t *testing.T) {
	const long, short = 300 * time.Millisecond, 10 * time.Millisecond // a scan
	var growing [][2]int
	for i := range 8 {
		growing = append(growing, [2]int{1, 100 * i})
	}
	restless := make([][2]int, 10000)
	for i := range restless {
		restless[i] = [2]int{10, 100 + 2*(i%2)}
	}
	for name, c := range map[string]struct {
		step  time.Duration
		scans [][2]int
		want  notebook.KSM
		s     [2]float64 // that it takes
	}{
		"at once":          {long, [][2]int{{0, 0}, {5, 995}}, notebook.KSM{Shared: 5, Sharing: 995, Scans: 4}, [2]float64{0.9, 1.1}},
		"nothing":          {long, [][2]int{{0, 0}}, notebook.KSM{Scans: 4}, [2]float64{0.9, 1.1}},
		"little by little": {long, growing, notebook.KSM{Shared: 1, Sharing: 700, Scans: 10}, [2]float64{2.7, 2.9}},
		"less than 1 %":    {long, [][2]int{{0, 0}, {10, 1000}, {10, 1003}, {10, 1006}}, notebook.KSM{Shared: 10, Sharing: 1006, Scans: 4}, [2]float64{0.9, 1.1}},
		// Each by less, and together by more.
		"a drift":     {long, [][2]int{{0, 0}, {10, 1000}, {10, 1009}, {10, 1018}}, notebook.KSM{Shared: 10, Sharing: 1018, Scans: 6}, [2]float64{1.5, 1.7}},
		"short scans": {short, [][2]int{{0, 0}, {2, 3}}, notebook.KSM{Shared: 2, Sharing: 3, Scans: 20}, [2]float64{0.1, 0.3}},
		"never":       {long, restless, notebook.KSM{Shared: 10, Unsettled: true}, [2]float64{60, 60.2}},
		"no scan":     {time.Hour, [][2]int{{0, 0}}, notebook.KSM{Unsettled: true, Scans: 1}, [2]float64{60, 60.2}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := plant(t, map[string]string{advisor: "none [scan-time]", "full_scans": "0"})
			j, _ := openJournal(t)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				stop := play(t, tree, c.step, c.scans...)
				defer stop()
				m, err := tree.merge(j, notebook.KSMKernel)
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.Settle(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if got.SettledS < c.s[0] || got.SettledS > c.s[1] || got.CPUS < 0 {
					t.Errorf("%v s, CPU time %v s; want %v", got.SettledS, got.CPUS, c.s)
				}
				if name == "never" {
					c.want.Sharing, c.want.Scans = got.Sharing, got.Scans // whatever it was just then
				}
				c.want.PagesToScan, c.want.SleepMS, c.want.UseZeroPages, c.want.Advisor, c.want.SettledS, c.want.CPUS = 100, 20, 1, "scan-time", got.SettledS, got.CPUS
				if *got != c.want {
					t.Errorf("%+v, want %+v", *got, c.want)
				}
				stop()
				tree.put(t, "pages_shared", "0")
				if err := m.End(t.Context()); err != nil {
					t.Error(err)
				}
			})
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Neither the end of a run nor a setting by somebody else is a result.
func TestSettleIsDisturbed(t *testing.T) {
	tree := plant(t, nil)
	j, _ := openJournal(t)
	m, err := tree.merge(j, notebook.KSMPaper)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if k, err := m.Settle(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v; want that it was cancelled", k, err)
	}
	tree.put(t, run, "0")
	if k, err := m.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), `/run says "0", Tare wrote 1): stop it`) {
		t.Errorf("%+v, %v; want that somebody else set it", k, err)
	}
	if err := errors.Join(m.End(t.Context()), j.Close()); err != nil {
		t.Error(err)
	}
}
