//go:build linux

package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/notebook"
)

// KindOffline is the journal's kind for CPUs that were taken offline; its target is their list.
const KindOffline = "cpus-offline"

// The keys under which an entry keeps, as JSON, what taking CPUs offline also changes and bringing them back does not restore: the
// CPU sets of cgroups of version 1, by path, and the CPUs that serve interrupts, by the interrupt's number.
const (
	detailCpusets    = "cpusets"
	detailInterrupts = "interrupts"
)

const (
	cpuFolder  = "/sys/devices/system/cpu"
	onlineTime = 10 * time.Second // for the kernel to take one CPU offline or bring it back
	detailSize = 1 << 20          // bytes of all CPU sets, or of all interrupts' affinities, in the journal
)

// Smaller says which CPUs stay and which go when the host is reduced to n CPUs. First one thread of each core stays, socket by
// socket; second threads stay only once every core is in use. So a host of 16 has 16 cores if the machine has as many, like a guest
// of 16 (ChooseCPUs). The socket, node and core of the first CPU come first, because most kernels keep CPU 0.
func Smaller(h notebook.Host, n int) (stay, leave []int, err error) {
	if n < 1 || n > len(h.CPUs) {
		return nil, nil, fmt.Errorf("a host of %d CPUs: must be from 1 to %d, the number that it has", n, len(h.CPUs))
	}
	all := slices.Clone(h.CPUs)
	slices.SortFunc(all, func(a, b notebook.CPU) int { return cmp.Compare(a.ID, b.ID) })
	// The order of each CPU: which thread of its core it is, and when its socket, its node and it were first seen.
	thread, threads := map[int]int{}, map[int]int{}
	socket, node := map[int]int{}, map[int]int{}
	first := func(seen map[int]int, key int) {
		if _, there := seen[key]; !there {
			seen[key] = len(seen)
		}
	}
	for _, c := range all {
		thread[c.ID] = threads[c.Core]
		threads[c.Core]++
		first(socket, c.Socket)
		first(node, c.Node)
	}
	slices.SortStableFunc(all, func(a, b notebook.CPU) int {
		return cmp.Or(cmp.Compare(thread[a.ID], thread[b.ID]), cmp.Compare(socket[a.Socket], socket[b.Socket]), cmp.Compare(node[a.Node], node[b.Node]))
	})
	stay, leave = ids(all[:n]), ids(all[n:])
	slices.Sort(stay)
	slices.Sort(leave)
	return stay, leave, nil
}

// TakeOffline takes the CPUs from the host until restore is called, which brings them back and restores the CPU sets of cgroups and
// the CPUs of interrupts. It first records all of that in the journal. On error all are back; where they could not be brought back,
// it also returns restore, to try again.
func TakeOffline(ctx context.Context, j *journal.Journal, cpus []int) (restore func(context.Context) error, err error) {
	e, err := offlineEntry(cpus)
	if err != nil {
		return nil, fmt.Errorf("host: CPUs %s offline: %w", notebook.FormatCPUList(cpus), err)
	}
	changes := journal.NewChanges(j, Undo())
	if err := changes.Announce(e); err != nil {
		return nil, err
	}
	for _, c := range cpus {
		if err := setOnline(c, false); err != nil {
			err = fmt.Errorf("host: CPU %d cannot go offline: %w", c, err)
			if uerr := changes.Undo(context.WithoutCancel(ctx)); uerr != nil {
				return changes.Undo, errors.Join(err, uerr)
			}
			return nil, err
		}
	}
	return changes.Undo, nil
}

// offlineEntry is the journal's entry for CPUs that are about to go.
func offlineEntry(cpus []int) (e journal.Entry, err error) {
	e = journal.Entry{Kind: KindOffline, Target: notebook.FormatCPUList(cpus), Detail: map[string]string{}}
	sets, err := cpusetsWith(cpus)
	if err != nil {
		return e, fmt.Errorf("reading the cgroups' CPU sets, which they are taken from: %w", err)
	}
	if err := checkCPUsLeft(sets, cpus); err != nil {
		return e, err
	}
	irqs, err := interruptsOn(irqFolder, cpus)
	if err != nil {
		return e, fmt.Errorf("reading which CPUs serve interrupts: %w", err)
	}
	for key, what := range map[string]any{detailCpusets: sets, detailInterrupts: irqs} {
		text, err := json.Marshal(what)
		if err != nil {
			return e, err
		}
		if len(text) > detailSize {
			return e, fmt.Errorf("the journal has no room for the %s (%d bytes; must be at most %d), so they could not be restored", key, len(text), detailSize)
		}
		e.Detail[key] = string(text)
	}
	return e, nil
}

// Undo returns the function that undoes the journal entries of TakeOffline, for journal.Recover.
func Undo() map[string]journal.Undo { return map[string]journal.Undo{KindOffline: bringBack} }

// bringBack undoes an entry of TakeOffline.
func bringBack(_ context.Context, e journal.Entry) error {
	cpus, err := notebook.ParseCPUList(e.Target)
	if err != nil {
		return err
	}
	var sets map[string]string
	if text := e.Detail[detailCpusets]; text != "" {
		if err := json.Unmarshal([]byte(text), &sets); err != nil {
			return fmt.Errorf("host: the CPU sets of the cgroups: %w", err)
		}
	}
	var irqs map[int]affinity
	if text := e.Detail[detailInterrupts]; text != "" { // entries of older versions have none
		if err := json.Unmarshal([]byte(text), &irqs); err != nil {
			return fmt.Errorf("host: the CPUs of interrupts: %w", err)
		}
	}
	for _, c := range cpus {
		if err := setOnline(c, true); err != nil {
			return fmt.Errorf("host: CPU %d cannot be brought back: %w; echo 1 >%s", c, err, onlineFile(c))
		}
	}
	for _, path := range parentsFirst(sets) {
		// The path is from Tare's own journal, but Tare writes only to a cgroup's CPU set.
		if filepath.Base(path) != "cpuset.cpus" || !strings.HasPrefix(path, cgroupRoot+"/") || filepath.Clean(path) != path {
			return fmt.Errorf("host: %q is not a cgroup's CPU set", path)
		}
		err := os.WriteFile(path, []byte(sets[path]), 0o644)
		// A cgroup that is gone needs none.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("host: restoring a cgroup's CPU set: %w", err)
		}
	}
	if err := restoreInterrupts(irqFolder, irqs); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	return nil
}

// parentsFirst orders the files of CPU sets by their cgroups, because a parent's set must contain its child's before that is
// written. (The files' own paths have another order: docker/0a1b…/cpuset.cpus comes before docker/cpuset.cpus.)
func parentsFirst(sets map[string]string) []string {
	return slices.SortedFunc(maps.Keys(sets), func(a, b string) int { return cmp.Compare(filepath.Dir(a), filepath.Dir(b)) })
}

// checkCPUsLeft returns an error if a cgroup of version 1 that has processes would be left without a CPU. The kernel would move the
// processes to its parent, and nobody would move them back.
func checkCPUsLeft(sets map[string]string, cpus []int) error {
	for _, path := range parentsFirst(sets) {
		has, err := notebook.ParseCPUList(sets[path])
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if slices.ContainsFunc(has, func(c int) bool { return !slices.Contains(cpus, c) }) {
			continue
		}
		dir := filepath.Dir(path)
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV): // it is gone
		case err != nil:
			return err
		case len(procs) > 0:
			return fmt.Errorf("processes in the cgroup %s may use only CPUs %s, and would lose them for good: end the processes (a container that is bound to CPUs?), or give them more CPUs", dir, sets[path])
		}
	}
	return nil
}

const cgroupRoot = "/sys/fs/cgroup"

// cpusetsWith returns the CPU sets of version 1 cgroups that name one of the CPUs, by the path of their file. The root's set
// follows the kernel's list by itself.
func cpusetsWith(cpus []int) (map[string]string, error) {
	root := filepath.Join(cgroupRoot, "cpuset")
	sets := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no such hierarchy, or a cgroup that is gone
		}
		if err != nil || d.Name() != "cpuset.cpus" || filepath.Dir(path) == root {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		list := strings.TrimSpace(string(b))
		has, err := notebook.ParseCPUList(list)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if slices.ContainsFunc(has, func(c int) bool { return slices.Contains(cpus, c) }) {
			sets[path] = list
		}
		return nil
	})
	return sets, err
}

func onlineFile(cpu int) string { return fmt.Sprintf("%s/cpu%d/online", cpuFolder, cpu) }

// setOnline takes a CPU offline or brings it back, and checks that the kernel did it.
func setOnline(cpu int, online bool) error {
	want := "0"
	if online {
		want = "1"
	}
	path := onlineFile(cpu)
	have, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if online {
			return nil // it could never go offline
		}
		return errors.New("the kernel does not allow it for this CPU (it has no file online)")
	}
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(have)) == want {
		return nil
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(path, []byte(want), 0o644) }() // returns when the kernel is done
	select {
	case err = <-wrote:
	case <-time.After(onlineTime):
		return fmt.Errorf("the kernel did not do it within %v", onlineTime)
	}
	if err != nil {
		return err
	}
	have, err = os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(have)) != want {
		err = fmt.Errorf("%s says %q after %q was written", path, strings.TrimSpace(string(have)), want)
	}
	return err
}
