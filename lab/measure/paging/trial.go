//go:build linux

package paging

import (
	"context"
	"errors"
	"slices"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/memory"
	"tare/lab/pagetable"
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
	uses     uses // nil: not seen
	making   making
	faulting faulting
	used     time.Duration // CPU time of the guests when counting began
	watched  time.Time
	ever     pagetable.Used // what the guests used until the last state
}

// read does what the study asks for, from the moment when all guests work; cause says why it cannot.
func (p *reading) read(ctx context.Context) (cause *notebook.Message) {
	function := ends(p.group.Ready.Workload)
	if p.of.Tables {
		if cause := p.state(ctx, p.of.InitialS, record.Initial); cause != nil {
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
		if cause := p.state(ctx, p.of.SteadyS, record.Steady); cause != nil {
			return cause
		}
	}
	if p.of.FaultsS > 0 {
		if settled {
			if cause := p.watch(); cause != nil {
				return cause
			}
		}
		if cause := p.window(ctx, &p.kept.PageFaults); cause != nil || p.of.LaterS == 0 {
			return cause
		}
		return p.later(ctx)
	}
	return nil
}

// later counts page faults once more, when most of what the load touches is mapped.
func (p *reading) later(ctx context.Context) (cause *notebook.Message) {
	if cause := p.wait(ctx, p.of.LaterS, inFaults); cause != nil {
		return cause
	}
	if cause := p.watch(); cause != nil {
		return cause
	}
	return p.window(ctx, &p.kept.Later)
}

// window counts faults for the study's time from when counting began.
func (p *reading) window(ctx context.Context, kept **notebook.PageFaults) (cause *notebook.Message) {
	if cause := p.wait(ctx, p.of.FaultsS, inFaults); cause != nil {
		return cause
	}
	return p.seen(nil, kept)
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

// state lets the guests work for a time, and reads their page tables at its end, with the entries that the processor used in each half of it.
func (p *reading) state(ctx context.Context, seconds float64, state string) *notebook.Message {
	if p.uses == nil || seconds == 0 {
		if cause := p.wait(ctx, seconds, state); cause != nil {
			return cause
		}
		return p.tables(ctx, state, nil, 0)
	}
	var half [3]pagetable.Used // the first is what was used before the time
	var at [3]time.Time
	for i := range half {
		if i > 0 {
			if cause := p.wait(ctx, seconds/2, state); cause != nil {
				return cause
			}
		}
		var err error
		if half[i], err = p.uses.Since(p.group.Guests, p.group.Treatment, p.group.Ready.Workload.System); err != nil {
			return notebook.Say("tables-unread", "cause", err)
		}
		at[i] = time.Now()
		p.ever.Add(half[i])
	}
	return p.tables(ctx, state, &memory.Uses{Repeatedly: half[1].And(half[2]), Ever: p.ever}, at[2].Sub(at[0]).Seconds()/2)
}

// tables reads page tables. Of uses, Repeatedly is in each of two halves of so many seconds.
func (p *reading) tables(ctx context.Context, state string, uses *memory.Uses, halves float64) *notebook.Message {
	at := time.Since(p.began)
	t, err := p.eyes.tables(ctx, p.group.Guests, p.group.Treatment, p.group.Ready.Workload.System, uses)
	if err != nil {
		return notebook.Say("tables-unread", "cause", err)
	}
	t.State, t.HalvesS, t.AtS, t.ScanS = state, halves, at.Seconds(), (time.Since(p.began) - at).Seconds()
	if cause := p.ended(inTables); cause != nil {
		return cause
	}
	p.kept.PageTables = append(p.kept.PageTables, t)
	return nil
}

// watchUses begins to see which entries the processor uses. Where the host does not show that, a warning says why.
func (p *reading) watchUses() {
	uses, err := p.eyes.uses()
	if err != nil {
		p.trial.Warnings = append(p.trial.Warnings, notebook.Say("uses-unseen", "cause", err))
		return
	}
	p.uses, p.ever = uses, pagetable.Used{}
}

// watchMaking starts counting the faults of what makes the guests. Where the host does not show them, a warning says why.
func (p *reading) watchMaking(k engine.Kind) {
	m, err := p.eyes.making(k)
	if err != nil {
		p.trial.Warnings = append(p.trial.Warnings, notebook.Say("making-unseen", "cause", err))
		return
	}
	p.making = m
}

// next says which guest, from 0, is made next.
func (p *reading) next(guest int) error {
	if p.making == nil || guest == 0 { // the first exists
		return nil
	}
	return p.making.Making(guest)
}

// made ends the counting of the faults of what made the guests.
func (p *reading) made() {
	if p.making == nil {
		return
	}
	f, err := p.making.Stop()
	p.making = nil
	if err != nil {
		p.trial.Warnings = append(p.trial.Warnings, notebook.Say("making-unseen", "cause", err))
		return
	}
	p.kept.BringUp = &f
	p.lost(f)
}

// lost warns of faults that were not counted.
func (p *reading) lost(f notebook.PageFaults) {
	if f.Lost > 0 {
		p.trial.Warnings = append(p.trial.Warnings, notebook.Say("faults-lost", "faults", f.Lost))
	}
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

// seen ends the counting, and keeps the faults. cpu is the CPU time of work that has ended; nil: the CPU time that the guests used since
// counting began.
func (p *reading) seen(cpu *time.Duration, kept **notebook.PageFaults) (cause *notebook.Message) {
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
	*kept = &f
	p.lost(f)
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
	return p.seen(&cpu, &p.kept.PageFaults)
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

// stop ends the observations that still run.
func (p *reading) stop() (err error) {
	if p.uses != nil {
		p.uses.Close()
	}
	if p.making != nil {
		_, err = p.making.Stop()
	}
	if p.faulting != nil {
		_, ended := p.faulting.Stop()
		err = errors.Join(err, ended)
	}
	return err
}
