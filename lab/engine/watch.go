//go:build linux

package engine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

// Watch ends a watch that runs during a trial. Call it once, after the trial, with the usage of the trial's work and the elapsed
// time. It says whether the guest stayed on its CPUs.
type Watch func(used notebook.Usage, elapsed time.Duration) *notebook.Confined

const (
	// stray is the CPU time on other CPUs that does not count as an escape. The kernel charges none, but its clocks may differ by
	// this much.
	stray = time.Millisecond
	// inexact is the allowed difference between two of the kernel's counts of the same CPU time, plus a share of it: the kernel
	// counts a process's time in pieces.
	inexact      = 20 * time.Millisecond
	inexactShare = 0.01
)

// beyond reports whether one count of CPU time is greater than another.
func beyond(more, than time.Duration) bool {
	return more > than+inexact+time.Duration(inexactShare*float64(than))
}

// Watch begins to watch whether the guest stays on its CPUs. It is nil if the guest is not confined to any, or if nobody can tell.
// Both Watch and the function that it returns read files of the kernel, so nothing may be measured during either call.
func (b *Base) Watch() Watch {
	if len(b.Spec.CPUs) == 0 || b.Spec.System { // a system makes cgroups of its own
		return nil
	}
	c := notebook.Confined{CPUs: notebook.FormatCPUList(b.Spec.CPUs)}
	if b.free {
		return func(notebook.Usage, time.Duration) *notebook.Confined { return b.alone(c) }
	}
	h, before, err := b.heldAt()
	return func(used notebook.Usage, elapsed time.Duration) *notebook.Confined {
		if err == nil {
			err = b.stayed(&c, h, before, used, elapsed)
		}
		if err != nil {
			c.Why = notebook.ErrorMessage(err)
			if b.Unfenced {
				c.Escape = notebook.EscapeUnseen
			}
		}
		return &c
	}
}

// heldAt finds the cgroups that confine the guest, and what they have counted so far.
func (b *Base) heldAt() (h cgroup.Held, so cgroup.Used, err error) {
	if h, err = cgroup.HeldAt(b.PID); err != nil {
		return h, so, err
	}
	own, err := cgroup.HeldAt(os.Getpid())
	if err != nil {
		return h, so, err
	}
	if h.Set.Dir == own.Set.Dir || h.Count.Dir == own.Count.Dir {
		return h, so, fmt.Errorf("it has no cgroup of its own (%s, %s)", h.Set.Dir, h.Count.Dir)
	}
	so, err = h.Used()
	return h, so, err
}

// stayed records in c whether the guest stayed on its CPUs.
func (b *Base) stayed(c *notebook.Confined, h cgroup.Held, before cgroup.Used, used notebook.Usage, elapsed time.Duration) error {
	cpus := b.Spec.sortedCPUs()
	after, err := h.Used()
	if err != nil {
		return err
	}
	since := after.Since(before)
	if since.All < 0 {
		return errors.New("its cgroup was replaced during the watch")
	}
	c.UsedS = since.All.Seconds()
	foreign, counted := since.Elsewhere(cpus)
	if counted {
		s := foreign.Seconds()
		c.ForeignS = &s
	}
	// A CPU set that is gone confines nobody.
	set, err := h.CPUs()
	if err != nil || !slices.Equal(set, cpus) {
		c.Escape = notebook.EscapeSet
		return err
	}
	if foreign > stray {
		c.Escape = notebook.EscapeForeign
		return nil
	}
	if b.Unfenced {
		if c.Escape, err = b.left(h, cpus, since.All, used, elapsed); err != nil || c.Escape != "" {
			return err
		}
	}
	if !counted {
		c.ForeignS, c.Deduced = new(float64), true
	}
	return nil
}

// left says whether anything escaped from a guest that could leave its cgroups: a live process, or CPU time that was used but not
// counted there.
func (b *Base) left(h cgroup.Held, cpus []int, counted time.Duration, used notebook.Usage, elapsed time.Duration) (notebook.Escape, error) {
	pids, err := b.Processes()
	if err != nil {
		return "", err
	}
	switch left, err := h.Left(pids, cpus); {
	case err != nil:
		return "", err
	case len(left) > 0:
		return notebook.EscapeLeft, nil
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	work := seconds(used.UserS + used.SystemS)
	switch {
	case beyond(work+seconds(used.LeftS), counted):
		return notebook.EscapeLeft, nil
	case elapsed > 0 && beyond(work, elapsed*time.Duration(len(cpus))):
		return notebook.EscapeTime, nil
	}
	return "", nil
}

// alone checks that the host still has no CPUs other than the guest's. Only that confines the guest to its CPUs.
func (b *Base) alone(c notebook.Confined) *notebook.Confined {
	switch online, err := proc.OnlineCPUs(); {
	case err != nil:
		c.Escape, c.Why = notebook.EscapeUnseen, notebook.ErrorMessage(err)
	case !slices.Equal(online, b.Spec.sortedCPUs()):
		c.Escape, c.Why = notebook.EscapeUnseen, notebook.Say("cpus-online-now", "cpus", notebook.FormatCPUList(online))
	default:
		c.ForeignS, c.Deduced = new(float64), true
	}
	return &c
}
