//go:build linux

package session

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/setting"
	"tare/lab/study"
	"tare/lab/studyfile"
	"tare/notebook"
)

// Preview is what a run would do, with its study and host.
type Preview struct {
	notebook.Preview
	Plan notebook.Study
	Host notebook.Host
}

// Foresee says what a run would do, on this host or on a recorded one. It makes no guest, builds no image, and changes nothing on the host. Any user can call it. It
// lists as not tried what needs a guest or root to find out.
func Foresee(ctx context.Context, q Request) (v Preview, err error) {
	g := &glance{l: newLab(func(string) {}), untried: map[string]notebook.Untried{}, answers: map[string]notebook.Capability{}}
	if q.Recorded != nil {
		g.record(*q.Recorded)
	} else if g.l.host, err = host.Inspect(ctx); err != nil {
		return v, err
	}
	if g.l.env.State, err = stateDir(); err != nil {
		return v, err
	}
	facts := study.Facts{Guest: usualCost, Built: g.built, Able: g.recorded}
	var measured []string
	if q.Recorded == nil && notebook.Exists(q.Out) {
		f, err := q.begun(g.l.host)
		if err != nil {
			return v, err
		}
		g.take(f.Host)
		q.Choices.Begun, q.Spec.Lengths = &f.Study, f.Study.Lengths
		if err := remember(&facts, f); err != nil {
			return v, err
		}
		measured = append(measured, q.Out)
	}
	if !q.Deadline.IsZero() {
		facts.Budget = time.Until(q.Deadline).Round(time.Second)
	}
	asked, err := q.Spec.Ask(q.Workloads, q.Choices)
	if err != nil {
		return v, err
	}
	v.Plan, v.Preview, err = study.Preview(ctx, g, asked, facts)
	if err == nil {
		err = q.check(v.Plan, g.l.host)
	}
	v.Host, v.Measured = g.l.host, measured
	for _, name := range slices.Sorted(maps.Keys(g.untried)) {
		u := g.untried[name]
		for _, t := range v.Treatments {
			if g.needs[t.ID] == name {
				u.Configurations++
			}
		}
		if u.Configurations > 0 {
			v.Untried = append(v.Untried, u)
		}
	}
	return v, err
}

// Usual estimates how long a study takes on a host that has everything the study needs, with nothing built yet.
func Usual(ctx context.Context, asked *studyfile.Asked) (notebook.Preview, error) {
	_, v, err := study.Preview(ctx, able{}, asked, study.Facts{Able: true, Guest: usualCost, Built: func(studyfile.Work) bool { return false }})
	return v, err
}

// usualCost is the cost of a guest by its engine's table.
func usualCost(t notebook.Treatment) notebook.Span {
	k, err := Engines.Find(t.Platform, t.Engine)
	if err != nil {
		return notebook.Span{}
	}
	if t.Accelerator != "" && t.Accelerator != notebook.KVM {
		return k.TakesEmulated
	}
	return k.Takes
}

// remember adds the measurements of a results folder of this host to the facts.
func remember(facts *study.Facts, f *notebook.Folder) error {
	table := facts.Guest
	making, runs := map[string][]float64{}, map[string][]float64{}
	facts.Done = map[string]map[int]bool{}
	for _, g := range f.Guests {
		making[g.Treatment] = append(making[g.Treatment], g.ProvisionS)
	}
	err := f.Trials(func(t *notebook.Trial) error {
		if facts.Done[t.Treatment] == nil {
			facts.Done[t.Treatment] = map[int]bool{}
		}
		facts.Done[t.Treatment][t.Round] = true
		if t.Failure == nil && t.ElapsedS > 0 {
			runs[t.Treatment] = append(runs[t.Treatment], t.ElapsedS)
		}
		return nil
	})
	facts.Guest = func(t notebook.Treatment) notebook.Span {
		if all := making[t.ID]; len(all) > 0 { // removing takes about as long as making, and rarely longer than twice that
			return notebook.Span{Low: slices.Min(all), High: 3*slices.Max(all) + 0.1}
		}
		return table(t)
	}
	facts.Run = func(t notebook.Treatment) (notebook.Span, bool) {
		all := runs[t.ID]
		if len(all) == 0 {
			return notebook.Span{}, false
		}
		return notebook.Span{Low: 0.9 * slices.Min(all), High: 1.2 * slices.Max(all)}, true
	}
	return err
}

// glance is this host as far as it can be known without a guest.
type glance struct {
	l        *Lab
	recorded bool                           // the host is not this one
	answers  map[string]notebook.Capability // by capability
	untried  map[string]notebook.Untried
	needs    map[string]string // by treatment: an untried capability
}

// record makes the host another one, of which only its record is known.
func (g *glance) record(h notebook.Host) {
	g.l.host, g.recorded = h, true
	g.take(h)
}

// take takes over what a host's record says about its capabilities.
func (g *glance) take(h notebook.Host) {
	for _, c := range h.Capabilities {
		g.answers[c.Name] = c
	}
}

// Host implements study.Prober.
func (g *glance) Host() notebook.Host { return g.l.host }

// UseKernels implements study.Prober.
func (g *glance) UseKernels(files map[string]string) { g.l.UseKernels(files) }

// built reports whether the work's root is in the store.
func (g *glance) built(w studyfile.Work) bool {
	of := w.Workload.Image
	return !g.recorded && of.Reference == "" && image.Has(filepath.Join(g.l.env.State, "images"), image.Recipe{Suite: of.Suite, Packages: of.Packages})
}

// ask answers a capability of the kind.
func (g *glance) ask(ctx context.Context, k engine.Kind, kernel, name string) notebook.Capability {
	c, known := g.answers[name]
	switch {
	case g.recorded && !known:
		c = notebook.Capability{Name: name, Answer: notebook.Inconclusive, Why: "the record of the host does not say"}
	case !g.recorded && (!known || kernel != ""):
		c = k.QuickProbe(ctx, g.l.engine(k, kernel), name)
		g.answers[name] = c
	}
	if c.Answer == notebook.Inconclusive {
		g.untried[name] = notebook.Untried{Name: name, Why: c.Why}
	}
	return c
}

// Accelerator implements study.Prober. It takes the preferred one unless that is known to fail.
func (g *glance) Accelerator(ctx context.Context, k engine.Kind, kernel, want string, emulate bool) (string, error) {
	var why []*notebook.Message
	for _, name := range candidates(k, want, emulate) {
		c := g.ask(ctx, k, kernel, name)
		if c.Answer != notebook.NotSupported {
			return name, nil
		}
		why = append(why, notebook.Say("accelerator-missing", "accelerator", name, "cause", c.Why))
	}
	if want == "auto" && !emulate {
		why = append(why, notebook.Say("emulation-not-allowed"))
	}
	return "", &notebook.Error{Says: notebook.Several(why)}
}

// Supports implements study.Prober.
func (g *glance) Supports(ctx context.Context, t notebook.Treatment) error {
	k, err := Engines.Find(t.Platform, t.Engine)
	if err != nil {
		return err
	}
	if err := k.Supports(t); err != nil {
		return err
	}
	if _, err := devicesOf(t); err != nil {
		return err
	}
	if files := setting.For(t); os.Geteuid() == 0 && !g.recorded {
		if err := setting.Host.Supports(files); err != nil {
			return err
		}
	}
	if t.HostCores > 0 {
		g.open(t, "offline CPUs", "the run takes CPUs offline to find out")
	}
	if name := k.Needs(t); name != "" {
		switch c := g.ask(ctx, k, t.Kernel, name); c.Answer {
		case notebook.NotSupported:
			return errors.New(strings.TrimSuffix(c.Why+"; "+c.Do, "; "))
		case notebook.Inconclusive:
			g.open(t, name, c.Why)
		}
	}
	return nil
}

// open records that a treatment needs something untried.
func (g *glance) open(t notebook.Treatment, name, why string) {
	if g.needs == nil {
		g.needs = map[string]string{}
	}
	g.needs[t.ID] = name
	g.untried[name] = notebook.Untried{Name: name, Why: why}
}

// able is a host that supports everything.
type able struct{}

// Host implements study.Prober.
func (able) Host() notebook.Host {
	h := notebook.Host{Memory: 1 << 40}
	for i := range 256 {
		h.CPUs = append(h.CPUs, notebook.CPU{ID: i})
	}
	return h
}

// UseKernels implements study.Prober.
func (able) UseKernels(map[string]string) {}

// Accelerator implements study.Prober.
func (able) Accelerator(_ context.Context, k engine.Kind, _, _ string, _ bool) (string, error) {
	return k.Accelerators[0], nil
}

// Supports implements study.Prober.
func (able) Supports(_ context.Context, t notebook.Treatment) error {
	k, err := Engines.Find(t.Platform, t.Engine)
	if err != nil {
		return err
	}
	return k.Supports(t)
}

// begins says what the rounds of a plan, whose workloads are ready, will do.
func (q Request) begins(plan *study.Plan, show Show) error {
	asked, err := q.Spec.Ask(q.Workloads, q.Choices)
	if err != nil {
		return err
	}
	facts := study.Facts{Guest: usualCost, Built: func(studyfile.Work) bool { return true }}
	f, err := notebook.Read(q.Out)
	if err == nil {
		err = remember(&facts, f)
	}
	if err != nil {
		return err
	}
	if !q.Deadline.IsZero() {
		facts.Budget = max(time.Until(q.Deadline), 0).Round(time.Second)
	}
	show.Begins(plan.Ahead(asked, facts))
	return nil
}
