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

// Watch is under way while a trial runs. It is called once, after the trial, with what the trial's work says to have used in the time that passed, and
// says whether the guest stayed on its CPUs.
type Watch func(used notebook.Usage, elapsed time.Duration) *notebook.Confined

const (
	// stray is CPU time on other CPUs that does not count as an escape. The kernel charges none; its clocks may differ by this much.
	stray = time.Millisecond
	// inexact is by how much two of the kernel's counts of the same CPU time may differ, with a share of it on top: it gives a process's in pieces.
	inexact      = 20 * time.Millisecond
	inexactShare = 0.01
)

// beyond says whether one count of CPU time is more than another.
func beyond(more, than time.Duration) bool {
	return more > than+inexact+time.Duration(inexactShare*float64(than))
}

// Watch begins to watch whether the guest stays on its CPUs. It is nil if the guest is not held to any, or if nobody can tell. Both Watch and the
// function that it returns read files of the kernel: nothing may be measured at the same time.
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

// heldAt finds the cgroups that hold the guest, and what they have counted so far.
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

// stayed says in c whether the guest stayed on its CPUs.
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
	// A set that is gone is one that holds nobody.
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

// left says whether anything of a guest that could leave its cgroups did: something that lives, or by what was not counted there of all that was used.
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

// alone says whether the host still has no CPUs but the guest's, which nothing but that holds to them.
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
