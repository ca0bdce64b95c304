//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tare/lab/host"
	"tare/notebook"
)

// now is the host with the CPUs that are online now.
func (l *Lab) now() notebook.Host {
	h := l.host
	h.CPUs = slices.DeleteFunc(slices.Clone(h.CPUs), func(c notebook.CPU) bool { return slices.Contains(l.gone, c.ID) })
	return h
}

// size makes the host one of so many CPUs; 0: of all that it has.
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

// without makes the host one without these CPUs. Where an earlier change could not be undone, nothing is measured before
// another try has worked.
func (l *Lab) without(ctx context.Context, leave []int) (err error) {
	if !l.torn && slices.Equal(leave, l.gone) {
		return nil
	}
	if l.regrow != nil {
		l.torn = true
		if err := l.regrow(ctx); err != nil {
			return err
		}
	}
	l.regrow, l.gone, l.torn = nil, nil, false
	if len(leave) == 0 {
		return nil
	}
	if l.regrow, err = host.TakeOffline(ctx, l.env.Journal, leave); err != nil {
		l.torn = l.regrow != nil
		return err
	}
	l.gone = leave
	return nil
}

// cannotShrink says why the host cannot be made one of n CPUs; it is tried once.
func (l *Lab) cannotShrink(ctx context.Context, n int) string {
	why, known := l.shrinks[n]
	if !known {
		if err := errors.Join(l.size(ctx, n), l.size(ctx, 0)); err != nil {
			why = fmt.Sprintf("the host cannot be made one of %d CPUs: %v", n, err)
		}
		l.shrinks[n] = why
	}
	return why
}

// sizeFor makes the host what the treatment's guest is to find. Where bare metal was to lose the host's other CPUs a note says
// whether it did, and else why not.
func (l *Lab) sizeFor(ctx context.Context, t notebook.Treatment, service bool) (note string, err error) {
	if !t.OthersOffline {
		return "", l.size(ctx, t.HostCores)
	}
	const stayed = "the host's other CPUs stayed online for bare metal: "
	cores := int(math.Ceil(t.Instance.Cores))
	_, others, err := host.Smaller(l.host, cores)
	if err != nil {
		return "", err
	}
	switch {
	case len(others) == 0:
		return "", l.size(ctx, t.HostCores)
	case service && l.away == nil && t.HostCores != cores:
		return stayed + "its load runs there", l.size(ctx, t.HostCores)
	}
	if why := l.without(ctx, others); why != nil {
		return fmt.Sprint(stayed, why), l.size(ctx, t.HostCores)
	}
	return "the host's other CPUs were offline for bare metal", nil
}
