//go:build linux

package arrivals

import (
	"context"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/notebook"
)

func ofSnapshot(t notebook.Treatment) bool {
	return notebook.FactorFrom.Of(t) == notebook.FromSnapshot
}

// snapshot is a container that ran and was saved. To start it is to restore it.
type snapshot struct {
	crowd.Guest
	restored chan struct{} // closed once its processes run again
}

var _ measure.Ahead = (*snapshot)(nil)

// Start implements measure.Ahead.
func (s *snapshot) Start(ctx context.Context) error {
	err := s.Restore(ctx, nil)
	if err == nil {
		close(s.restored)
	}
	return err
}

// Meet implements measure.Ahead.
func (s *snapshot) Meet(ctx context.Context) (crowd.Guest, error) {
	select {
	case <-s.restored:
		return s.Guest, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// InForce implements measure.Ahead. The limits were checked when the container was made, and a restore uses the same configuration.
func (*snapshot) InForce() error { return nil }

// runs reports whether the container was restored.
func (s *snapshot) runs() bool {
	select {
	case <-s.restored:
		return true
	default:
		return false
	}
}

// save makes a container, lets its service give its first answer, and saves it.
func (u *bringUp) save(ctx context.Context, of *started, want crowd.Want) error {
	g, err := u.Provision(ctx, want)
	if err != nil {
		return err
	}
	of.ahead = &snapshot{g, make(chan struct{})}
	if want.Work.Workload.Service != nil {
		of.work = u.serve(ctx, g, true)
		if cause := u.answers(ctx, of.work); cause != nil {
			return &notebook.Error{Says: cause}
		}
	}
	_, err = g.Save(ctx)
	return err
}
