package crowd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Neighbours are the busy neighbours of a guest. A nil pointer stands for none.
type Neighbours struct {
	host   Host
	of     notebook.Treatment
	work   func(kind string) *workload.Ready
	guests []Guest
	works  []*Service
	kinds  []string // what each neighbour does: one of notebook.Busy
	seats  int
	spread bool
	full   bool
}

// Full reports whether the last Add ended because the host has no memory for another neighbour.
func (c *Neighbours) Full() bool { return c.full }

// Len is the number of neighbours.
func (c *Neighbours) Len() int { return len(c.guests) }

// Working is the number of neighbours that have begun their work.
func (c *Neighbours) Working() int { return len(c.works) }

// All returns the guests of the measurement itself, followed by the neighbours.
func (c *Neighbours) All(own []Guest) []Guest {
	if c == nil {
		return own
	}
	return slices.Concat(own, c.guests)
}

// StartNeighbours makes the neighbours of a treatment's guest and starts their work. cause says why that failed.
func StartNeighbours(ctx context.Context, h Host, first Guest, t notebook.Treatment, work func(kind string) *workload.Ready) (c *Neighbours, cause *notebook.Message, err error) {
	n := notebook.NeighboursOf(t)
	if n.None() {
		return nil, nil, nil
	}
	c, cause = NewNeighbours(h, t, n.PerCore > 0, work)
	if cause != nil {
		return nil, cause, nil
	}
	cause, err = c.Add(ctx, first, n.Kinds(c.seats)...)
	if cause != nil || err != nil {
		return nil, cause, errors.Join(err, c.Leave(ctx))
	}
	return c, nil, nil
}

// NewNeighbours prepares for neighbours, and starts none. work returns the work of a neighbour that is busy in the given way. spread
// distributes the neighbours over all CPUs of the host in turn, so that each CPU has equally many guests.
func NewNeighbours(h Host, t notebook.Treatment, spread bool, work func(kind string) *workload.Ready) (c *Neighbours, cause *notebook.Message) {
	seats, err := h.Seats(t)
	if err != nil {
		return nil, notebook.Say("no-seats", "cause", err)
	}
	return &Neighbours{host: h, of: t, work: work, seats: seats, spread: spread}, nil
}

// Add adds one neighbour of each of these kinds and waits until all have begun.
func (c *Neighbours) Add(ctx context.Context, first Guest, kinds ...string) (cause *notebook.Message, err error) {
	began := len(c.guests)
	c.full = false
	for i, kind := range kinds {
		if ctx.Err() != nil {
			return nil, nil // the caller checks ctx
		}
		no := func(cause any) (*notebook.Message, error) {
			return notebook.Say("of-neighbour-of", "neighbour", began+i+1, "of", began+len(kinds), "cause", cause), nil
		}
		each, err := (append([]Guest{first}, c.guests...))[len(c.guests)].Resident() // all guests are alike
		if err != nil {
			return no(err)
		}
		if cause := Room(1+len(c.guests), each, c.of.Instance.Memory); cause != nil {
			c.full = true
			return no(cause)
		}
		pctx, cancel := context.WithTimeout(ctx, ProvisionTimeout)
		g, err := c.host.Provision(pctx, Want{Treatment: c.of, ID: NewID(), Work: c.work(kind), Seat: c.seat(len(c.guests), kind)})
		cancel()
		if err != nil {
			return no(notebook.Say("no-guest", "cause", err))
		}
		c.guests, c.kinds = append(c.guests, g), append(c.kinds, kind)
	}
	var started []ruler.Begun
	for i, g := range c.guests[began:] {
		s, b := Start(ctx, g, c.work(kinds[i]), c.of)
		c.works, started = append(c.works, s), append(started, b)
	}
	for i, b := range started {
		if cause := c.works[began+i].HasBegun(b); cause != nil {
			return notebook.Say("of-neighbour", "neighbour", began+i+1, "cause", cause), nil
		}
	}
	return nil, nil
}

// seat returns the seat of neighbour i, counted from 0. Neighbours that do the same work as the guest compete for something other
// than CPUs, so they get CPUs of their own.
func (c *Neighbours) seat(i int, kind string) int {
	if c.spread || kind == notebook.BusyWork {
		return (i + 1) % c.seats
	}
	return 0
}

// Leave ends the neighbours' work and removes the neighbours. It may be called on a nil pointer.
func (c *Neighbours) Leave(ctx context.Context) (err error) {
	if c == nil {
		return nil
	}
	return c.Shrink(ctx, 0)
}

// Shrink removes the latest neighbours until n are left.
func (c *Neighbours) Shrink(ctx context.Context, n int) (err error) {
	for _, w := range c.works[min(n, len(c.works)):] { // all at once: hundreds of neighbours that are still busy would starve the removal
		w.stop()
	}
	for _, w := range slices.Backward(c.works[min(n, len(c.works)):]) {
		err = errors.Join(err, w.TakeDown(ctx))
	}
	err = errors.Join(err, DestroyAll(ctx, c.guests[min(n, len(c.guests)):]))
	c.works, c.guests, c.kinds = c.works[:min(n, len(c.works))], c.guests[:min(n, len(c.guests))], c.kinds[:min(n, len(c.kinds))]
	return err
}

const (
	busyShare = 0.5      // least share of its CPUs that a CPU-busy neighbour must demand; below that it idles
	busyBytes = 64 << 10 // least that an I/O-busy neighbour must have moved: one block
)

// Watch reads what the neighbours and the measured guest have done so far. The function it returns reports what they did since
// then. why says which neighbour was not busy, so that the trial did not have the neighbours it should have had. over reports that
// a neighbour has ended. Nothing may be measured during either call.
func (c *Neighbours) Watch(own Guest) func() (did *notebook.NeighbourActivity, why *notebook.Message, over bool) {
	if c == nil {
		return func() (*notebook.NeighbourActivity, *notebook.Message, bool) { return nil, nil, false }
	}
	read := func() (all []proc.Demand, used time.Duration, err error) {
		for _, g := range c.guests {
			d, err := g.Demanded()
			if err != nil {
				return nil, 0, err
			}
			all = append(all, d)
		}
		used, err = own.Used() // includes its work, which will have ended
		return all, used, err
	}
	before, had, err := read()
	began := time.Now()
	return func() (did *notebook.NeighbourActivity, why *notebook.Message, over bool) {
		took := time.Since(began)
		if i := slices.IndexFunc(c.works, (*Service).Over); i >= 0 {
			return nil, notebook.Say("neighbour-ended", "neighbour", i+1, "cause", c.works[i].How()), true
		}
		var after []proc.Demand
		var has time.Duration
		if err == nil {
			after, has, err = read()
		}
		if err != nil {
			return nil, notebook.Say("neighbours-unread", "cause", err), false
		}
		did = &notebook.NeighbourActivity{OfS: took.Seconds(), OwnS: max(has-had, 0).Seconds()}
		for i, kind := range c.kinds {
			d := after[i].Since(before[i])
			n := notebook.Neighbour{Busy: kind, Seat: c.seat(i, kind), RanS: d.Ran.Seconds(), WaitedS: d.Waited.Seconds(), Moved: d.Moved}
			if n.Idle = idle(n, d.Ready, took, c.of.Instance.Cores); n.Idle != nil && why == nil {
				why = notebook.Say("neighbour-idle", "neighbour", i+1, "of", len(c.kinds), "cause", n.Idle)
			}
			did.Neighbours = append(did.Neighbours, n)
		}
		return did, why, false
	}
}

// CheckNeighbours reports what a trial's neighbours did, and fails the trial where they were not busy as required. over reports that a
// neighbour has ended.
func CheckNeighbours(tr *notebook.Trial, busy func() (*notebook.NeighbourActivity, *notebook.Message, bool)) (did *notebook.NeighbourActivity, over bool) {
	did, why, over := busy()
	if why != nil && tr.Failure == nil {
		tr.Failure = why
	}
	if f := did.Figures(); len(f) > 0 && tr.Failure == nil {
		if tr.Figures == nil {
			tr.Figures = map[string]float64{}
		}
		maps.Copy(tr.Figures, f)
	}
	return did, over
}

// idle says why a neighbour was not busy for a time; nil if it was busy. ready: it was ready to run all the time.
func idle(n notebook.Neighbour, ready bool, took time.Duration, cores float64) *notebook.Message {
	switch want := busyShare * cores * took.Seconds(); {
	case n.Busy == notebook.BusyIO && n.Moved < busyBytes:
		return notebook.Say("moved-little", "bytes", n.Moved, "in_s", took)
	case n.Busy == notebook.BusyWork && n.RanS == 0 && n.Moved == 0:
		return notebook.Say("did-nothing")
	case n.Busy == notebook.BusyCPU && n.RanS+n.WaitedS < want && !ready:
		return notebook.Say("ran-little", "ran_s", n.RanS, "waited_s", n.WaitedS, "of_s", took, "cores", cores)
	}
	return nil
}
