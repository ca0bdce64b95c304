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

// snapshot is a container that was started and then saved, while its first process waited for the work. To start it is to restore it.
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

// save makes a container and saves it.
func (u *bringUp) save(ctx context.Context, of *started, want crowd.Want) error {
	u.provisioning.Lock()
	g, err := u.Provision(ctx, want)
	u.provisioning.Unlock()
	if err != nil {
		return err
	}
	of.ahead = &snapshot{g, make(chan struct{})}
	_, err = g.Save(ctx)
	return err
}
