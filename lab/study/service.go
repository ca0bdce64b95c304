package study

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

const (
	readyTimeout = 2 * time.Minute        // of one question whether the service is ready
	readyPause   = 100 * time.Millisecond // between two: a service that starts must not be slowed by being asked
	saturation   = 0.9                    // share of its CPUs' time from which on a load may be what is measured
)

// service is a workload's service as it runs in a guest, and the place from which it is asked.
type service struct {
	of    notebook.Treatment
	ready *workload.Ready
	guest Guest
	place Guest
	load  notebook.Load
	pause time.Duration // between two questions whether it answers; 0: readyPause
	took  time.Duration // from its start until it answered

	stop  context.CancelFunc
	alive context.Context // done when it has ended, or was ended; then:
	res   ruler.Result
	err   error
}

// guests are the guest and, of a service, the place for its load.
func (s *service) guests(g Guest) []Guest {
	if s == nil || s.place == nil {
		return []Guest{g}
	}
	return []Guest{g, s.place}
}

// setUp starts the workload's service in the guest, makes the place for its load, and waits until the service answers
// there. cause says why it does not; the error is a place that could not be removed again. A workload without a service has nil, and one that
// is weighed: its service is begun with the others'.
func (r *Run) setUp(ctx context.Context, g Guest, t notebook.Treatment, id string, ready *workload.Ready) (_ *service, cause string, err error) {
	w := ready.Workload
	if w.Service == nil || r.Plan.Study.Together() {
		return nil, "", nil
	}
	return r.serve(ctx, g, t, id, ready)
}

// serve does that.
func (r *Run) serve(ctx context.Context, g Guest, t notebook.Treatment, id string, ready *workload.Ready) (_ *service, cause string, err error) {
	w := ready.Workload
	at := g.Address()
	if !at.Listen.IsValid() || !at.Connect.IsValid() {
		return nil, "its service has no address: the guest has no network that a load could ask through", nil
	}
	began := time.Now()
	s := begin(ctx, g, t, ready, w.Order(w.Service.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance, Address: at.Listen}))
	place, load, perr := r.Lab.Load(ctx, t, id, ready)
	if perr != nil {
		return nil, "no place for its load: " + perr.Error(), s.takeDown(ctx)
	}
	s.place, s.load = place, load
	if cause := s.await(ctx); cause != "" {
		return nil, cause, s.takeDown(ctx)
	}
	s.took = time.Since(began)
	if cause := s.warm(ctx, r.Plan.timeout()); cause != "" {
		return nil, cause, s.takeDown(ctx)
	}
	return s, "", nil
}

// begin starts what is to run in the guest until it is ended.
func begin(ctx context.Context, g Guest, t notebook.Treatment, ready *workload.Ready, order ruler.Order) *service {
	order.Timeout = ruler.MaxTimeout // it ends when it is ended
	order.FixedAddresses = t.Params[notebook.ParamAddresses] == notebook.AddressesFixed
	order.SmallPages = t.Params[notebook.ParamHugePages] == notebook.HugePagesNever
	sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	alive, ended := context.WithCancel(context.Background())
	s := &service{of: t, ready: ready, guest: g, stop: stop, alive: alive}
	go func() {
		defer ended()
		s.res, _, s.err = g.Ruler().Run(sctx, order)
	}()
	return s
}

// ask is the order of a command line of its load.
func (s *service) ask(argv []string, timeout time.Duration) ruler.Order {
	o := s.ready.Workload.Order(argv, s.ready.Params, s.ready.Image, workload.Seat{Instance: s.of.Instance, Address: s.guest.Address().Connect})
	o.Timeout = timeout
	return o
}

// warm runs the load that comes before all that is measured, where the workload has one; it says why it failed.
func (s *service) warm(ctx context.Context, timeout time.Duration) (cause string) {
	warm := s.ready.Workload.Load.Warm
	if len(warm) == 0 || ctx.Err() != nil {
		return ""
	}
	asking, enough := s.during(ctx)
	defer enough()
	res, _, err := s.place.Ruler().Run(asking, s.ask(warm, timeout))
	switch {
	case ctx.Err() != nil:
		return ""
	case s.over():
		return "its service ended while it was warmed: " + s.how()
	case err != nil:
		return "warming its service: " + err.Error() + diagnosis(s.place)
	case workload.Failure(res) != "":
		return "warming its service: " + workload.Failure(res)
	}
	return ""
}

// await asks until the service answers; it says why it does not. Empty also when ctx ends, which the caller sees.
func (s *service) await(ctx context.Context) (cause string) {
	w := s.ready.Workload
	within := w.Service.Starting(!s.of.Representative())
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ask := s.ask(w.Load.Ready, readyTimeout)
	answer := "nothing"
	asking, enough := s.during(ctx)
	defer enough()
	for {
		res, _, err := s.place.Ruler().Run(asking, ask)
		switch {
		case err == nil && workload.Failure(res) == "":
			return ""
		case err == nil:
			answer = workload.Failure(res)
		case asking.Err() == nil:
			return "its load's place: " + err.Error() + diagnosis(s.place)
		}
		select {
		case <-s.alive.Done():
			return "its service ended before it was ready: " + s.how()
		case <-ctx.Done():
			if context.Cause(ctx) != context.DeadlineExceeded {
				return ""
			}
			s.stop()
			<-s.alive.Done()
			return fmt.Sprintf("its service was not ready in %v: the last question gave: %s; the service said: %s", within, answer, s.said())
		case <-time.After(cmp.Or(s.pause, readyPause)):
		}
	}
}

// during is a context that ends with the service: a load of one that has ended need not be waited for. Of a nil
// service it is ctx's own.
func (s *service) during(ctx context.Context) (context.Context, context.CancelFunc) {
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

// over says whether the service has ended by itself.
func (s *service) over() bool { return s.alive.Err() != nil }

// how says how the service ended.
func (s *service) how() string {
	if s.err != nil {
		return s.err.Error() + diagnosis(s.guest)
	}
	if cause := workload.Failure(s.res); cause != "" {
		return cause
	}
	return "exit status 0; a service stays in the foreground; it said: " + s.said()
}

func (s *service) said() string {
	if said := workload.LastWords(s.res); said != "" {
		return said
	}
	return "nothing"
}

// notes are what a guest's record says about the place of its load.
func (s *service) notes() []string {
	switch {
	case s.load.From != "":
		return []string{"its load ran on another machine, " + s.load.From}
	case !s.load.Shared:
		return nil
	case s.of.Provisioning == notebook.Whole:
		return []string{"its load shares the guest's CPUs, which are all of the host's"}
	case s.of.Provisioning == notebook.Vanilla:
		return []string{"its load's CPUs are open to the guest too, since a quota binds it to none; a pinned guest and bare metal are apart from their load where the host has the CPUs"}
	}
	return []string{"its load shares its CPUs: the host has no others"}
}

// clock says how far the calendar clock of the load's machine is ahead of this host's; of one on this host it asks nothing.
func (s *service) clock(ctx context.Context) (ahead, bound time.Duration, err error) {
	if s == nil || s.load.From == "" {
		return 0, 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return s.place.Ruler().Clock(ctx)
}

// wander says that the clock of the load's machine did not keep to this host's during a trial: what it timed is not to be trusted.
func wander(ahead, bound, later, laterBound, took time.Duration) string {
	if off := later - ahead; off.Abs() > bound+laterBound+clockFloor+time.Duration(clockShare*float64(took)) {
		return fmt.Sprintf("the clock of the load's machine ran away, or was set: it went from %.3f s to %.3f s ahead of this host's in %.3f s; is its time kept (NTP)?",
			ahead.Seconds(), later.Seconds(), took.Seconds())
	}
	return ""
}

// usage is what the load took, by a clock that was so far ahead when it began.
func (s *service) usage(res ruler.Result, ahead, bound time.Duration) *notebook.Load {
	l := s.load
	l.AheadS, l.AheadBoundS = ahead.Seconds(), bound.Seconds()
	l.UserS, l.SystemS = res.UserS, res.SystemS
	return &l
}

// saturated warns of a load that had no CPU time left: it may have measured itself.
func saturated(l *notebook.Load, elapsed time.Duration) []string {
	share := (l.UserS + l.SystemS) / (elapsed.Seconds() * float64(len(l.CPUs)))
	if len(l.CPUs) == 0 || elapsed <= 0 || share < saturation {
		return nil
	}
	return []string{fmt.Sprintf("the load used %.0f %% of its CPUs' time or more: it may have measured itself", 100*saturation)}
}

// takeDown ends the service and removes its load's place. It may be called of a nil one.
func (s *service) takeDown(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.stop != nil { // it was begun
		s.stop()
		<-s.alive.Done() // the client bounds it
	}
	if s.place == nil {
		return nil
	}
	return destroy(ctx, s.place)
}
