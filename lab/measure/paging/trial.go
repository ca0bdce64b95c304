//go:build linux

package paging

import (
	"context"
	"fmt"
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
func (p *reading) read(ctx context.Context) (cause string) {
	function := ends(p.group.Ready.Workload)
	if p.of.Tables {
		if cause := p.wait(ctx, p.of.InitialS, "before the initial state was read"); cause != "" {
			return cause
		}
		if cause := p.tables(ctx, record.Initial); cause != "" {
			return cause
		}
	}
	if function {
		return p.toTheEnd(ctx)
	}
	if p.of.SteadyS == 0 && p.of.FaultsS == 0 {
		return ""
	}
	settled := p.of.Tables && p.of.SteadyS > 0
	if !settled { // most faults come from what a load touches first
		if cause := p.watch(); cause != "" {
			return cause
		}
	}
	lctx, enough := context.WithCancel(ctx)
	loads := p.load(lctx)
	defer func() {
		enough()
		if failed := loads(); cause == "" {
			cause = failed
		}
	}()
	if settled {
		if cause := p.wait(ctx, p.of.SteadyS, "before the steady state was read"); cause != "" {
			return cause
		}
		if cause := p.tables(ctx, record.Steady); cause != "" {
			return cause
		}
	}
	if p.of.FaultsS > 0 {
		if settled {
			if cause := p.watch(); cause != "" {
				return cause
			}
		}
		if cause := p.wait(ctx, p.of.FaultsS, "while faults were counted"); cause != "" {
			return cause
		}
		return p.seen(nil)
	}
	return ""
}

// wait lets the guests work for a time, and says if a guest's work ends in that time.
func (p *reading) wait(ctx context.Context, seconds float64, what string) string {
	over, stop := context.WithCancel(ctx)
	defer stop()
	for _, w := range p.group.Works {
		defer context.AfterFunc(w.Alive(), stop)()
	}
	select {
	case <-over.Done():
	case <-time.After(time.Duration(seconds * float64(time.Second))): // how long the guests have worked is itself measured
	}
	return p.ended(what)
}

// ended says which guest's work has ended; empty if none has.
func (p *reading) ended(what string) string {
	i := slices.IndexFunc(p.group.Works, (*crowd.Service).Over)
	if i < 0 {
		return ""
	}
	how := p.group.Works[i].How()
	if ends(p.group.Ready.Workload) {
		res, err := p.group.Works[i].Result()
		if how = workload.Failure(res); how == "" && err == nil {
			how = "more data, or a shorter paging: initial:, was expected"
		} else if err != nil {
			how = err.Error()
		}
	}
	return fmt.Sprintf("the work in guest %d ended %s, %.3g s after all had begun: %s", i+1, what, time.Since(p.began).Seconds(), how)
}

// tables reads page tables.
func (p *reading) tables(ctx context.Context, state string) string {
	at := time.Since(p.began)
	t, err := p.eyes.tables(ctx, p.group.Guests, p.group.Treatment, p.group.Ready.Workload.System)
	if err != nil {
		return "page tables: " + err.Error()
	}
	t.State, t.AtS, t.ScanS = state, at.Seconds(), (time.Since(p.began) - at).Seconds()
	if cause := p.ended("while its page tables were read"); cause != "" {
		return cause
	}
	p.kept.PageTables = append(p.kept.PageTables, t)
	return ""
}

// watch starts counting faults.
func (p *reading) watch() (cause string) {
	used, err := crowd.Used(p.group.Guests)
	if err == nil {
		p.faulting, err = p.eyes.faults(p.group.Guests, p.group.Treatment, p.group.Ready.Workload.System)
	}
	if err != nil {
		return "page faults: " + err.Error()
	}
	p.used, p.watched = used, time.Now()
	return ""
}

// seen ends the counting. cpu is the CPU time of work that has ended; nil: the CPU time that the guests used since counting began.
func (p *reading) seen(cpu *time.Duration) (cause string) {
	took := time.Since(p.watched)
	if cpu == nil {
		now, err := crowd.Used(p.group.Guests)
		if err != nil {
			return "page faults: " + err.Error()
		}
		now -= p.used
		cpu = &now
	}
	f, err := p.faulting.Stop()
	p.faulting = nil
	if err != nil {
		return "page faults: " + err.Error()
	}
	f.OfS, f.CPUS = took.Seconds(), cpu.Seconds()
	p.kept.PageFaults = &f
	if f.Lost > 0 {
		p.trial.Warnings = append(p.trial.Warnings, notebook.Say("faults-lost", "faults", f.Lost))
	}
	return ""
}

// toTheEnd waits until every function has ended, and then ends the counting of their faults.
func (p *reading) toTheEnd(ctx context.Context) (cause string) {
	limit := time.NewTimer(p.group.Timeout)
	defer limit.Stop()
	var cpu time.Duration
	for i, w := range p.group.Works {
		select {
		case <-ctx.Done():
			return ""
		case <-limit.C:
			return fmt.Sprintf("the work in guest %d had not ended after %v", i+1, p.group.Timeout)
		case <-w.Alive().Done():
		}
		res, err := w.Result()
		if err != nil {
			return fmt.Sprintf("guest %d: %v", i+1, err)
		}
		if cause := workload.Failure(res); cause != "" {
			return fmt.Sprintf("guest %d: %s", i+1, cause)
		}
		cpu += time.Duration((res.UserS + res.SystemS) * float64(time.Second))
	}
	if p.faulting == nil {
		return ""
	}
	return p.seen(&cpu)
}

// load asks the guests' services again and again until ctx ends. The function it returns then says which load failed before that.
func (p *reading) load(ctx context.Context) (failed func() string) {
	ended := make(chan string, len(p.group.Works))
	n := 0
	for i, w := range p.group.Works {
		if w.Place == nil {
			continue
		}
		n++
		go func() { ended <- w.Again(ctx, i, p.group.Timeout) }()
	}
	return func() (cause string) {
		for range n {
			if c := <-ended; cause == "" {
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
