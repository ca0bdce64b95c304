// Package study plans and runs an experiment. Treatments run in rounds of random order, in which guests that are compared live at the
// same time and do their trials in random turns (turns.go, batch.go). Guests and trials are two levels of variance. Warm-ups precede the
// trials of a guest, and a stopping rule ends the rounds. The notebook holds every trial before the next begins.
//
// [NewPlan] fits what a study asks for (package studyfile) to a host, and [Run.Do] runs the [Plan]. Between rounds, a run decides four
// things from the record, each in a file of its own:
//   - what is still unknown: rule.go, or goal.go for a [Goal]
//   - what the next round is for if time is short: choose.go
//   - how many trials a guest does: allocation.go
//   - whether guests cost too much time for their trials: preparation.go
package study

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/ksm"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
)

// Lab is what a study needs from the machine. Its methods are called one at a time. Create is the exception: several calls may run
// at once after one guest of the treatment has been made.
type Lab interface {
	measure.Lab
	Prober
	// Prepare makes what all guests of the treatment need, so that no guest pays for it.
	Prepare(ctx context.Context, t notebook.Treatment, root *image.Image) error
}

// Plan is a study that is ready to run: its treatments, what their guests are made of, and what is left out.
type Plan struct {
	Study notebook.Study
	ready map[string]*workload.Ready // by Label
	open  map[string]bool            // by Label: its length may be chosen
	work  map[string]*workload.Ready // the work of neighbours, by the kinds of notebook.Busy

	took map[string]took // by Label: how long a run took in the rehearsal

	engines engine.Registry
	rules   measure.Rules // of the kind of study

	room     int64          // the host's memory, in bytes
	together map[string]int // by group: how many of its guests live at the same time; none: they follow each other
	config   measure.Config // how the kind measures; nil without a kind
}

// engine is the treatment's engine.
func (p *Plan) engine(t notebook.Treatment) engine.Kind {
	k, err := p.engines.Find(t.Platform, t.Engine)
	if err != nil { // reading the study file has found it
		panic(err)
	}
	return k
}

// Set changes the host's settings as the study asks, for the time of its run. notes list the changes; undo, unless nil, reverts them.
func (p *Plan) Set(j *journal.Journal) (notes []*notebook.Message, undo func(context.Context) error, err error) {
	if p.config != nil {
		if notes, undo, err = p.config.Set(j); err != nil {
			return nil, nil, err
		}
	}
	if p.Study.KSM == "" {
		return notes, undo, nil
	}
	m, err := ksm.Merge(j, p.Study.KSM)
	if err != nil {
		return nil, undo, fmt.Errorf("ksm: %w", err)
	}
	kind := undo
	undo = func(ctx context.Context) error {
		err := m.End(ctx)
		if kind != nil {
			err = errors.Join(err, kind(ctx))
		}
		return err
	}
	return append(notes, notebook.Say("ksm-for-the-run", "as", p.Study.KSM)), undo, nil
}

// timeout is how long a trial may take.
func (p *Plan) timeout() time.Duration {
	return time.Duration(p.Study.Design.TimeoutS * float64(time.Second))
}

// readyOf is the treatment's work.
func (p *Plan) readyOf(t notebook.Treatment) *workload.Ready {
	return p.ready[t.Label()]
}

// kinds are the kinds (of notebook.Busy) of the neighbours of the treatment's guest, each at least once.
func (p *Plan) kinds(t notebook.Treatment) []string {
	if p.config != nil && len(p.config.Neighbours()) > 0 {
		return p.config.Neighbours()
	}
	return notebook.NeighboursOf(t).Kinds(2) // two seats are enough for one of each kind
}

// workOf is the work of a neighbour of that kind, next to a treatment's guest.
func (p *Plan) workOf(t notebook.Treatment, kind string) *workload.Ready {
	if kind != notebook.BusyWork {
		return p.work[kind]
	}
	same := *p.readyOf(t)
	w := same.Workload
	same.Params = maps.Clone(same.Params)
	same.Params[w.Length] = strconv.Itoa(w.Params[w.Length].Most(math.MaxInt32))
	return &same
}

// subject is the study's measurement in one guest.
func (p *Plan) subject(b measure.Bench, c measure.Cell) measure.Subject {
	c.Engine = p.engine(c.Treatment)
	b.Timeout, b.Tracers, b.Neighbour = p.timeout(), p.Study.Explain, p.workOf
	if p.config == nil {
		return measure.NewPlain(b, c)
	}
	return p.config.Subject(b, c)
}
