package crowd

import (
	"errors"
	"testing"
	"time"
)

// spender is a guest whose CPU time follows a list, one entry per call.
type spender struct {
	Guest
	used []time.Duration
}

func (s *spender) Used() (time.Duration, error) {
	if len(s.used) == 0 {
		return 0, errors.New("it is gone")
	}
	d := s.used[0]
	s.used = s.used[1:]
	return d, nil
}

func TestWhatWentOnBesideAGuest(t *testing.T) {
	if b := BesideGuests(&spender{used: []time.Duration{time.Second, time.Second}})(); b == nil || b.OfS < 0 || b.StolenS < 0 || b.OthersS < 0 || b.OthersS+b.StolenS > b.OfS+0.02 {
		t.Errorf("a guest that did nothing: %+v", b)
	}
	// However much CPU time the guest uses, it never counts as others'.
	if b := BesideGuests(&spender{used: []time.Duration{0, time.Hour}})(); b == nil || b.OthersS != 0 {
		t.Errorf("a guest that did much: %+v", b)
	}
	for name, used := range map[string][]time.Duration{"a process of which ended": {time.Hour, 0}, "that is gone": {0}, "that never was": nil} {
		if b := BesideGuests(&spender{used: used})(); b != nil {
			t.Errorf("a guest %s: %+v, which cannot be known", name, b)
		}
	}
}
