//go:build linux

package session

import (
	"context"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/journal"
)

// sharing is a folder that the guests of one treatment share while they live (workload.Workload.Shares).
type sharing struct {
	dir     string
	changes *journal.Changes // remove it
	guests  int              // that have it
}

// share returns the folder that the wanted guest shares; "" where its work needs none. The first guest of a treatment gets a new, empty one.
// leave is called when the guest is gone; the last one removes the folder.
func (l *Lab) share(w crowd.Want) (dir string, leave func(context.Context) error, err error) {
	if !w.Work.Workload.SharesWith(w.Work.Params) {
		return "", nil, nil
	}
	of := w.Treatment.ID
	s := l.shared[of]
	if s == nil {
		s = &sharing{}
		if s.dir, s.changes, err = engine.MakeShared(l.env.Journal, l.env.State, "tare-shared-"+w.ID); err != nil {
			return "", nil, err
		}
		if l.shared == nil {
			l.shared = map[string]*sharing{}
		}
		l.shared[of] = s
	}
	s.guests++
	left := false
	return s.dir, func(ctx context.Context) error {
		if !left {
			left = true
			s.guests--
		}
		if s.guests > 0 {
			return nil
		}
		if l.shared[of] == s {
			delete(l.shared, of)
		}
		return s.changes.Undo(ctx)
	}, nil
}
