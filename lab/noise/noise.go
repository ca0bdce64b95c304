//go:build linux

// Package noise handles the settings of a host that make the time of the same work vary from one run to the next. It finds out
// which of them this host allows to change, makes them quiet during a run, and measures how much each reduces the noise.
package noise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// setting is something that can be made quiet.
type setting struct {
	name  string
	files []file
	never string                   // why no run ever sets it; "": runs do
	vms   string                   // why a run with VMs does not set it
	moot  func(root string) string // why there is nothing to set, in addition to the files; nil: no such reason
	own   bool                     // a setting of the process that starts the work, which ends with it
}

// file is a group of files with the same setting for several CPUs, interrupts or drivers.
type file struct {
	pattern string // pattern of their paths
	quiet   string // the value; firstCPU is the host's first
}

const firstCPU = "first CPU"

// hugePages is the name of a setting.
const hugePages = "transparent huge pages"

// settings are all known settings, in the order of the output.
var settings = []setting{
	{name: "frequency governor", files: []file{{"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance"}}},
	{name: "turbo", files: []file{{"/sys/devices/system/cpu/intel_pstate/no_turbo", "1"}, {"/sys/devices/system/cpu/cpufreq/boost", "0"}}},
	{name: "deep idle states", files: []file{{"/sys/devices/system/cpu/cpu*/cpuidle/state[2-9]/disable", "1"}}},
	{name: SMT, files: []file{{"/sys/devices/system/cpu/smt/control", "off"}},
		never: "it takes away CPUs that guests of a study need"},
	{name: "IRQ affinity", files: []file{{"/proc/irq/[0-9]*/smp_affinity_list", firstCPU}}},
	{name: "timer slack", files: []file{{"/proc/self/timerslack_ns", "1"}}, own: true,
		never: "processes inherit it, but those that an engine's daemon starts would not"},
	{name: "address randomisation", files: []file{{"/proc/sys/kernel/randomize_va_space", "0"}}},
	{name: hugePages, files: []file{{"/sys/kernel/mm/transparent_hugepage/enabled", "never"}},
		vms: "a VM's memory uses them, and would cost more without"},
	{name: "swap", files: []file{{"/proc/sys/vm/swappiness", "0"}}, moot: noSwap},
	{name: "memory compaction", files: []file{{"/proc/sys/vm/compaction_proactiveness", "0"}}},
	{name: "page merging (KSM)", files: []file{{"/sys/kernel/mm/ksm/run", "0"}}},
	{name: "watchdogs", files: []file{{"/proc/sys/kernel/soft_watchdog", "0"}, {"/proc/sys/kernel/nmi_watchdog", "0"}}},
	{name: "NUMA balancing", files: []file{{"/proc/sys/kernel/numa_balancing", "0"}},
		never: "its cost is a part of what leaving the CPUs to the scheduler costs"},
	{name: "background services", files: []file{{"/run/systemd/system", ""}}, moot: services,
		never: "Tare stops no service"},
}

// SMT is the name of the setting that takes CPUs away.
const SMT = "SMT siblings"

// Tree is the root of the file tree with the settings.
type Tree string

// Host is the tree of this machine.
const Host Tree = "/"

// Found is how far the host allows one setting to change. Tare finds out by trying.
type Found struct {
	Name    string             `json:"name"`
	Files   []notebook.Setting `json:"files,omitempty"`   // files to write, from the present value to the quiet one; without those that are quiet already
	Why     string             `json:"why,omitempty"`     // why Files is empty
	Refused []string           `json:"refused,omitempty"` // files that refuse it, with the kernel's error, where others accept it
	Never   string             `json:"never,omitempty"`   // why a quiet run does not change it
	vms     string
	own     bool
}

// Find tries all settings: it reads each file, and writes the same value back.
func (t Tree) Find() (all []Found) {
	for _, s := range settings {
		f := Found{Name: s.name, Never: s.never, vms: s.vms, own: s.own}
		f.Files, f.Refused, f.Why = t.try(s)
		all = append(all, f)
	}
	return all
}

func (t Tree) try(s setting) (files []notebook.Setting, refused []string, why string) {
	var missing, quiet []string
	for _, f := range s.files {
		paths, err := filepath.Glob(filepath.Join(string(t), f.pattern))
		if err != nil { // the patterns are valid
			panic(err)
		}
		if len(paths) == 0 {
			missing = append(missing, f.pattern)
		}
		if s.moot != nil && len(paths) > 0 {
			if why := s.moot(string(t)); why != "" {
				return nil, nil, why
			}
		}
		for _, path := range paths {
			to := f.quiet
			if to == firstCPU {
				cpus, err := proc.Tree{FS: os.DirFS(string(t))}.OnlineCPUs()
				if err != nil {
					return nil, nil, err.Error()
				}
				to = strconv.Itoa(cpus[0])
			}
			from, err := proc.Setting(path)
			if err == nil {
				err = proc.WriteSetting(path, from)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist): // it is gone
			case err != nil:
				refused = append(refused, err.Error())
			case from == to:
				quiet = append(quiet, fmt.Sprintf("%s says %q", path, from))
			default:
				files = append(files, notebook.Setting{Name: s.name, File: path, From: from, To: to})
			}
		}
	}
	switch {
	case len(files) > 0:
		return files, refused, ""
	case len(quiet) > 0:
		return nil, nil, "quiet already: " + some(quiet)
	case len(refused) > 0:
		return nil, nil, "the kernel refuses it: " + some(refused)
	}
	return nil, nil, "there is no " + strings.Join(missing, ", nor ")
}

// some returns the first, and how many more there are.
func some(all []string) string {
	if len(all) > 1 {
		return fmt.Sprintf("%s, and %d more", all[0], len(all)-1)
	}
	return all[0]
}

// KindSetting is the journal's kind for a setting that was changed; its target is the file.
const KindSetting = "setting"

// detailFrom is the key under which an entry keeps what the file said.
const detailFrom = "from"

// Undo returns the function that undoes the journal entries of Quieten, for journal.Recover.
func (t Tree) Undo() map[string]journal.Undo {
	return map[string]journal.Undo{KindSetting: t.putBack}
}

func (t Tree) putBack(_ context.Context, e journal.Entry) error {
	if !t.has(e.Target) { // the path is from Tare's own journal, but Tare writes only to settings
		return fmt.Errorf("noise: %q is not a setting of the host", e.Target)
	}
	err := proc.Set(e.Target, e.Detail[detailFrom])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) { // what it was a setting of is gone too
		return nil
	}
	if err != nil {
		return fmt.Errorf("noise: %w; echo '%s' >%s", err, e.Detail[detailFrom], e.Target)
	}
	return nil
}

// has reports whether the path is a file of a setting.
func (t Tree) has(path string) bool {
	for _, s := range settings {
		for _, f := range s.files {
			if ok, err := filepath.Match(filepath.Join(string(t), f.pattern), path); ok && err == nil && f.quiet != "" {
				return true
			}
		}
	}
	return false
}

// Quieted are settings that are quiet until PutBack.
type Quieted struct {
	Set     []notebook.Setting // settings that were set
	Left    []Found            // settings that could be set but were not; Why says why
	changes *journal.Changes
}

// PutBack restores every file. It can be tried again after a failure.
func (q *Quieted) PutBack(ctx context.Context) error { return q.changes.Undo(ctx) }

// WithoutHugePages makes the kernel make no more huge pages, as Quieten does with that setting. On a kernel that makes none there
// is nothing to set.
func (t Tree) WithoutHugePages(j *journal.Journal) (*Quieted, error) {
	q := &Quieted{changes: journal.NewChanges(j, t.Undo())}
	f := Found{Name: hugePages}
	f.Files, f.Refused, f.Why = t.try(settings[slices.IndexFunc(settings, func(s setting) bool { return s.name == hugePages })])
	if len(f.Refused) > 0 {
		return nil, fmt.Errorf("%s: the kernel refuses it: %s", f.Name, some(f.Refused))
	}
	if err := announce(q.changes, []Found{f}); err != nil {
		return nil, err
	}
	if err := f.quieten(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name, err), q.PutBack(context.Background()))
	}
	q.Set = f.Files
	return q, nil
}

// Quieten makes the settings quiet that this host allows to change and that a run may change. vms says that the run has VMs. The journal
// records the value of each file before Quieten changes any. On error Quieten changes none.
func (t Tree) Quieten(j *journal.Journal, vms bool) (*Quieted, error) {
	q := &Quieted{changes: journal.NewChanges(j, t.Undo())}
	var quieten []Found
	for _, f := range t.Find() {
		switch {
		case f.Why != "":
			continue
		case f.Never != "":
			f.Why = f.Never
		case f.vms != "" && vms:
			f.Why = f.vms
		}
		if f.Why != "" {
			q.Left = append(q.Left, f)
		} else {
			quieten = append(quieten, f)
		}
	}
	if err := announce(q.changes, quieten); err != nil {
		return nil, err
	}
	for _, f := range quieten {
		refused := f.quieten()
		q.Set = append(q.Set, f.Files...)
		if refused != nil {
			f.Why = "the kernel refuses it: " + refused.Error()
			q.Left = append(q.Left, f)
		}
	}
	return q, nil
}

// quieten sets the files, and keeps in Files those that accept the quiet value: some interrupts cannot move, and some governors are
// missing.
func (f *Found) quieten() (refused error) {
	f.Files = slices.DeleteFunc(f.Files, func(s notebook.Setting) bool {
		err := proc.Set(s.File, s.To)
		if err != nil {
			refused = errors.Join(err, proc.Set(s.File, s.From))
		}
		return err != nil
	})
	return refused
}

// announce records the contents of all files of the settings in the journal.
func announce(c *journal.Changes, all []Found) error {
	var entries []journal.Entry
	for _, f := range all {
		for _, s := range f.Files {
			entries = append(entries, journal.Entry{Kind: KindSetting, Target: s.File, Detail: map[string]string{detailFrom: s.From}})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return c.Announce(entries...)
}

// noSwap says that the host has no swap.
func noSwap(root string) string {
	const path = "/proc/swaps"
	text, err := os.ReadFile(filepath.Join(root, path))
	if err == nil && strings.Count(string(text), "\n") > 1 {
		return "" // a heading, and a line for each area
	}
	return "there is no swap (" + path + " names none)"
}

// services names the active timers that are known to start work that disturbs others.
func services(string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "list-units", "--type=timer", "--state=active", "--plain", "--no-legend").Output()
	if err != nil {
		return fmt.Sprintf("systemctl list-units: %v", err)
	}
	var active []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			active = append(active, f[0])
		}
	}
	if len(active) == 0 {
		return "no timer of systemd's is active"
	}
	return "these may start work at any time: " + strings.Join(active, ", ") + "; stop them with systemctl, and start them afterwards"
}
