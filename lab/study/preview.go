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
	Built  func(w studyfile.Work) bool                              // the work's root is there
	Done   map[string]map[int]bool                                  // by treatment: rounds that the results folder has
	Budget time.Duration                                            // 0: none
	Able   bool                                                     // the host has all that the study's kind needs; otherwise it is asked
}

// Preview says what a run of the study would do on a host, and about how long it takes. It makes nothing ready and starts nothing.
func Preview(ctx context.Context, host Prober, asked *studyfile.Asked, f Facts) (notebook.Study, notebook.Preview, error) {
	p := &planner{asked: asked, lab: host, host: host.Host(), accels: map[string]string{}, noAccel: map[string]error{}}
	p.begin()
	fitting := p.fitting()
	if err := worthwhile(fitting, asked.Choices.Only); err != nil {
		return p.Study, notebook.Preview{}, err
	}
	host.UseKernels(asked.Kernels())
	if err := p.findAccelerators(ctx, fitting.Treatments); err != nil {
		return p.Study, notebook.Preview{}, err
	}
	if asked.Config != nil && !f.Able {
		p.impossible = asked.Config.Possible()
	}
	for _, w := range asked.Works {
		if err := p.add(ctx, w); err != nil {
			return p.Study, notebook.Preview{}, err
		}
	}
	if err := worthwhile(p.Study, asked.Choices.Only); err != nil {
		return p.Study, notebook.Preview{}, err
	}
	if err := asked.Choices.Until.Decidable(p.Study); err != nil {
		return p.Study, notebook.Preview{}, err
	}
	e := estimate{planner: p, facts: f, works: map[string]studyfile.Work{}}
	for _, w := range asked.Works {
		e.works[w.Label()] = w
	}
	return p.Study, e.preview(), nil
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

// Learn takes over what the rehearsal of an earlier plan of the same study has seen.
func (p *Plan) Learn(earlier *Plan) { p.took = earlier.took }

// Ahead says what a run of the plan will do, and about how long its rounds take. Its workloads are ready.
func (p *Plan) Ahead(asked *studyfile.Asked, f Facts) notebook.Preview {
	e := estimate{planner: &planner{Plan: p, asked: asked}, facts: f, works: map[string]studyfile.Work{}, ready: true}
	for _, w := range asked.Works {
		e.works[w.Label()] = w
	}
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
