//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tare/lab/host"
	"tare/lab/hugepages"
	"tare/notebook"
)

// now is the host with the CPUs that are online now.
func (l *Lab) now() notebook.Host {
	h := l.host
	h.CPUs = slices.DeleteFunc(slices.Clone(h.CPUs), func(c notebook.CPU) bool { return slices.Contains(l.gone, c.ID) })
	return h
}

// size reduces the host to n CPUs; 0: all that it has.
func (l *Lab) size(ctx context.Context, n int) error {
	if n == 0 {
		return l.without(ctx, nil)
	}
	_, leave, err := host.Smaller(l.host, n)
	if err != nil {
		return err
	}
	return l.without(ctx, leave)
}

// without takes these CPUs from the host. After a change that could not be undone, nothing is measured until another attempt has
// worked.
func (l *Lab) without(ctx context.Context, leave []int) (err error) {
	if !l.torn && slices.Equal(leave, l.gone) {
		return nil
	}
	if l.restoreCPUs != nil {
		l.torn = true
		if err := l.restoreCPUs(ctx); err != nil {
			return err
		}
	}
	l.restoreCPUs, l.gone, l.torn = nil, nil, false
	if len(leave) == 0 {
		return nil
	}
	if l.restoreCPUs, err = host.TakeOffline(ctx, l.env.Journal, leave); err != nil {
		l.torn = l.restoreCPUs != nil
		return err
	}
	l.gone = leave
	return nil
}

// cannotShrink says why the host cannot be reduced to n CPUs. It tries once.
func (l *Lab) cannotShrink(ctx context.Context, n int) *notebook.Message {
	why, known := l.shrinks[n]
	if !known {
		if err := errors.Join(l.size(ctx, n), l.size(ctx, 0)); err != nil {
			why = notebook.Say("host-cannot-shrink", "cpus", n, "cause", err)
		}
		l.shrinks[n] = why
	}
	return why
}

// sizeFor gives the host the CPUs and the memory of the treatment. If bare metal was to lose the host's other CPUs or memory, the
// notes say whether it did, or why not.
func (l *Lab) sizeFor(ctx context.Context, t notebook.Treatment, service bool) (notes []*notebook.Message, err error) {
	note, err := l.cpusFor(ctx, t, service)
	if err != nil {
		return nil, err
	}
	if note != nil {
		notes = append(notes, note)
	}
	if !t.MemoryWithheld {
		return notes, l.withhold(ctx, 0, nil)
	}
	its, err := l.cpus(t)
	if err != nil {
		return nil, err
	}
	var near []int
	for _, c := range l.host.CPUs {
		if slices.Contains(its, c.ID) {
			near = append(near, c.Node)
		}
	}
	slices.Sort(near)
	near = slices.Compact(near)
	if err := l.withhold(ctx, t.Instance.Memory, near); err != nil {
		return nil, err
	}
	return append(notes, l.kept.note), nil
}

// cpusFor gives the host the CPUs of the treatment, with a note about them.
func (l *Lab) cpusFor(ctx context.Context, t notebook.Treatment, service bool) (note *notebook.Message, err error) {
	if !t.OthersOffline {
		return nil, l.size(ctx, t.HostCores)
	}
	cores := int(math.Ceil(t.Instance.Cores))
	_, others, err := host.Smaller(l.host, cores)
	if err != nil {
		return nil, err
	}
	switch {
	case len(others) == 0:
		return nil, l.size(ctx, t.HostCores)
	case service && l.away == nil && t.HostCores != cores:
		return notebook.Say("other-cpus-online", "cause", notebook.Say("load-there")), l.size(ctx, t.HostCores)
	}
	if why := l.without(ctx, others); why != nil {
		return notebook.Say("other-cpus-online", "cause", why), l.size(ctx, t.HostCores)
	}
	return notebook.Say("other-cpus-offline"), nil
}

// kept is the host's memory that is withheld from guests.
type kept struct {
	instance int64               // bytes of the instance that memory is withheld for; 0: none
	near     []int               // NUMA nodes that lose memory last
	held     *hugepages.Withheld // nil: none is withheld
	note     *notebook.Message   // for the guest's record
}

// withhold leaves the host enough memory for an instance with so many bytes and for everything else; 0 gives all memory back. The near
// nodes lose memory last. Where the host withholds none, the note says why. Where an earlier change could not be undone, nothing is
// measured until another attempt succeeds.
func (l *Lab) withhold(ctx context.Context, instance int64, near []int) error {
	if l.kept.instance == instance && slices.Equal(l.kept.near, near) && !l.kept.torn() {
		return nil
	}
	if l.kept.held != nil {
		if err := l.kept.held.Undo(ctx); err != nil {
			l.kept.instance = 0
			return fmt.Errorf("%w; `tare clean` tries again", err)
		}
	}
	l.kept = kept{near: near}
	if instance == 0 {
		return nil
	}
	if l.hungry[instance] {
		l.kept.instance, l.kept.note = instance, notebook.Say("memory-not-withheld", "cause", notebook.Say("guest-needs-memory"))
		return nil
	}
	w, err := l.memory.Withhold(ctx, l.env.Journal, instance, near)
	switch {
	case err != nil && w != nil: // and what was done could not be undone
		l.kept.held = w
		return err
	case ctx.Err() != nil:
		return err
	case err != nil:
		l.kept.instance, l.kept.note = instance, notebook.Say("memory-not-withheld", "cause", err)
		return nil
	}
	l.kept.instance, l.kept.held = instance, w
	l.kept.note = notebook.Say("memory-withheld", "left", w.Left, "withheld", w.Bytes, "missing", w.Missing)
	return nil
}

// torn reports that memory could not be given back, and is withheld for no instance.
func (k kept) torn() bool { return k.held != nil && k.instance == 0 }

// release gives the memory back and withholds none for an instance of this size again. It reports whether any was withheld.
func (l *Lab) release(ctx context.Context) (bool, error) {
	if l.kept.held == nil {
		return false, nil
	}
	l.hungry[l.kept.instance] = true
	instance, near := l.kept.instance, l.kept.near
	if err := l.withhold(ctx, 0, nil); err != nil {
		return false, err
	}
	return true, l.withhold(ctx, instance, near)
}
