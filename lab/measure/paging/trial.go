//go:build linux

package paging

import (
	"context"
	"slices"
	"time"

	"tare/lab/crowd"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/paging"
)

// reading is a trial under way.
type reading struct {
	of       record.Config
	eyes     eyes
	group    *crowd.Group
	trial    *notebook.Trial
	kept     record.Seen
	began    time.Time
	faulting faulting
	used     time.Duration // CPU time of the guests when counting began
	watched  time.Time
}

// read does what the study asks for, from the moment when all guests work; cause says why it cannot.
func (p *reading) read(ctx context.Context) (cause *notebook.Message) {
	function := ends(p.group.Ready.Workload)
	if p.of.Tables {
		if cause := p.wait(ctx, p.of.InitialS, record.Initial); cause != nil {
			return cause
		}
		if cause := p.tables(ctx, record.Initial); cause != nil {
			return cause
		}
	}
	if function {
		return p.toTheEnd(ctx)
	}
	if p.of.SteadyS == 0 && p.of.FaultsS == 0 {
		return nil
	}
	settled := p.of.Tables && p.of.SteadyS > 0
	if !settled { // most faults come from what a load touches first
		if cause := p.watch(); cause != nil {
			return cause
		}
	}
	lctx, enough := context.WithCancel(ctx)
	loads := p.load(lctx)
	defer func() {
		enough()
		if failed := loads(); cause == nil {
			cause = failed
		}
	}()
	if settled {
		if cause := p.wait(ctx, p.of.SteadyS, record.Steady); cause != nil {
			return cause
		}
		if cause := p.tables(ctx, record.Steady); cause != nil {
			return cause
		}
	}
	if p.of.FaultsS > 0 {
		if settled {
			if cause := p.watch(); cause != nil {
				return cause
			}
		}
		if cause := p.wait(ctx, p.of.FaultsS, inFaults); cause != nil {
			return cause
		}
		return p.seen(nil)
	}
	return nil
}

// The ends until which a guest must work, in addition to the states of its page tables.
const (
	inFaults = "faults"
	inTables = "tables"
)

// wait lets the guests work for a time, and says if a guest's work ends in that time.
func (p *reading) wait(ctx context.Context, seconds float64, until string) *notebook.Message {
	over, stop := context.WithCancel(ctx)
	defer stop()
	for _, w := range p.group.Works {
		defer context.AfterFunc(w.Alive(), stop)()
	}
	select {
	case <-over.Done():
	case <-time.After(time.Duration(seconds * float64(time.Second))): // how long the guests have worked is itself measured
	}
	return p.ended(until)
}

// ended says which guest's work has ended; nil if none has.
func (p *reading) ended(until string) *notebook.Message {
	i := slices.IndexFunc(p.group.Works, (*crowd.Service).Over)
	if i < 0 {
		return nil
	}
	how := p.group.Works[i].How()
	if ends(p.group.Ready.Workload) {
		res, err := p.group.Works[i].Result()
		if how = workload.Failure(res); how == nil && err == nil {
			how = notebook.Say("too-short")
		} else if err != nil {
			how = notebook.ErrorMessage(err)
		}
	}
	return notebook.Say("work-ended", "guest", i+1, "until", until, "after_s", time.Since(p.began), "cause", how)
}

// tables reads page tables.
func (p *reading) tables(ctx context.Context, state string) *notebook.Message {
	at := time.Since(p.began)
	t, err := p.eyes.tables(ctx, p.group.Guests, p.group.Treatment, p.group.Ready.Workload.System)
	if err != nil {
		return notebook.Say("tables-unread", "cause", err)
	}
	t.State, t.AtS, t.ScanS = state, at.Seconds(), (time.Since(p.began) - at).Seconds()
	if cause := p.ended(inTables); cause != nil {
		return cause
	}
	p.kept.PageTables = append(p.kept.PageTables, t)
	return nil
}

// watch starts counting faults.
func (p *reading) watch() (cause *notebook.Message) {
	used, err := crowd.Used(p.group.Guests)
	if err == nil {
		p.faulting, err = p.eyes.faults(p.group.Guests, p.group.Treatment, p.group.Ready.Workload.System)
	}
	if err != nil {
		return notebook.Say("faults-uncounted", "cause", err)
	}
	p.used, p.watched = used, time.Now()
	return nil
}

// seen ends the counting. cpu is the CPU time of work that has ended; nil: the CPU time that the guests used since counting began.
func (p *reading) seen(cpu *time.Duration) (cause *notebook.Message) {
	took := time.Since(p.watched)
	if cpu == nil {
		now, err := crowd.Used(p.group.Guests)
		if err != nil {
			return notebook.Say("faults-uncounted", "cause", err)
		}
		now -= p.used
		cpu = &now
	}
	f, err := p.faulting.Stop()
	p.faulting = nil
	if err != nil {
		return notebook.Say("faults-uncounted", "cause", err)
	}
	f.OfS, f.CPUS = took.Seconds(), cpu.Seconds()
	p.kept.PageFaults = &f
	if f.Lost > 0 {
		p.trial.Warnings = append(p.trial.Warnings, notebook.Say("faults-lost", "faults", f.Lost))
	}
	return nil
}

// toTheEnd waits until every function has ended, and then ends the counting of their faults.
func (p *reading) toTheEnd(ctx context.Context) (cause *notebook.Message) {
	limit := time.NewTimer(p.group.Timeout)
	defer limit.Stop()
	var cpu time.Duration
	for i, w := range p.group.Works {
		select {
		case <-ctx.Done():
			return nil
		case <-limit.C:
			return notebook.Say("work-not-ended", "guest", i+1, "after", p.group.Timeout)
		case <-w.Alive().Done():
		}
		res, err := w.Result()
		if err != nil {
			return notebook.Say("of-guest", "guest", i+1, "cause", err)
		}
		if cause := workload.Failure(res); cause != nil {
			return notebook.Say("of-guest", "guest", i+1, "cause", cause)
		}
		cpu += time.Duration((res.UserS + res.SystemS) * float64(time.Second))
	}
	if p.faulting == nil {
		return nil
	}
	return p.seen(&cpu)
}

// load asks the guests' services again and again until ctx ends. The function it returns then says which load failed before that.
func (p *reading) load(ctx context.Context) (failed func() *notebook.Message) {
	ended := make(chan *notebook.Message, len(p.group.Works))
	n := 0
	for i, w := range p.group.Works {
		if w.Place == nil {
			continue
		}
		n++
		go func() { ended <- w.Again(ctx, i, p.group.Timeout) }()
	}
	return func() (cause *notebook.Message) {
		for range n {
			if c := <-ended; cause == nil {
				cause = c
			}
		}
		return cause
	}
}

// stop ends an observation that was not ended in the usual way.
func (p *reading) stop() error {
	if p.faulting == nil {
		return nil
	}
	_, err := p.faulting.Stop()
	return err
}
