// Package study plans and runs an experiment. Treatments are run in rounds of random order. Guests and trials are two levels of
// variance. There are warm-ups, a stopping rule, and a notebook that holds every trial before the next begins (design, sections 5
// and 6).
package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/measure"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
)

// Lab is what a study needs from the machine. Its methods are called one at a time. Create is the exception: several calls may run
// at once after one guest of the treatment has been made.
type Lab interface {
	measure.Lab
	// Host is the machine as found.
	Host() notebook.Host
	// UseKernels registers kernel files for guests by the names that treatments use.
	UseKernels(files map[string]string)
	// Accelerator chooses the accelerator for guests with the named kernel, of an engine that has several accelerators. want is
	// "auto" or one of them, and emulate allows software emulation. An error says why there is none.
	Accelerator(ctx context.Context, k engine.Kind, kernel, want string, emulate bool) (string, error)
	// Supports says why the host cannot run the treatment; nil: it can.
	Supports(ctx context.Context, t notebook.Treatment) error
	// Prepare makes what all guests of the treatment need, so that no guest pays for it.
	Prepare(ctx context.Context, t notebook.Treatment, root *image.Image) error
}

// Plan is a study that is ready to run: what is done, with what, and what is left out.
type Plan struct {
	Study notebook.Study
	ready map[string]*workload.Ready // by Label
	open  map[string]bool            // by Label: its length may be chosen
	work  map[string]*workload.Ready // what neighbours do, by one of notebook.Busy

	engines engine.Registry
	rules   measure.Rules  // of the kind of study
	config  measure.Config // how it is measured; nil without a kind
}

// engine is the treatment's engine.
func (p *Plan) engine(t notebook.Treatment) engine.Kind {
	k, err := p.engines.Find(t.Platform, t.Engine)
	if err != nil { // found before, when the study file was read
		panic(err)
	}
	return k
}

// Set changes the host as the study asks, for the time of its run. notes say what was changed; undo, unless nil, changes it back.
func (p *Plan) Set(j *journal.Journal) (notes []string, undo func(context.Context) error, err error) {
	if p.config == nil {
		return nil, nil, nil
	}
	return p.config.Set(j)
}

// timeout is how long a trial may take.
func (p *Plan) timeout() time.Duration {
	return time.Duration(p.Study.Design.TimeoutS * float64(time.Second))
}

// spareMemory is what a guest's size must leave of the host's memory for the host itself, in bytes.
const spareMemory = 512 << 20

// fits says why the host is too small for a treatment; nil: it is large enough.
func fits(h notebook.Host, t notebook.Treatment) error {
	cores, n := t.Instance.Cores, len(h.CPUs)
	switch {
	case t.HostCores > n:
		return fmt.Errorf("it is about a host with %d CPUs and this one has %d", t.HostCores, n)
	case cores > float64(n):
		return fmt.Errorf("it needs %g cores and the host has %d", cores, n)
	case t.HostCores > 0 && cores > float64(t.HostCores):
		return fmt.Errorf("it needs %g cores and the host is made one of %d", cores, t.HostCores)
	case t.Instance.Memory > h.Memory-spareMemory:
		return fmt.Errorf("it needs %g GB of memory and the host has %.1f GB, of which half a GB stays the host's own",
			float64(t.Instance.Memory)/(1<<30), float64(h.Memory)/(1<<30))
	}
	return nil
}

// recordSyncs records whether the results of a treatment's workload depend on synced writes, if that is known.
func (p *Plan) recordSyncs(w *workload.Workload, t notebook.Treatment) {
	synced, known := w.Syncs.With(t.Params)
	if !known {
		return
	}
	if p.Study.Syncs == nil {
		p.Study.Syncs = map[string]bool{}
	}
	p.Study.Syncs[t.Label()] = synced
}

// planner is a plan under construction.
type planner struct {
	*Plan
	asked *studyfile.Asked
	lab   Lab
	host  notebook.Host

	accels     map[string]string // by kernel
	noAccel    map[string]error
	impossible error // why this host cannot measure the kind at all; nil: it can
}

// NewPlan decides what is run of what is asked, and makes the workloads ready: it builds roots, compiles programs and prepares inputs.
func NewPlan(ctx context.Context, lab Lab, asked *studyfile.Asked, o workload.Options) (*Plan, error) {
	ch := asked.Choices
	p := &planner{asked: asked, lab: lab, host: lab.Host(), accels: map[string]string{}, noAccel: map[string]error{}}
	p.begin()
	fitting := p.fitting()
	if err := worthwhile(fitting, ch.Only); err != nil {
		return nil, err // checked before a VM is booted to find its accelerator
	}
	lab.UseKernels(asked.Kernels())
	if err := p.findAccelerators(ctx, fitting.Treatments); err != nil {
		return nil, err
	}
	if asked.Config != nil {
		p.impossible = asked.Config.Possible()
	}
	for _, w := range asked.Works {
		if err := p.add(ctx, w); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(worthwhile(p.Study, ch.Only), ch.Until.Decidable(p.Study)); err != nil {
		return nil, err
	}
	if ch.Begun != nil {
		if err := p.goesOn(*ch.Begun, ch.SeedChosen); err != nil {
			return nil, err
		}
	}
	if err := p.make(ctx, o); err != nil {
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
	if p.Study.Design.Looks() > 0 { // not in the hash, so that a folder from before Seen existed can be continued
		p.Study.Design.Seen = stats.LeastTrials
	}
	return p.Plan, nil
}

// fitting is the study with the treatments for which the host is large enough.
func (p *planner) fitting() notebook.Study {
	study := notebook.Study{Name: p.asked.Spec.Name}
	for _, w := range p.asked.Works {
		for _, t := range p.asked.Treatments(w, p.host, func(string) string { return "" }, func(notebook.Treatment) bool { return true }) {
			if err := fits(p.host, t); err != nil {
				study.LeftOut = append(study.LeftOut, notebook.LeftOut{Treatment: t, Reason: err.Error()})
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
	p.Plan = &Plan{ready: map[string]*workload.Ready{}, open: map[string]bool{}, engines: p.asked.Engines(), rules: p.asked.Rules(), config: p.asked.Config}
	p.Study = notebook.Study{
		Version: notebook.Version, Tare: ch.Tare, Name: s.Name, Title: s.Title, Source: s.Source, Seed: ch.Seed,
		Created: time.Now().UTC(), Design: p.asked.Design, Metrics: map[string]notebook.Metric{}, Images: map[string]notebook.Image{},
		Figures: s.Figures, Claims: s.Claims, Explain: ch.Explain, LoadFrom: p.asked.LoadFrom(), Lengths: s.Lengths,
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
			t.HostCores = 0 // these are all CPUs, which the study may ask for as well
			t.ID = studyfile.Identify(t)
		}
		if slices.ContainsFunc(p.Study.Treatments, func(o notebook.Treatment) bool { return o.ID == t.ID }) {
			continue
		}
		reason := p.leavesOut(ctx, t, w.Workload)
		if err := ctx.Err(); err != nil {
			return err // an interrupt does not mean that the host lacks something
		}
		if reason != "" {
			p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: reason})
			continue
		}
		if p.Study.Treatments = append(p.Study.Treatments, t); len(p.Study.Treatments) > notebook.MaxTreatments {
			return fmt.Errorf("study %s has more than %d configurations, which is the most that a study may have; split it into several", p.Study.Name, notebook.MaxTreatments)
		}
		p.describe(t, w)
	}
	return nil
}

// leavesOut says why a treatment of the workload is left out; empty: it is not.
func (p *planner) leavesOut(ctx context.Context, t notebook.Treatment, w *workload.Workload) string {
	k := p.engine(t)
	if err := cmp.Or(fits(p.host, t), neighboursFit(p.host, t)); err != nil {
		return err.Error()
	}
	switch {
	case w.Service != nil && t.Network == notebook.NetNone && len(k.Provisionings) == 0:
		return "its service has to be asked, and from the layer network up to the one below bridge a guest has the loopback alone"
	case w.Service != nil && t.Network == notebook.NetNone:
		return "its service has to be asked, and without a network nobody can"
	case w.System && k.Boots() != nil:
		return k.Boots().Error()
	case p.noAccel[t.Kernel] != nil && len(k.Accelerators) > 0:
		return p.noAccel[t.Kernel].Error()
	}
	if p.config != nil {
		if why := p.config.LeavesOut(t, k, w); why != "" {
			return why
		}
	}
	switch {
	case p.impossible != nil:
		return p.impossible.Error()
	case notebook.FactorAddresses.Of(t) == notebook.AddressesFixed && k.RandomAddresses != "":
		return "its addresses are always random: " + k.RandomAddresses
	}
	if err := p.lab.Supports(ctx, t); err != nil {
		return err.Error()
	}
	return ""
}

// describe records what a treatment measures and what its guests are made of.
func (p *planner) describe(t notebook.Treatment, of studyfile.Work) {
	w := of.Workload
	if t.Kernel != "" {
		if p.Study.Kernels == nil {
			p.Study.Kernels = map[string]notebook.Kernel{}
		}
		p.Study.Kernels[t.Kernel] = p.asked.Kernel(t.Kernel)
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
		if p.Study.Ports == nil {
			p.Study.Ports = map[string]int{}
		}
		p.Study.Ports[w.Name] = w.Service.Port
	}
	if len(also) > 0 {
		if p.Study.Also == nil {
			p.Study.Also = map[string][]notebook.Metric{}
		}
		p.Study.Also[w.Name] = also
	}
}

// make makes those workloads ready that at least one treatment uses.
func (p *planner) make(ctx context.Context, o workload.Options) error {
	var used []studyfile.Work
	var all []*workload.Workload
	for _, u := range p.asked.Works {
		if _, measured := p.Study.Metrics[u.Workload.Name]; measured {
			used = append(used, u)
			all = append(all, u.Workload)
		}
	}
	o.Input = p.asked.Choices.Input
	if err := workload.Gather(ctx, all, o); err != nil {
		return err
	}
	for _, u := range used {
		w, label := u.Workload, u.Label()
		if p.ready[label] != nil {
			continue
		}
		o.Input = p.asked.Choices.Input
		if w.Input == nil && len(p.asked.Works) > 1 {
			o.Input = "" // the input is for the other workloads
		}
		r, err := workload.Make(ctx, w, u.Params, o)
		if err != nil {
			return err
		}
		p.ready[label], p.open[label] = r, u.Open
		p.Study.Images[label] = notebook.Image{Reference: r.Image.Reference, Digest: r.Image.Digest, Input: r.Work.Digest}
	}
	return nil
}

// readyOf is the treatment's work.
func (p *Plan) readyOf(t notebook.Treatment) *workload.Ready {
	return p.ready[t.Label()]
}

// prepare makes what the treatments' guests need. A platform for which that fails is left out, with the reason: the others can
// still be measured.
func (p *Plan) prepare(ctx context.Context, lab Lab) error {
	answers := map[string]error{}
	var kept []notebook.Treatment
	for _, t := range p.Study.Treatments {
		roots := []*image.Image{p.readyOf(t).Image}
		for _, kind := range p.kinds(t) {
			roots = append(roots, p.workOf(t, kind).Image)
		}
		var err error
		for _, root := range roots {
			key := t.Platform + t.Engine + t.Accelerator + t.Kernel + root.Digest
			answer, asked := answers[key]
			if !asked {
				answer = lab.Prepare(ctx, t, root)
				answers[key] = answer
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err = cmp.Or(err, answer)
		}
		if err != nil {
			p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: "it cannot be made ready: " + err.Error()})
			continue
		}
		kept = append(kept, t)
	}
	p.Study.Treatments = kept
	return nil
}

// worthwhile rejects a plan in which nothing is left of what was asked: no treatment, or only bare metal where something was to be
// compared with it. Measuring that takes time and answers nothing.
func worthwhile(s notebook.Study, only studyfile.Only) error {
	bare := func(t notebook.Treatment) bool { return t.Platform == notebook.BM }
	asked := slices.DeleteFunc(slices.Clone(s.LeftOut), func(l notebook.LeftOut) bool { return bare(l.Treatment) })
	switch measured := s.Treatments; {
	case len(measured) == 0 && len(asked) == 0:
		asked = s.LeftOut
	case slices.ContainsFunc(measured, func(t notebook.Treatment) bool { return !bare(t) }), len(asked) == 0:
		return nil
	}
	const most = 3
	var why []string
	for _, l := range asked {
		if !slices.Contains(why, l.Reason) {
			why = append(why, l.Reason)
		}
	}
	if n := len(why) - most; n > 0 {
		why = append(why[:most], fmt.Sprintf("and %d more reasons", n))
	}
	what := "nothing"
	switch {
	case len(only) > 0 && len(why) == 0:
		return fmt.Errorf("study %s: nothing in it has all of --only %s: name values that occur together", s.Name, only)
	case len(only) > 0:
		what += " that --only " + only.String() + " selects"
	case len(s.Treatments) > 0:
		what += " but bare metal"
	}
	return fmt.Errorf("study %s: %s can be measured here: %s; `sudo tare doctor` says what this host supports and how to get the rest", s.Name, what, strings.Join(why, "; "))
}

// Resume fits the plan to a folder that was begun earlier: the same seed and the same treatments. It returns an error if the folder
// holds another study, or if the host can no longer run a part of it.
func (p *Plan) Resume(begun notebook.Study, seedChosen bool) error {
	if err := p.goesOn(begun, seedChosen); err != nil {
		return err
	}
	if begun.Hash != p.Study.Hash {
		return p.another(differs(begun, p.Study))
	}
	p.Study = begun
	return nil
}

// goesOn says why the study cannot continue in a folder, as far as that is known before its workloads are ready.
func (p *Plan) goesOn(begun notebook.Study, seedChosen bool) error {
	if begun.Name != p.Study.Name {
		return fmt.Errorf("the folder holds the study %s, not %s: name another folder with --out", begun.Name, p.Study.Name)
	}
	if what := redesigned(begun.Design, p.Study.Design); what != "" {
		return p.another(what)
	}
	if was := begun.Explain; !slices.Equal(was, p.Study.Explain) {
		what := "it was begun without --explain"
		if len(was) > 0 {
			what = "it was begun with --explain=" + strings.Join(was, ",")
		}
		return p.another(what)
	}
	if was := begun.LoadFrom; was != p.Study.LoadFrom {
		return p.another("its load ran " + cmp.Or(strings.Replace(was, "ssh:", "on ssh:", 1), "on this host"))
	}
	if seedChosen && begun.Seed != p.Study.Seed {
		return fmt.Errorf("the folder was begun with --seed %d, not %d: leave --seed out, or name another folder with --out", begun.Seed, p.Study.Seed)
	}
	for _, t := range begun.Treatments {
		if slices.ContainsFunc(p.Study.Treatments, func(now notebook.Treatment) bool { return now.ID == t.ID }) {
			continue
		}
		i := slices.IndexFunc(p.Study.LeftOut, func(l notebook.LeftOut) bool { return l.Treatment.ID == t.ID })
		if i < 0 {
			return p.another(fmt.Sprintf("it was begun with %q, which this command does not ask for", t.ID))
		}
		return fmt.Errorf("the folder was begun with %q, which cannot go on: %s; name another folder with --out", t.ID, p.Study.LeftOut[i].Reason)
	}
	return nil
}

func (p *Plan) another(what string) error {
	return fmt.Errorf("the folder holds another run of %s: %s; name another folder with --out", p.Study.Name, what)
}

// percent formats a share; 0 is "none".
func percent(share float64) string {
	if share == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g%%", 100*share)
}

// redesigned says how one design differs from another; "" if it does not.
func redesigned(was, is notebook.Design) string {
	is.Seen = was.Seen // nobody chooses it, and a folder continues as it was begun
	rounds := func(d notebook.Design) string {
		if d.Floor == d.Cap {
			return fmt.Sprint(d.Cap)
		}
		return fmt.Sprintf("%d to %d", d.Floor, d.Cap)
	}
	for _, d := range []struct {
		what    string
		was, is any
	}{
		{"rounds", rounds(was), rounds(is)},
		{"rounds of emulated treatments", was.Emulated, is.Emulated},
		{"as precision", percent(was.Precision), percent(is.Precision)},
		{"as the margin to decide at", percent(was.Decide), percent(is.Decide)},
		{"trials in a guest", was.Trials, is.Trials},
		{"warm-ups in a guest", was.Warmups, is.Warmups},
		{"s as the timeout of a trial", was.TimeoutS, is.TimeoutS},
	} {
		if d.was != d.is {
			return fmt.Sprintf("it was begun with %v %s, and this command asks for %v", d.was, d.what, d.is)
		}
	}
	if was != is {
		return "it was begun with another design"
	}
	return ""
}

// differs says how two studies with the same name and design differ.
func differs(was, is notebook.Study) string {
	for label, image := range was.Images {
		if now, ok := is.Images[label]; ok && now != image {
			return "the image or the input of " + label + " had other bytes"
		}
	}
	before, now := strings.Split(was.Source, "\n"), strings.Split(is.Source, "\n")
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return fmt.Sprintf("line %d of its study file was %q, and is %q", i+1, strings.TrimSpace(before[i]), strings.TrimSpace(now[i]))
		}
	}
	if len(before) != len(now) {
		return fmt.Sprintf("its study file had %d lines, and has %d", len(before), len(now))
	}
	for _, t := range is.Treatments {
		planned := func(o notebook.Treatment) bool { return o.ID == t.ID }
		if !slices.ContainsFunc(was.Treatments, planned) && !slices.ContainsFunc(was.LeftOut, func(l notebook.LeftOut) bool { return planned(l.Treatment) }) {
			return fmt.Sprintf("it was begun without %q, which this command asks for", t.ID)
		}
	}
	if was.Tare != is.Tare {
		return fmt.Sprintf("it was begun by tare %s, and this is tare %s", was.Tare, is.Tare)
	}
	return "--only, --accel, --vm-kernel, --rounds, or what a workload runs were others"
}

// Rehearse does each workload's work on bare metal without recording it, if the study has bare metal. A command that is
// missing or fails everywhere is thus found before the study begins. short names the work that is too short for what the design
// asks on this host.
func (p *Plan) Rehearse(ctx context.Context, lab Lab, say image.Progress) (short []Short, err error) {
	rehearsed := map[string]bool{}
	for _, t := range p.Study.Treatments {
		label := t.Label()
		ready := p.ready[label]
		alone := t // without neighbours it is the same work
		alone.Factors = maps.Clone(t.Factors)
		delete(alone.Factors, notebook.FactorNeighbours.Name)
		once := alone.Label()
		if t.Platform != notebook.BM || ready == nil || rehearsed[once] {
			continue
		}
		rehearsed[once] = true
		say("rehearsing " + label + " on bare metal")
		values, cause, err := p.rehearse(ctx, lab, t, ready)
		if err != nil {
			return nil, fmt.Errorf("workload %s: rehearsing it: %w", t.Workload, err)
		}
		if cause != "" {
			hint := ""
			if strings.Contains(cause, "ead-only file system") {
				hint = " (on bare metal all but {scratch} and /tmp is read-only)"
			}
			return nil, fmt.Errorf("workload %s failed when it was tried once on bare metal, before the study: %s%s", t.Workload, cause, hint)
		}
		if s, ok := p.short(t, label, values); ok {
			short = append(short, s)
		}
	}
	return short, nil
}

// rehearse makes one trial of the treatment, and more if the length of the work can be chosen.
func (p *Plan) rehearse(ctx context.Context, lab Lab, t notebook.Treatment, ready *workload.Ready) (values []float64, cause string, err error) {
	r := &Run{Plan: p, Lab: lab}
	id := fmt.Sprintf("rehearsal-%d", os.Getpid()) // cgroups belong to the host, whatever state folder the guest has
	g := r.subject(measure.Cell{Treatment: t, Ready: ready, ID: id, Rehearsal: true})
	if err := g.Make(ctx); err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, crowd.Destroy(ctx, g.Guest())) }()
	cause, err = g.SetUp(ctx)
	if err == nil && ctx.Err() != nil { // work that Tare cut short says nothing about the workload
		cause, err = "", errors.Join(ctx.Err(), g.Service().TakeDown(ctx))
	}
	if cause != "" || err != nil {
		return nil, cause, err
	}
	defer func() { err = errors.Join(err, g.Service().TakeDown(ctx)) }()
	began := time.Now()
	for i := 0; i == 0 || i < rehearsals && ready.Workload.Length != "" && time.Since(began) < rehearsing; i++ {
		tr, _, err := g.Trial(ctx, measure.Step{Role: measure.Rehearsal})
		if err := cmp.Or(err, ctx.Err()); err != nil || tr.Failure != "" {
			return nil, tr.Failure, err
		}
		if i > 0 { // the first warms up for the others
			values = append(values, tr.Value)
		}
	}
	return values, "", nil
}
