//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tare/lab/host"
	"tare/notebook"
)

// now is the host with the CPUs that are online now.
func (l *Lab) now() notebook.Host {
	h := l.host
	if l.sized > 0 {
		stay, _, err := host.Smaller(h, l.sized)
		if err != nil { // it was made so small
			panic(err)
		}
		h.CPUs = slices.DeleteFunc(slices.Clone(h.CPUs), func(c notebook.CPU) bool { return !slices.Contains(stay, c.ID) })
	}
	return h
}

// size makes the host one of so many CPUs; 0: of all that it has.
func (l *Lab) size(ctx context.Context, n int) error {
	if n == len(l.host.CPUs) {
		n = 0
	}
	if n == l.sized {
		return nil
	}
	if l.regrow != nil {
		l.sized = sizeUnknown
		if err := l.regrow(ctx); err != nil {
			return err
		}
		l.regrow, l.sized = nil, 0
	}
	if n == 0 {
		return nil
	}
	_, leave, err := host.Smaller(l.host, n)
	if err != nil {
		return err
	}
	if l.regrow, err = host.TakeOffline(ctx, l.env.Journal, leave); err != nil {
		if l.regrow != nil {
			l.sized = sizeUnknown
		}
		return err
	}
	l.sized = n
	return nil
}

// sizeUnknown is the size of a host whose CPUs could not all be brought back: no treatment asks for it, so nothing is measured
// before another try to bring them back has worked.
const sizeUnknown = -1

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
