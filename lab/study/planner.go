package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
)

// planner is a plan under construction.
type planner struct {
	*Plan
	asked *studyfile.Asked
	lab   Prober
	host  notebook.Host

	accels     map[string]string // by kernel
	noAccel    map[string]error
	impossible error // why this host cannot measure the kind; nil: it can
}

// NewPlan decides which treatments this host runs, and makes the workloads ready: it builds roots, compiles programs and prepares inputs.
func NewPlan(ctx context.Context, lab Lab, asked *studyfile.Asked, o workload.Options) (*Plan, error) {
	ch := asked.Choices
	p, err := decide(ctx, lab, asked, false)
	if err != nil {
		return nil, err
	}
	if ch.Begun != nil {
		if err := p.goesOn(*ch.Begun, ch.SeedChosen); err != nil {
			return nil, err
		}
	}
	if err := p.make(ctx, asked, o); err != nil {
		return nil, err
	}
	if err := p.busy(ctx, asked.Neighbour, o); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, lab); err != nil {
		return nil, err
	}
	if err := worthwhile(p.Study, ch.Only); err != nil {
		return nil, err
	}
	p.Study.Hash = asked.Hash(p.Study, p.ready)
	if p.Study.Design.Looks() > 0 { // not in the hash, so that folders older than Seen can be continued
		p.Study.Design.Seen = stats.LeastTrials
	}
	p.interleaved()
	return p.Plan, nil
}

// decide decides which treatments a host runs. able: the host has all that the study's kind needs; otherwise decide checks that. With an
// error, the planner holds what was decided before it.
func decide(ctx context.Context, host Prober, asked *studyfile.Asked, able bool) (*planner, error) {
	ch := asked.Choices
	p := &planner{asked: asked, lab: host, host: host.Host(), accels: map[string]string{}, noAccel: map[string]error{}}
	p.begin()
	fitting := p.fitting()
	if err := worthwhile(fitting, ch.Only); err != nil {
		return p, err // checked before a VM is booted to find its accelerator
	}
	host.UseKernels(asked.Kernels())
	if err := p.findAccelerators(ctx, fitting.Treatments); err != nil {
		return p, err
	}
	if asked.Config != nil && !able {
		p.impossible = asked.Config.Possible()
	}
	for _, w := range asked.Works {
		if err := p.add(ctx, w); err != nil {
			return p, err
		}
	}
	return p, errors.Join(worthwhile(p.Study, ch.Only), ch.Until.Decidable(p.Study))
}

// fitting is the study with the treatments for which the host is large enough.
func (p *planner) fitting() notebook.Study {
	study := notebook.Study{Name: p.asked.Spec.Name}
	for _, w := range p.asked.Works {
		for _, t := range p.asked.Treatments(w, p.host, func(string) string { return "" }, func(notebook.Treatment) bool { return true }) {
			if reason := fits(p.host, t); reason != nil {
				study.LeftOut = append(study.LeftOut, notebook.LeftOut{Treatment: t, Reason: reason})
			} else {
				study.Treatments = append(study.Treatments, t)
			}
		}
	}
	return study
}

// findAccelerators finds the accelerator for each kernel of the treatments' guests.
func (p *planner) findAccelerators(ctx context.Context, treatments []notebook.Treatment) error {
	for _, t := range treatments {
		k := p.engine(t)
		if _, asked := p.accels[t.Kernel]; !asked && len(k.Accelerators) > 0 {
			p.accels[t.Kernel], p.noAccel[t.Kernel] = p.lab.Accelerator(ctx, k, t.Kernel, p.asked.Choices.Accel, p.asked.Spec.AllowEmulation)
			if err := ctx.Err(); err != nil {
				return err // an interrupt does not mean that the host lacks something
			}
		}
	}
	return nil
}

// begin starts the plan, without treatments.
func (p *planner) begin() {
	s, ch := p.asked.Spec, p.asked.Choices
	p.Plan = &Plan{room: p.host.Memory, ready: map[string]*workload.Ready{}, open: map[string]bool{}, engines: p.asked.Engines(), rules: p.asked.Rules(), config: p.asked.Config}
	p.Study = notebook.Study{
		Version: notebook.Version, Tare: ch.Tare, Name: s.Name, Title: s.Title, Source: s.Source, Seed: ch.Seed,
		Created: time.Now().UTC(), Design: p.asked.Design, Metrics: map[string]notebook.Metric{}, Images: map[string]notebook.Image{},
		Figures: s.Figures, Claims: s.Claims, Explain: ch.Explain, LoadFrom: p.asked.LoadFrom(), KSM: s.KSM, Lengths: s.Lengths,
	}
	if p.config != nil {
		p.Study.Kind, p.Study.Config = p.asked.Kind.Name, p.config.Record()
	}
}

// add adds the treatments of a work.
func (p *planner) add(ctx context.Context, w studyfile.Work) error {
	can := func(t notebook.Treatment) bool { return fits(p.host, t) == nil && p.lab.Supports(ctx, t) == nil }
	for _, t := range p.asked.Treatments(w, p.host, func(kernel string) string { return p.accels[kernel] }, can) {
		if p.rules.BareMetal && t.Platform == notebook.BM {
			continue
		}
		if t.HostCores > 0 && t.HostCores == len(p.host.CPUs) {
			t.HostCores = 0 // that is all CPUs, which the study may ask for as well
			t.ID = studyfile.Identify(t)
		}
		if slices.ContainsFunc(p.Study.Treatments, func(o notebook.Treatment) bool { return o.ID == t.ID }) {
			continue
		}
		reason := p.leavesOut(ctx, t, w.Workload)
		if err := ctx.Err(); err != nil {
			return err // an interrupt does not mean that the host lacks something
		}
		if reason != nil {
			p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: reason})
			continue
		}
		if p.Study.Treatments = append(p.Study.Treatments, t); len(p.Study.Treatments) > notebook.MaxTreatments {
			return fmt.Errorf("study %s has more than %d configurations, the limit for one study: split it into several", p.Study.Name, notebook.MaxTreatments)
		}
		p.describe(t, w)
	}
	return nil
}

// leavesOut says why a treatment of the workload is left out; nil if it is not.
func (p *planner) leavesOut(ctx context.Context, t notebook.Treatment, w *workload.Workload) *notebook.Message {
	k := p.engine(t)
	if reason := cmp.Or(fits(p.host, t), neighboursFit(p.host, t)); reason != nil {
		return reason
	}
	switch {
	case w.Service != nil && t.Network == notebook.NetNone && len(k.Provisionings) == 0:
		return notebook.Say("layer-has-loopback-only")
	case w.Service != nil && t.Network == notebook.NetNone:
		return notebook.Say("service-without-network")
	case w.System && k.Boots() != nil:
		return notebook.ErrorMessage(k.Boots())
	case w.SharesWith(t.Params) && k.Shares() != nil:
		return notebook.ErrorMessage(k.Shares())
	case p.noAccel[t.Kernel] != nil && len(k.Accelerators) > 0:
		return notebook.ErrorMessage(p.noAccel[t.Kernel])
	}
	if p.config != nil {
		if why := p.config.LeavesOut(t, k, w); why != nil {
			return why
		}
	}
	if p.impossible != nil {
		return notebook.ErrorMessage(p.impossible)
	}
	return notebook.ErrorMessage(p.lab.Supports(ctx, t))
}

// describe records what a treatment measures and what its guests are made of.
func (p *planner) describe(t notebook.Treatment, of studyfile.Work) {
	w := of.Workload
	if t.Kernel != "" {
		put(&p.Study.Kernels, t.Kernel, p.asked.Kernel(t.Kernel))
	}
	first, also := w.Primary(), w.Secondary()
	if p.config != nil {
		var drawn []string
		for _, f := range p.Study.Figures {
			drawn = append(drawn, f.Metric)
		}
		first, also = p.config.Metrics(w, drawn)
	}
	if p.asked.Beside(of) {
		also = slices.Concat(also, []notebook.Metric{notebook.OwnShare, notebook.Fairness})
	}
	p.Study.Metrics[w.Name] = first
	p.recordSyncs(w, t)
	if w.Service != nil {
		put(&p.Study.Ports, w.Name, w.Service.Port)
	}
	if len(also) > 0 {
		put(&p.Study.Also, w.Name, also)
	}
}

// recordSyncs records whether the results of a treatment's workload depend on synced writes, if that is known.
func (p *Plan) recordSyncs(w *workload.Workload, t notebook.Treatment) {
	if synced, known := w.Syncs.With(t.Params); known {
		put(&p.Study.Syncs, t.Label(), synced)
	}
}

// put adds a value to a map of a study, and makes the map for the first value.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
