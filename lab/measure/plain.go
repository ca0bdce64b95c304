package measure

import (
	"context"
	"time"

	"tare/lab/crowd"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Single is one guest of a treatment. Nothing runs in it before its trials. Kinds whose trials start the work themselves embed it.
type Single struct {
	Bench
	Cell

	guest   crowd.Guest
	service *crowd.Service
}

// Make implements Subject.
func (s *Single) Make(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, crowd.ProvisionTimeout)
	defer cancel()
	s.guest, err = s.Provision(ctx, crowd.Want{Treatment: s.Treatment, ID: s.ID, Work: s.Ready})
	return err
}

// Made takes over a guest that was made in another way, with its service if that has begun.
func (s *Single) Made(g crowd.Guest, service *crowd.Service) { s.guest, s.service = g, service }

// Guest implements Subject.
func (s *Single) Guest() crowd.Guest { return s.guest }

// Service implements Subject.
func (s *Single) Service() *crowd.Service { return s.service }

// SetUp implements Subject: nothing has to be set up.
func (*Single) SetUp(context.Context) (cause *notebook.Message, err error) { return nil, nil }

// Plain is a guest in which work is timed. A study without a kind measures this. Kinds that differ only in some steps embed it.
type Plain struct{ Single }

// NewPlain returns a guest that is not made yet.
func NewPlain(b Bench, c Cell) *Plain { return &Plain{Single{Bench: b, Cell: c}} }

// SetUp implements Subject: it starts the workload's service, if it has one.
func (p *Plain) SetUp(ctx context.Context) (cause *notebook.Message, err error) {
	if p.Ready.Workload.Service == nil {
		return nil, nil
	}
	p.service, cause, err = crowd.Serve(ctx, p.Bench, p.guest, p.Treatment, p.ID, p.Ready, p.Timeout)
	return cause, err
}

// Trial implements Subject.
func (p *Plain) Trial(ctx context.Context, s Step) (tr notebook.Trial, over bool, err error) {
	return p.Time(ctx, s)
}

// outcome is the result of one run of the work.
type outcome struct {
	ruler.Result
	host time.Duration // the same time by the host's clock

	// How far the calendar clock of the load's machine was ahead of this host's, before and after the run, and the error of each.
	ahead, bound, later, laterBound time.Duration
}

// Time runs the workload once and checks its answer. A step that does not count is not checked, because its result is not used.
func (p *Plain) Time(ctx context.Context, s Step) (tr notebook.Trial, over bool, err error) {
	w := p.Ready.Workload
	seat := workload.Seat{Instance: p.Treatment.Instance}
	where, order := p.guest, w.Order(w.Command, p.Ready.Params, p.Ready.Image, seat)
	order.Timeout, order.Remains = p.Timeout, p.service == nil
	var clock crowd.Guest
	if p.service != nil {
		where, clock = p.service.Place, p.service.Place
		order = p.service.Ask(w.Load.Command, p.Timeout)
	}
	tr.Start, tr.Command = time.Now().UTC(), order.Argv
	if p.service == nil {
		if tr.Failure = crowd.Before(ctx, p.guest, p.Ready, seat, p.Timeout, &order); tr.Failure != nil {
			return tr, false, nil
		}
	}
	var seen func(*notebook.Trial) error
	if s.Role == Traced {
		seen = p.trace(&order, clock)
	}
	silent := crowd.MemoryKills()
	out, rerr := p.run(ctx, where, order)
	if seen != nil {
		if err := seen(&tr); err != nil {
			tr.Failure = notebook.ErrorMessage(err)
			return tr, true, err
		}
	}
	switch {
	case rerr != nil && ctx.Err() == nil && p.service != nil && p.service.Over():
		tr.Failure = notebook.Say("service-ended", "cause", p.service.How())
		return tr, true, nil
	case rerr != nil:
		tr.Failure = silent(rerr, where)
		return tr, true, nil
	}
	p.record(&tr, out, where.Ruler().RoundTrip(), order)
	if p.service != nil && p.service.Over() {
		tr.Failure = notebook.Say("service-ended", "cause", p.service.How())
		return tr, true, nil
	}
	if tr.Failure != nil {
		tr.Output = workload.Tail(out.Result)
		return tr, false, nil
	}
	if len(w.Check) == 0 || !s.Counts() {
		return tr, false, nil
	}
	over = p.check(ctx, &tr)
	return tr, over, nil
}

// run sends the order, and reads the clock of the load's machine before and after.
func (p *Plain) run(ctx context.Context, where crowd.Guest, order ruler.Order) (out outcome, err error) {
	asking, enough := p.service.During(ctx)
	defer enough()
	if out.ahead, out.bound, err = p.service.Clock(asking); err != nil {
		return out, err
	}
	if out.Result, out.host, err = where.Ruler().Run(asking, order); err != nil {
		return out, err
	}
	out.later, out.laterBound, err = p.service.Clock(asking)
	return out, err
}

// record writes the outcome of the work into its trial. roundTrip is the shortest time to the ruler and back.
func (p *Plain) record(tr *notebook.Trial, out outcome, roundTrip time.Duration, order ruler.Order) {
	w := p.Ready.Workload
	tr.ElapsedS, tr.HostS = out.Elapsed.Seconds(), out.host.Seconds()
	tr.Exit, tr.Signal, tr.Found = out.Exit, out.Signal, out.Found
	if p.service == nil {
		tr.Usage = out.Usage
	} else {
		tr.Load = p.service.Usage(out.Result, out.ahead, out.bound)
		tr.Warnings = append(tr.Warnings, crowd.Saturated(tr.Load, out.Elapsed)...)
	}
	if tr.Trace != nil {
		tr.Trace.Inside = out.Trace
		account(tr.Trace, tr.Usage, tr.ElapsedS, p.Treatment.Instance.Cores)
		if why := blind(order.Tracers, out.Trace); why != nil {
			missing(tr.Trace, MissingInside, why)
		}
	}
	// The host's time includes the way to the guest and back. Only the minimum of that is known.
	if off := max(out.Elapsed-out.host, out.host-roundTrip-out.Elapsed); off > crowd.ClockFloor+time.Duration(crowd.ClockShare*float64(out.host)) {
		tr.Warnings = append(tr.Warnings, notebook.Say("clocks-differ", "guest", tr.ElapsedS, "host", tr.HostS))
	}
	if tr.Failure = workload.Failure(out.Result); tr.Failure == nil {
		tr.Failure = crowd.ClockDrift(out.ahead, out.bound, out.later, out.laterBound, out.host)
	}
	if names := notebook.FactorDevices.Of(p.Treatment); out.TimedOut && names != "" {
		tr.Failure = notebook.Say("device-stuck", "cause", tr.Failure, "devices", names)
	}
	if tr.Failure == nil {
		tr.Value, tr.Figures, tr.Failure = w.Figures(out.Result)
		tr.Warnings = append(tr.Warnings, w.Warnings(tr.Figures)...)
	}
}

// check lets the workload check its answer. over: the guest did not reply.
func (p *Plain) check(ctx context.Context, tr *notebook.Trial) (over bool) {
	w := p.Ready.Workload
	order := w.Order(w.Check, p.Ready.Params, p.Ready.Image, workload.Seat{Instance: p.Treatment.Instance})
	order.Timeout, order.KeepScratch = p.Timeout, true
	res, _, err := p.guest.Ruler().Run(ctx, order)
	if err != nil {
		tr.Failure = notebook.Say("checking", "cause", crowd.Silent(err, p.guest))
		return true
	}
	if cause := workload.Failure(res); cause != nil {
		tr.Failure, tr.Output = notebook.Say("wrong-output", "cause", cause), workload.Tail(res)
	}
	return false
}
