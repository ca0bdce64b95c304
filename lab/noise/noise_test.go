//go:build linux

package noise

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/golden"
	"tare/lab/host"
	"tare/lab/journal"
	"tare/notebook"
)

// server is what a server's kernel says, in some of its files.
var server = map[string]string{
	"/sys/devices/system/cpu/online":                        "0-3",
	"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
	"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave",
	"/sys/devices/system/cpu/intel_pstate/no_turbo":         "0",
	"/sys/devices/system/cpu/smt/control":                   "on",
	"/proc/irq/7/smp_affinity_list":                         "0-3",
	"/proc/irq/9/smp_affinity_list":                         "0",
	"/proc/sys/kernel/randomize_va_space":                   "2",
	"/proc/sys/kernel/numa_balancing":                       "1",
	"/proc/sys/vm/swappiness":                               "60",
	"/proc/swaps":                                           "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
	"/sys/kernel/mm/transparent_hugepage/enabled":           "always [madvise] never",
	"/sys/kernel/mm/ksm/run":                                "0",
	"/proc/irq/default_smp_affinity":                        "f",
	"/sys/devices/system/cpu/cpu0/cpuidle/state1/disable":   "0",
}

// plant makes a tree of these files. A file whose content is "folder" is a folder, which refuses to be written to as some files do.
func plant(t *testing.T, files map[string]string) Tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Tree(root)
}

func (t Tree) says(test *testing.T, name string) string {
	test.Helper()
	b, err := os.ReadFile(filepath.Join(string(t), name))
	if err != nil {
		test.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestFindTriesEachFile(t *testing.T) {
	tree := plant(t, server)
	if err := os.Mkdir(filepath.Join(string(tree), "proc/sys/kernel/soft_watchdog"), 0o755); err != nil { // it can be read as little as written
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range tree.Find() {
		found[f.Name] = strings.ReplaceAll(f.Why+strings.Join(notebook.Said(f.Files), "; "), string(tree), "")
		if (f.Why == "") != (len(f.Files) > 0) {
			t.Errorf("%s: %d files, and %q", f.Name, len(f.Files), f.Why)
		}
	}
	for name, want := range map[string]string{
		"frequency governor":     "frequency governor: powersave → performance (2 files)",
		"turbo":                  "turbo: 0 → 1",
		"deep idle states":       "there is no /sys/devices/system/cpu/cpu*/cpuidle/state[2-9]/disable",
		SMT:                      "SMT siblings: on → off",
		"IRQ affinity":           "IRQ affinity: 0-3 → 0",
		"timer slack":            "there is no /proc/self/timerslack_ns",
		"address randomisation":  "address randomisation: 2 → 0",
		"transparent huge pages": "transparent huge pages: madvise → never",
		"swap":                   "swap: 60 → 0",
		"memory compaction":      "there is no /proc/sys/vm/compaction_proactiveness",
		"page merging (KSM)":     `quiet already: /sys/kernel/mm/ksm/run says "0"`,
		"watchdogs":              "the kernel refuses it: read /proc/sys/kernel/soft_watchdog: is a directory",
		"NUMA balancing":         "NUMA balancing: 1 → 0",
		"background services":    "there is no /run/systemd/system",
	} {
		if found[name] != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, found[name], want)
		}
		delete(found, name)
	}
	if len(found) > 0 {
		t.Errorf("not expected: %v", found)
	}
	if noSwap(string(plant(t, map[string]string{"/proc/swaps": "Filename Type\n"}))) == "" {
		t.Error("a host without swap is said to have some")
	}
}

// What a run sets is restored in order, and by the journal if the run was killed. Settings that no run may change stay.
func TestQuietenAndPutBack(t *testing.T) {
	for _, killed := range []bool{false, true} {
		tree, state := plant(t, server), t.TempDir()
		j, err := journal.Open(state)
		if err != nil {
			t.Fatal(err)
		}
		q, err := tree.Quieten(j, true)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"frequency governor: powersave → performance (2 files)", "turbo: 0 → 1", "IRQ affinity: 0-3 → 0", "address randomisation: 2 → 0", "swap: 60 → 0"}
		if got := notebook.Said(q.Set); !slices.Equal(got, want) {
			t.Errorf("set %q\nwant %q", got, want)
		}
		for _, s := range q.Set {
			if got := tree.says(t, strings.TrimPrefix(s.File, string(tree))); got != s.To {
				t.Errorf("%s says %q, want %q", s.File, got, s.To)
			}
		}
		var left []string
		for _, f := range q.Left {
			left = append(left, f.Name)
		}
		if want := []string{SMT, "transparent huge pages", "NUMA balancing"}; !slices.Equal(left, want) {
			t.Errorf("left alone %q, want %q", left, want)
		}
		if killed {
			if err := j.Close(); err == nil { // what is open stays, as of a process that died
				t.Error("a journal with open changes was closed as if nothing were left")
			}
			undone, err := journal.Recover(t.Context(), state, tree.Undo())
			if err != nil || len(undone) != len(q.Set) {
				t.Errorf("recovered %v, %v; want %d entries", undone, err, len(q.Set))
			}
		} else {
			if err := q.PutBack(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range server {
			if name == "/sys/kernel/mm/transparent_hugepage/enabled" {
				text = "madvise" // a kernel would show the other words too
			}
			if got := tree.says(t, name); got != strings.TrimSpace(text) {
				t.Errorf("killed %v: %s says %q, want %q", killed, name, got, text)
			}
		}
	}
}

// The journal is a file, and what stands in it may be wrong: only settings are written.
func TestNothingElseIsPutBack(t *testing.T) {
	tree := plant(t, server)
	for _, path := range []string{"/proc/swaps", "/etc/passwd", "/proc/irq/7/../../sys/vm/swappiness"} {
		e := journal.Entry{Kind: KindSetting, Target: string(tree) + path, Detail: map[string]string{detailFrom: "x"}}
		if err := tree.putBack(t.Context(), e); err == nil || !strings.Contains(err.Error(), "is not a setting") {
			t.Errorf("%s: %v", path, err)
		}
	}
	gone := journal.Entry{Kind: KindSetting, Target: string(tree) + "/proc/irq/99/smp_affinity_list", Detail: map[string]string{detailFrom: "0"}}
	if err := tree.putBack(t.Context(), gone); err != nil {
		t.Errorf("an interrupt that went: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	tree := plant(t, server)
	if err := os.MkdirAll(filepath.Join(string(tree), "proc/irq/11/smp_affinity_list"), 0o755); err != nil { // it refuses
		t.Fatal(err)
	}
	found := tree.Find()
	r := Report{Pairs: 212, CommandS: 0.0312, Rounds: rounds, Interval: 0.0534, Level: 0.992, Others: 0.314, Busy: true}
	effects := map[string]*Effect{
		"turbo": {0.41, 0.3, 0.56}, "address randomisation": {1.02, 0.71, 1.4}, "swap": {1.3, 1.1, 1.6}, "frequency governor": {0.97, 0.8, 1.2}, "IRQ affinity": {1, 0.9, 1.1},
		"transparent huge pages": {1, 0.9, 1.1}, SMT: {0.7, 0.5, 0.98},
	}
	for _, f := range found {
		if f.Name == SMT {
			f.Files = nil
		}
		f.Why = strings.ReplaceAll(f.Why, filepath.Dir(filepath.Dir(t.TempDir())), "")
		r.Settings = append(r.Settings, Setting{f, effects[f.Name]})
	}
	r.All = &Effect{0.4, 0.29, 0.55}
	var b strings.Builder
	if err := r.Describe(&b); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if i := strings.Index(got, "quiet already: "); i >= 0 { // without the folder of the test
		end := i + len("quiet already: ")
		got = got[:end] + got[strings.Index(got[end:], "/sys/")+end:]
	}
	golden.Check(t, "server.txt", []byte(got))
}

// A setting that makes a command's time vary is found, and one that does nothing is not: in a tree of files, with a command that reads one.
func TestMeasureFindsWhatMatters(t *testing.T) {
	tree, state := plant(t, map[string]string{
		"/sys/devices/system/cpu/online":      "0-1",
		"/proc/sys/kernel/randomize_va_space": "2",
		"/proc/sys/kernel/numa_balancing":     "1",
	}), t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	h, err := host.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// As long as addresses are random, one run of each pair waits: the first of one, the second of the next. Runs are counted by what is set.
	script := `cd ` + string(tree) + `; [ "$(cat proc/sys/kernel/randomize_va_space)" = 0 ] && exit
		count=runs$(cat proc/sys/kernel/numa_balancing); n=$(cat $count 2>/dev/null || echo 0); echo $((n+1)) >$count
		case $((n%4)) in 0 | 3) exec sleep 0.15 ;; esac`
	var said []string
	r, err := tree.Measure(t.Context(), j, h, []string{"/bin/sh", "-c", script}, time.Millisecond, func(s string) { said = append(said, s) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Pairs < rounds || len(said) == 0 || r.Interval <= 0 {
		t.Errorf("%+v, %q", r, said)
	}
	for _, s := range r.Settings {
		switch s.Name {
		case "address randomisation":
			if s.Effect == nil || s.Effect.High >= 1 {
				t.Errorf("%s: %v, want an interval below 1", s.Name, s.Effect)
			}
		case "NUMA balancing":
			if s.Effect == nil || s.Effect.Low > 1.5 || s.Effect.High < 0.7 { // by chance an interval misses 1 now and then
				t.Errorf("%s: %v, want an interval about 1", s.Name, s.Effect)
			}
		}
	}
	if r.All == nil || r.All.High >= 1 {
		t.Errorf("all together: %v, want an interval below 1", r.All)
	}
	if tree.says(t, "/proc/sys/kernel/randomize_va_space") != "2" || tree.says(t, "/proc/sys/kernel/numa_balancing") != "1" {
		t.Error("a setting was not put back")
	}
	// Interrupted, it puts back too.
	ctx, cancel := context.WithCancel(t.Context())
	_, err = tree.Measure(ctx, j, h, []string{"/bin/sh", "-c", script}, time.Hour, func(string) { cancel() })
	if err == nil || tree.says(t, "/proc/sys/kernel/randomize_va_space") != "2" {
		t.Errorf("interrupted: %v, %s", err, tree.says(t, "/proc/sys/kernel/randomize_va_space"))
	}
}

// Only huge pages are switched off, journaled before, and put back; a kernel that has none needs nothing.
func TestWithoutHugePages(t *testing.T) {
	const file = "/sys/kernel/mm/transparent_hugepage/enabled"
	tree := plant(t, server)
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	q, err := tree.WithoutHugePages(j)
	if err != nil || tree.says(t, file) != "never" || !slices.Equal(notebook.Said(q.Set), []string{"transparent huge pages: madvise → never"}) {
		t.Fatalf("%s says %q, set %q, %v", file, tree.says(t, file), notebook.Said(q.Set), err)
	}
	if got := tree.says(t, "/proc/sys/vm/swappiness"); got != "60" {
		t.Errorf("swappiness is %s", got)
	}
	if err := q.PutBack(t.Context()); err != nil || tree.says(t, file) != "madvise" {
		t.Errorf("put back: %s says %q, %v", file, tree.says(t, file), err)
	}
	q, err = plant(t, map[string]string{"/proc/swaps": ""}).WithoutHugePages(j)
	if err != nil || len(q.Set) > 0 {
		t.Errorf("a kernel without: set %q, %v", notebook.Said(q.Set), err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
