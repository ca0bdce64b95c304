package capacity

import (
	"cmp"
	"context"
	"math"
	"time"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/ruler"
	"tare/notebook"
	record "tare/notebook/kinds/capacity"
)

// subject is a guest whose service's capacity is sought.
type subject struct {
	*measure.Plain
	config
	search *search // the trial under way; nil: there is none
}

// search is a trial under way.
type search struct {
	ascent
	tr           notebook.Trial
	seen         record.Seen
	used         ruler.Result
	ahead, bound time.Duration
	await        bool // the last step missed the objective: the service may still be working on its requests
}

// Trial implements measure.Subject: it makes all parts of a trial.
func (s *subject) Trial(ctx context.Context, step measure.Step) (tr notebook.Trial, over bool, err error) {
	for more := true; more; {
		tr, more, over, err = s.Part(ctx, step)
	}
	return tr, over, err
}

// Part implements measure.Parted: it makes one step of the search for the capacity. A warm-up has only one step, and a rehearsal finds
// about where the capacity is.
func (s *subject) Part(ctx context.Context, step measure.Step) (tr notebook.Trial, more, over bool, err error) {
	if s.search == nil {
		s.search = &search{ascent: ascent{Config: s.config.Config, start: s.recall()}}
		s.search.tr.Start = time.Now().UTC()
		if s.search.ahead, s.search.bound, err = s.Service().Clock(ctx); err != nil {
			return s.end(crowd.Silent(err, s.Service().Place), true)
		}
	}
	u := s.search
	if step.Role == measure.Rehearsal {
		return s.glance(ctx)
	}
	rate, seconds, ok := u.next()
	if ok {
		if cause := s.ask(ctx, rate, seconds); cause != nil {
			return s.end(cause, true)
		}
		last := u.seen.Steps[len(u.seen.Steps)-1]
		if u.take(last); !step.Counts() {
			return s.end(nil, false) // a warm-up may miss the objective
		}
		return notebook.Trial{ElapsedS: u.tr.ElapsedS}, ctx.Err() == nil, false, nil
	}
	return s.finish(ctx)
}

// ask makes one step. cause says why the guest, or the place of its load, can no longer be used.
func (s *subject) ask(ctx context.Context, rate int, seconds float64) (cause *notebook.Message) {
	u, service := s.search, s.Service()
	if u.await {
		if cause := service.Await(ctx); cause != nil {
			return cause
		}
	}
	order := open(service, rate, seconds)
	u.tr.Command = order.Argv
	asking, enough := service.During(ctx)
	res, host, err := service.Place.Ruler().Run(asking, order)
	enough()
	switch {
	case service.Over():
		return notebook.Say("service-ended", "cause", service.How())
	case err != nil:
		return crowd.Silent(err, service.Place)
	}
	u.tr.ElapsedS, u.tr.HostS = u.tr.ElapsedS+res.Elapsed.Seconds(), u.tr.HostS+host.Seconds()
	u.used.UserS, u.used.SystemS = u.used.UserS+res.UserS, u.used.SystemS+res.SystemS
	if len(u.tr.Warnings) == 0 {
		u.tr.Warnings = crowd.Saturated(service.Usage(res, 0, 0), res.Elapsed)
	}
	step := stepOf(res, rate, seconds, s.config.Config)
	if seconds != s.HoldS {
		step.HoldS = seconds
	}
	u.await = !step.Met
	u.seen.Steps = append(u.seen.Steps, step)
	return nil
}

// finish ends the search with the capacity that it found.
func (s *subject) finish(ctx context.Context) (tr notebook.Trial, more, over bool, err error) {
	u, service := s.search, s.Service()
	u.tr.Load = service.Usage(u.used, u.ahead, u.bound)
	later, laterBound, err := service.Clock(ctx)
	if err != nil {
		return s.end(crowd.Silent(err, service.Place), true)
	}
	rate, cause := u.capacity()
	cause = cmp.Or(crowd.ClockDrift(u.ahead, u.bound, later, laterBound, time.Duration(u.tr.HostS*float64(time.Second))), cause)
	if cause == nil {
		u.tr.Value, u.tr.Figures = 1/rate, map[string]float64{record.PerSecond.Name: rate}
		s.remember(u.begins(rate))
	}
	return s.end(cause, false)
}

// end ends the trial.
func (s *subject) end(cause *notebook.Message, over bool) (notebook.Trial, bool, bool, error) {
	tr := s.search.tr
	tr.Failure, tr.Seen = cause, s.search.seen
	s.search = nil
	return tr, false, over, nil
}

const (
	glances = 1 // seconds of each step of a rehearsal
	leap    = 4 // factor from step to step of a rehearsal
)

// glance finds about where the capacity is, so that the first searches begin there: with short steps, in great leaps, and without a
// second step at any rate.
func (s *subject) glance(ctx context.Context) (tr notebook.Trial, more, over bool, err error) {
	u := s.search
	low, high := 0, 0
	for rate := s.From; ctx.Err() == nil && rate > low && (high == 0 || rate < high); {
		if cause := s.ask(ctx, rate, glances); cause != nil {
			return s.end(cause, true)
		}
		if step := u.seen.Steps[len(u.seen.Steps)-1]; step.Met {
			low = rate
		} else if high = rate; low == 0 {
			return s.end(step.Failure, false)
		}
		if rate = min(leap*low, s.To); high > 0 {
			rate = int(math.Round(math.Sqrt(float64(low) * float64(high))))
			if float64(high) < 1.3*float64(low) {
				break
			}
		}
	}
	s.remember(low)
	return s.end(nil, false)
}

// recall is where a search begins: where the last one in this environment, or else the last one for the same work on an instance of the
// same size, found the capacity. 0: nothing is known. A run thus begins each search at a rate that follows from its record.
func (s *subject) recall() int { return cmp.Or(s.found[s.Treatment.ID], s.found[s.size()]) }

// remember remembers where the next search begins. What an emulated machine carries says nothing about the others.
func (s *subject) remember(rate int) {
	if s.found == nil || rate < 1 {
		return
	}
	s.found[s.Treatment.ID] = rate
	if s.Treatment.Representative() {
		s.found[s.size()] = rate
	}
}

func (s *subject) size() string { return s.Treatment.Label() + " " + s.Treatment.Instance.Name }

var _ measure.Parted = (*subject)(nil)
