package study

import (
	"context"
	"maps"
	"strconv"
	"time"

	"tare/lab/engine"
	"tare/lab/studyfile"
	"tare/notebook"
)

// Prober says what a host can do.
type Prober interface {
	// Host is the machine as found.
	Host() notebook.Host
	// UseKernels registers kernel files for guests by the names that treatments use.
	UseKernels(files map[string]string)
	// Accelerator chooses the accelerator for guests with the named kernel, of an engine that has several accelerators. want is
	// "auto" or one of them, and emulate allows software emulation. An error says why there is none.
	Accelerator(ctx context.Context, k engine.Kind, kernel, want string, emulate bool) (string, error)
	// Supports says why the host cannot run the treatment; nil: it can.
	Supports(ctx context.Context, t notebook.Treatment) error
}

// Facts are what an estimate of a run rests on, in addition to the study.
type Facts struct {
	Guest  func(t notebook.Treatment) notebook.Span                 // seconds that making and removing a guest take
	Run    func(t notebook.Treatment) (s notebook.Span, known bool) // seconds of one run, as measured before
	Built  func(w studyfile.Work) bool                              // the work's root exists
	Done   map[string]map[int]bool                                  // by treatment: rounds that the results folder has
	Budget time.Duration                                            // 0: none
	Able   bool                                                     // the host has all that the study's kind needs; otherwise the preview checks that
}

// Preview predicts what a run of the study would do on a host, and about how long it takes. It prepares nothing and starts nothing.
func Preview(ctx context.Context, host Prober, asked *studyfile.Asked, f Facts) (notebook.Study, notebook.Preview, error) {
	p, err := decide(ctx, host, asked, f.Able)
	if err != nil {
		return p.Study, notebook.Preview{}, err
	}
	return p.Study, estimateOf(p, f).preview(), nil
}

// estimateOf is an estimate of a plan whose workloads are not ready.
func estimateOf(p *planner, f Facts) estimate {
	e := estimate{planner: p, facts: f, works: map[string]studyfile.Work{}}
	for _, w := range p.asked.Works {
		e.works[w.Label()] = w
	}
	return e
}

// took is how long a run took in the rehearsal, in seconds.
type took struct {
	of notebook.Treatment
	s  float64
}

// remember notes how long the last run of a rehearsal took.
func (p *Plan) remember(t notebook.Treatment, seconds float64) {
	if p.took == nil {
		p.took = map[string]took{}
	}
	if seconds > 0 {
		p.took[t.Label()] = took{t, seconds}
	}
}

// Learn takes over the run times from the rehearsal of an earlier plan of the same study.
func (p *Plan) Learn(earlier *Plan) { p.took = earlier.took }

// Ahead predicts what a run of the plan will do, and about how long its rounds take. Its workloads are ready.
func (p *Plan) Ahead(asked *studyfile.Asked, f Facts) notebook.Preview {
	e := estimateOf(&planner{Plan: p, asked: asked}, f)
	e.ready = true
	return e.preview()
}

// rehearsed is how long one run of a treatment's work took in the rehearsal, which may have been of another length; 0: it is not known.
func (p *Plan) rehearsed(t notebook.Treatment, length string) float64 {
	if was, ok := p.took[t.Label()]; ok {
		return was.s
	}
	for _, was := range p.took {
		other := maps.Clone(was.of.Params)
		before, _ := strconv.ParseFloat(other[length], 64)
		now, _ := strconv.ParseFloat(t.Params[length], 64)
		if other[length] = t.Params[length]; before > 0 && now > 0 && was.of.Workload == t.Workload && maps.Equal(other, t.Params) {
			return was.s * now / before
		}
	}
	return 0
}
