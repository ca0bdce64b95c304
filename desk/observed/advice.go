package observed

import (
	"tare/notebook"
)

// Advice is which of the changes that were replayed to make.
type Advice struct {
	Change *notebook.ObservedChange `json:"change"` // nil: none is worth it
}

// WorthChange is the least share of the 99th percentile that a change must cut to be worth it.
const WorthChange = 0.1

// asGood is how much longer the 99th percentile with a cheaper change may be, as a factor of the shortest.
const asGood = 1.1

// advice chooses the change that cuts the 99th percentile most or, of those that cut it about as much, the one that asks least of the host.
// The whole interval must lie below what was measured.
func advice(o *notebook.Observation) *Advice {
	r := o.Replay
	if r == nil || len(r.Changes) == 0 {
		return nil
	}
	var worth []*notebook.ObservedChange
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Times.P99.High < r.Seen.P99.Seconds && c.Times.P99.Seconds <= (1-WorthChange)*r.Seen.P99.Seconds {
			worth = append(worth, c)
		}
	}
	a := &Advice{}
	shortest := 0.0
	for _, c := range worth {
		if shortest == 0 || c.Times.P99.Seconds < shortest {
			shortest = c.Times.P99.Seconds
		}
	}
	for _, c := range worth {
		if c.Times.P99.Seconds <= asGood*shortest && (a.Change == nil || asks(o, c) < asks(o, a.Change)) {
			a.Change = c
		}
	}
	return a
}

// asks ranks changes by how much of the host they ask for.
func asks(o *notebook.Observation, c *notebook.ObservedChange) int {
	now := 0.0
	if o.Quota != nil {
		now = o.Quota.Cores
	}
	switch {
	case now > 0 && c.Limit > 0 && c.Limit <= now:
		return 0 // no more CPU time than now
	case now > 0 && c.Limit == 0 && float64(c.CPUs) < now+1:
		return 1 // hardly more
	case c.Limit > 0:
		return 2
	}
	return 3
}
