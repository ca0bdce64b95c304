package crowd

import (
	"cmp"
	"context"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

const (
	readyTimeout = 2 * time.Minute        // for one question whether the service is ready
	readyPause   = 100 * time.Millisecond // between two questions: asking must not slow down a service that starts
	saturation   = 0.9                    // share of its CPUs' time from which a load may be what limits the result
)

// ClockShare is how far the guest's clock and the host's may disagree on a trial, as a share of the trial. ClockFloor is allowed in
// addition: the time that an answer takes through an emulated serial port is not an error of a clock.
const (
	ClockShare = 0.01
	ClockFloor = 5 * time.Millisecond
)

// Service is what runs in a guest until it is ended: a workload's service with the place of its load, or a command. A nil Service
// runs nothing; Guests, During, Clock and TakeDown may be called on it.
type Service struct {
	Treatment notebook.Treatment
	Ready     *workload.Ready
	Guest     Guest
	Place     Guest         // where its load runs; nil: it has no load
	Load      notebook.Load // the record of Place
	Pause     time.Duration // between two questions whether it answers; 0: the default
	Took      time.Duration // from its start until it answered

	stop  context.CancelFunc
	alive context.Context // done when it has ended or was stopped; then:
	res   ruler.Result
	err   error
}

// Guests returns the guest and, for a service with a load, the place of the load.
func (s *Service) Guests(g Guest) []Guest {
	if s == nil || s.Place == nil {
		return []Guest{g}
	}
	return []Guest{g, s.Place}
}

// Serve starts the workload's service in the guest, makes the place of its load, waits until the service answers there, and warms
// it up. timeout is for each command of the load.
func Serve(ctx context.Context, h Host, g Guest, t notebook.Treatment, id string, ready *workload.Ready, timeout time.Duration) (_ *Service, cause *notebook.Message, err error) {
	w := ready.Workload
	at := g.Address()
	if !at.Listen.IsValid() || !at.Connect.IsValid() {
		return nil, notebook.Say("no-address"), nil
	}
	seat := workload.Seat{Instance: t.Instance, Address: at.Listen}
	order := w.Order(w.Service.Command, ready.Params, ready.Image, seat)
	if cause := Before(ctx, g, ready, seat, timeout, &order); cause != nil {
		return nil, cause, nil
	}
	began := time.Now()
	s := Begin(ctx, g, t, ready, order)
	place, load, perr := h.Load(ctx, t, id, ready)
	if perr != nil {
		return nil, notebook.Say("no-load-place", "cause", perr), s.TakeDown(ctx)
	}
	s.Place, s.Load = place, load
	if cause := s.Await(ctx); cause != nil {
		return nil, cause, s.TakeDown(ctx)
	}
	s.Took = time.Since(began)
	if cause := s.warm(ctx, timeout); cause != nil {
		return nil, cause, s.TakeDown(ctx)
	}
	return s, nil, nil
}

// Start starts the workload's command in the guest, and returns a channel that is closed when the command has begun.
func Start(ctx context.Context, g Guest, ready *workload.Ready, t notebook.Treatment) (*Service, ruler.Begun) {
	begun := make(ruler.Begun)
	w := ready.Workload
	order := w.Order(w.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Bounds = begun
	return Begin(ctx, g, t, ready, order), begun
}

// HasBegun waits until the command has begun; cause says that it ended before.
func (s *Service) HasBegun(b ruler.Begun) (cause *notebook.Message) {
	select {
	case <-b:
	case <-s.alive.Done():
		select {
		case <-b: // it has begun and ended: the next check sees the end
		default:
			cause = notebook.Say("work-ended-at-once", "cause", s.How())
		}
	}
	return cause
}

// Begin starts what runs in the guest until it is stopped.
func Begin(ctx context.Context, g Guest, t notebook.Treatment, ready *workload.Ready, order ruler.Order) *Service {
	order.Timeout = ruler.MaxTimeout // it runs until it is stopped
	order.Mergeable = notebook.FactorMerging.Of(t) == notebook.MergingAsked
	order.SmallPages = notebook.FactorHugePages.Of(t) == notebook.HugePagesNever
	sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	alive, ended := context.WithCancel(context.Background())
	s := &Service{Treatment: t, Ready: ready, Guest: g, stop: stop, alive: alive}
	go func() {
		defer ended()
		s.res, _, s.err = g.Ruler().Run(sctx, order)
	}()
	return s
}

// Reached is where a load reaches the service of a guest.
func Reached(g Guest, t notebook.Treatment) workload.Seat {
	a := g.Address()
	return workload.Seat{Instance: t.Instance, Address: a.Connect, Port: a.Port}
}

// Ask is the order that runs a command line of the load.
func (s *Service) Ask(argv []string, timeout time.Duration) ruler.Order {
	o := s.Ready.Workload.Order(argv, s.Ready.Params, s.Ready.Image, Reached(s.Guest, s.Treatment))
	o.Timeout = timeout
	return o
}

// warm runs the warm-up load, where the workload has one; cause says why it failed.
func (s *Service) warm(ctx context.Context, timeout time.Duration) (cause *notebook.Message) {
	warm := s.Ready.Workload.Load.Warm
	if len(warm) == 0 || ctx.Err() != nil {
		return nil
	}
	asking, enough := s.During(ctx)
	defer enough()
	res, _, err := s.Place.Ruler().Run(asking, s.Ask(warm, timeout))
	switch {
	case ctx.Err() != nil:
		return nil
	case s.Over():
		return notebook.Say("service-ended-in-warm-up", "cause", s.How())
	case err != nil:
		return notebook.Say("warming", "cause", Silent(err, s.Place))
	case workload.Failure(res) != nil:
		return notebook.Say("warming", "cause", workload.Failure(res))
	}
	return nil
}

// Await asks until the service answers; cause says why it does not. cause is also empty when ctx ends, which the caller checks.
func (s *Service) Await(ctx context.Context) (cause *notebook.Message) {
	w := s.Ready.Workload
	within := w.Service.Starting(!s.Treatment.Representative())
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ask := s.Ask(w.Load.Ready, readyTimeout)
	var answer *notebook.Message
	asking, enough := s.During(ctx)
	defer enough()
	for {
		res, _, err := s.Place.Ruler().Run(asking, ask)
		switch {
		case err == nil && workload.Failure(res) == nil:
			return nil
		case err == nil:
			answer = workload.Failure(res)
		case asking.Err() == nil:
			return notebook.Say("of-load-place", "cause", Silent(err, s.Place))
		}
		select {
		case <-s.alive.Done():
			return notebook.Say("service-ended-in-start", "cause", s.How())
		case <-ctx.Done():
			if context.Cause(ctx) != context.DeadlineExceeded {
				return nil
			}
			s.stop()
			<-s.alive.Done()
			return notebook.Say("service-not-ready", "within", within, "answer", answer, "said", workload.LastWords(s.res))
		case <-time.After(cmp.Or(s.Pause, readyPause)):
		}
	}
}

// During returns a context that ends with the service, because a load need not be waited for once its service has ended. For a nil
// Service it only follows ctx.
func (s *Service) During(ctx context.Context) (context.Context, context.CancelFunc) {
	during, enough := context.WithCancel(ctx)
	if s == nil {
		return during, enough
	}
	stop := context.AfterFunc(s.alive, enough)
	return during, func() {
		stop()
		enough()
	}
}

// Over reports whether the service has ended by itself.
func (s *Service) Over() bool { return s.alive.Err() != nil }

// How says how the service ended.
func (s *Service) How() *notebook.Message {
	if s.err != nil {
		return Silent(s.err, s.Guest)
	}
	if cause := workload.Failure(s.res); cause != nil {
		return cause
	}
	return notebook.Say("service-exited", "said", workload.LastWords(s.res))
}

// Notes are the notes on the load's place for a guest's record.
func (s *Service) Notes() []*notebook.Message {
	switch {
	case s.Load.From != "":
		return []*notebook.Message{notebook.Say("load-elsewhere", "machine", s.Load.From)}
	case !s.Load.Shared && s.Treatment.Provisioning == notebook.Vanilla:
		return []*notebook.Message{notebook.Say("load-apart", "cpus", notebook.FormatCPUList(s.Load.CPUs))}
	case !s.Load.Shared:
		return nil
	case s.Treatment.Provisioning == notebook.Whole:
		return []*notebook.Message{notebook.Say("load-on-all-cpus")}
	}
	return []*notebook.Message{notebook.Say("load-shares-cpus")}
}

// Clock says how far the calendar clock of the load's machine is ahead of this host's. For a load on this host it asks nothing and
// returns 0.
func (s *Service) Clock(ctx context.Context) (ahead, bound time.Duration, err error) {
	if s == nil || s.Load.From == "" {
		return 0, 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	return s.Place.Ruler().Clock(ctx)
}

// ClockDrift says that the clock of the load's machine drifted from this host's during a trial, so that its times cannot be trusted;
// nil if it did not.
func ClockDrift(ahead, bound, later, laterBound, took time.Duration) *notebook.Message {
	if off := later - ahead; off.Abs() > bound+laterBound+ClockFloor+time.Duration(ClockShare*float64(took)) {
		return notebook.Say("clock-drifted", "from_s", ahead, "to_s", later, "in_s", took)
	}
	return nil
}

// Usage is what the load used. ahead and bound are the offset of its clock at the beginning, and the error of that.
func (s *Service) Usage(res ruler.Result, ahead, bound time.Duration) *notebook.Load {
	l := s.Load
	l.AheadS, l.AheadBoundS = ahead.Seconds(), bound.Seconds()
	l.UserS, l.SystemS = res.UserS, res.SystemS
	return &l
}

// Saturated warns of a load that used nearly all of its CPU time: it may have measured itself.
func Saturated(l *notebook.Load, elapsed time.Duration) []*notebook.Message {
	share := (l.UserS + l.SystemS) / (elapsed.Seconds() * float64(len(l.CPUs)))
	if len(l.CPUs) == 0 || elapsed <= 0 || share < saturation {
		return nil
	}
	return []*notebook.Message{notebook.Say("load-saturated", "share", saturation)}
}

// TakeDown stops the service and removes the place of its load. It may be called on a nil Service.
func (s *Service) TakeDown(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.stop != nil { // it was started
		s.stop()
		<-s.alive.Done() // the client limits this wait
	}
	if s.Place == nil {
		return nil
	}
	return Destroy(ctx, s.Place)
}

// Again repeats the load of a service until ctx ends; the message says how the load failed before that. i is the index of the guest,
// for the message.
func (s *Service) Again(ctx context.Context, i int, timeout time.Duration) *notebook.Message {
	for ctx.Err() == nil {
		asking, enough := s.During(ctx)
		res, _, err := s.Place.Ruler().Run(asking, s.Ask(s.Ready.Workload.Load.Command, timeout))
		enough()
		switch {
		case ctx.Err() != nil:
			return nil
		case s.Over():
			return notebook.Say("service-ended-under-load", "guest", i+1, "cause", s.How())
		case err != nil:
			return notebook.Say("load-failed", "guest", i+1, "cause", err)
		case workload.Failure(res) != nil:
			return notebook.Say("load-failed", "guest", i+1, "cause", workload.Failure(res))
		}
	}
	return nil
}

// Alive is done when the service has ended or was stopped.
func (s *Service) Alive() context.Context { return s.alive }

// Stop tells the service to end, without waiting; TakeDown also waits.
func (s *Service) Stop() { s.stop() }

// Result is what the ruler says of the service once it has ended.
func (s *Service) Result() (ruler.Result, error) { return s.res, s.err }
