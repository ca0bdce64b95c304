package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"tare/lab/crowd"
	"tare/lab/image"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
)

// Rehearse does each workload's work on bare metal without recording it, if the study has bare metal. It thus finds a command that is
// missing or always fails before the study begins. short names the work that is too short on this host for what the design asks.
func (p *Plan) Rehearse(ctx context.Context, lab Lab, say image.Progress) (short []Short, err error) {
	tried := map[string]bool{}
	for _, t := range p.Study.Treatments {
		label := t.Label()
		ready := p.ready[label]
		alone := t // without neighbours it is the same work
		alone.Factors = maps.Clone(t.Factors)
		delete(alone.Factors, notebook.FactorNeighbours.Name)
		once := alone.Label()
		if t.Platform != notebook.BM || ready == nil || tried[once] {
			continue
		}
		tried[once] = true
		waits := ""
		if s := ready.Workload.Service; s != nil { // with a wrong port nothing else is printed for this time
			waits = fmt.Sprintf("; it may take up to %v to answer on port %d", s.Starting(false), s.Port)
		}
		say("rehearsing " + label + " on bare metal" + waits)
		values, cause, err := p.rehearse(ctx, lab, t, ready)
		if err != nil {
			return nil, fmt.Errorf("workload %s: its rehearsal: %w", t.Workload, err)
		}
		if cause != nil {
			hint := ""
			if strings.Contains(cause.String(), "ead-only file system") { // programs begin it with R or r
				hint = " (on bare metal, everything except {scratch} and /tmp is read-only)"
			}
			return nil, fmt.Errorf("workload %s failed when it was tried once on bare metal, before the study: %w%s", t.Workload, &notebook.Error{Says: cause}, hint)
		}
		apart, turns := p.apart(t)
		if s, ok := tooShort(rehearsed{p.Study.Design, t, label, ready.Workload, p.open[label], apart, turns}, values); ok {
			short = append(short, s)
		}
	}
	return short, nil
}

// rehearse makes one trial of the treatment, and more if work of its length may be too short for the design.
func (p *Plan) rehearse(ctx context.Context, lab Lab, t notebook.Treatment, ready *workload.Ready) (values []float64, cause *notebook.Message, err error) {
	id := fmt.Sprintf("rehearsal-%d", os.Getpid()) // cgroups are the same for all state folders of the host
	bench := measure.Bench{Lab: lab, Until: func(usual time.Duration) time.Time { return time.Now().Add(usual) }, Note: func(*notebook.Message) {}}
	g := p.subject(bench, measure.Cell{Treatment: t, Ready: ready, ID: id, Rehearsal: true})
	if err := g.Make(ctx); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, crowd.Destroy(ctx, g.Guest())) }()
	cause, err = g.SetUp(ctx)
	if err == nil && ctx.Err() != nil { // work that Tare cut short says nothing about the workload
		cause, err = nil, errors.Join(ctx.Err(), g.Service().TakeDown(ctx))
	}
	if cause != nil || err != nil {
		return nil, cause, err
	}
	defer func() { err = errors.Join(err, g.Service().TakeDown(ctx)) }()
	began, several := time.Now(), ready.Workload.Length != "" && p.Study.Design.Most(t) > 1 // one round has no interval
	for i := 0; i == 0 || several && i < rehearsals && time.Since(began) < rehearsing; i++ {
		tr, _, err := g.Trial(ctx, measure.Step{Role: measure.Rehearsal})
		if err := cmp.Or(err, ctx.Err()); err != nil || tr.Failure != nil {
			return nil, tr.Failure, err
		}
		p.remember(t, tr.ElapsedS)
		if i > 0 { // the first warms up for the others
			values = append(values, tr.Value)
		}
	}
	return values, nil, nil
}

const (
	rehearsals = 33              // the most trials of a rehearsal, for work whose length can be chosen
	rehearsing = 5 * time.Second // no further trial begins after this time
)

// apart is the average distance between two trials that are compared, in lengths of a trial. For n guests in random order it is (n+1)/3
// guests. Where guests take turns, each has one trial in between; turns reports whether they do.
func (p *Plan) apart(t notebook.Treatment) (lengths float64, turns bool) {
	if n := p.together[baselinesOf(&p.Study).group(t.ID)]; n > 0 {
		return float64(n+1) / 3, true
	}
	n := 0
	for _, o := range p.Study.Treatments {
		if o.Label() == t.Label() {
			n++
		}
	}
	return float64(n+1) / 3 * float64(p.Study.Design.Warmups+p.Study.Design.Trials), false
}
