package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Choices are what the caller of a study decides in addition to the study file.
type Choices struct {
	Seed   uint64
	Rounds int // exactly this many; 0: as the file says
	Until  Until
	Only   Only
	Accel  string // "auto", notebook.KVM, notebook.KVMEmulated, notebook.TCG
	Kernel string // a kernel file for VMs, in place of the study's
	Input  string // a file in place of the workloads' own input
	Tare   string // the program's version

	LoadFrom string // the machine on which loads run, in place of the study's

	NoHostCode bool // refuse a study that would run something as root on this host

	Begun      *notebook.Study // what the results folder already holds; nil: nothing
	SeedChosen bool            // the user chose the seed

	Explain []string // tracers for an equal number of additional, traced trials; none: no trial is traced
}

// measured names what selects the kind of study: its key, or the --until that was chosen.
func (c Choices) measured(s *Spec) string {
	if c.Until.config != nil {
		return fmt.Sprintf("--until '%s'", c.Until.objective)
	}
	return s.measure.Name
}

// From is the machine on which the study's loads run, ssh://…; "": this host.
func (c Choices) From(s *Spec) string { return cmp.Or(c.LoadFrom, s.LoadFrom) }

// Plan is a study that is ready to run: what is done, with what, and what is left out.
type Plan struct {
	Study notebook.Study
	ready map[string]*workload.Ready // by Label
	open  map[string]bool            // by Label: its length may be chosen
	work  map[string]*workload.Ready // what neighbours do, by one of notebook.Busy

	engines engine.Registry
	measure *measure.Kind  // what is measured instead of the time of the work; nil: that time
	config  measure.Config // how it is measured; nil without a kind
}

// rules are the rules of the kind of study.
func (p *Plan) rules() measure.Rules {
	if p.measure == nil {
		return measure.Rules{}
	}
	return p.measure.Rules
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

// treatments is the cross product of a study, with bare metal first and its A/A twin second.
func (s *Spec) treatments(u use, h notebook.Host, accel func(kernel string) string, can func(notebook.Treatment) bool) []notebook.Treatment {
	var out []notebook.Treatment
	hostCores := 0
	add := func(t notebook.Treatment) {
		t.Workload, t.Params, t.HostCores, t.Rounds = u.Workload.Name, u.params, hostCores, u.Use.Rounds
		t.ID = identify(t)
		for _, o := range out { // a study file may repeat itself
			if o.ID == t.ID {
				return
			}
		}
		out = append(out, t)
	}
	sizes := s.HostCores
	if len(sizes) == 0 {
		sizes = []string{"all"}
	}
	for _, size := range sizes {
		hostCores, _ = parseHostCores(size) // validated when the file was read
		for _, text := range s.instances(u) {
			inst, err := notebook.OfHost(h), error(nil)
			if text != notebook.HostSize {
				inst, err = notebook.ParseInstance(text)
			}
			if err != nil {
				continue // validated when the file was read
			}
			for _, p := range s.Platforms {
				s.at(u, p, inst, accel, can, add)
			}
		}
	}
	return out
}

// at adds the treatments of one platform at one instance type.
func (s *Spec) at(u use, p Place, inst notebook.Instance, accel func(kernel string) string, can func(notebook.Treatment) bool, add func(notebook.Treatment)) {
	if p.Platform == notebook.BM {
		for _, aa := range []bool{false, true} {
			add(notebook.Treatment{Platform: notebook.BM, Instance: inst, AA: aa, OthersOffline: p.OtherCPUs == offline, MemoryWithheld: p.OtherMemory == withheld})
		}
		return
	}
	es, vs, ns, is := p.Engines, p.Provisioning, p.Networks, p.isolation()
	if len(es) == 0 {
		es = s.known.Engines.Names(p.Platform)[:1]
	}
	switch {
	case s.kind(p.Platform, es[0]).Provisionings == nil:
		vs = []string{""}
	case len(p.Isolation) > 0:
		vs = []string{notebook.Pinned}
	case len(vs) == 0:
		vs = []string{notebook.Vanilla, notebook.Pinned}
	}
	if len(ns) == 0 {
		ns = []string{""}
	}
	one := func(choice, v, n, kernel string) {
		with := func(engine string) notebook.Treatment {
			t := notebook.Treatment{Platform: p.Platform, Engine: engine, Provisioning: v, Instance: inst, Network: n, Kernel: kernel}
			if len(s.kind(p.Platform, engine).Accelerators) > 0 {
				t.Accelerator = accel(kernel)
			}
			return t
		}
		// Of several engines, the first that the host supports; if it supports none, the first.
		of := strings.Split(choice, "|")
		i := slices.IndexFunc(of, func(engine string) bool { return can(with(engine)) })
		t := with(of[max(i, 0)])
		for _, t.Isolation = range is {
			if t.Network = n; n == "" && u.Service != nil && !s.rules().OwnNetwork {
				t.Network = s.kind(t.Platform, t.Engine).Connected(t.Isolation, true)
			}
			for _, t.Machine = range p.machines() {
				add(t)
			}
		}
	}
	for _, choice := range es {
		for _, v := range vs {
			if v == notebook.Whole && inst.Name != notebook.HostSize {
				continue // without limits there is only one size
			}
			for _, n := range ns {
				for _, kernel := range s.kernelsOf(p) {
					one(choice, v, n, kernel)
				}
			}
		}
	}
}

// kind is an engine that the study names. Reading the file has already found it.
func (s *Spec) kind(platform, choice string) engine.Kind {
	name, _, _ := strings.Cut(choice, "|")
	k, err := s.known.Engines.Find(platform, name)
	if err != nil {
		panic(err)
	}
	return k
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

// fitting is the study with the treatments for which the host is large enough.
func (s *Spec) fitting(us []use, h notebook.Host, only Only) notebook.Study {
	study := notebook.Study{Name: s.Name}
	for _, u := range us {
		for _, t := range s.treatments(u, h, func(string) string { return "" }, func(notebook.Treatment) bool { return true }) {
			if !only.keeps(t) {
				continue
			}
			if err := fits(h, t); err != nil {
				study.LeftOut = append(study.LeftOut, notebook.LeftOut{Treatment: t, Reason: err.Error()})
			} else {
				study.Treatments = append(study.Treatments, t)
			}
		}
	}
	return study
}

// Check says what is wrong in a study and the choices for it, as far as that is known without a host.
func (s *Spec) Check(shipped fs.FS, ch Choices) error {
	_, err := s.seeking(ch.Until).check(shipped, ch)
	return err
}

func (s *Spec) check(shipped fs.FS, ch Choices) ([]use, error) {
	us, err := s.uses(shipped)
	if err != nil {
		return nil, err
	}
	for _, check := range []func() error{
		func() error { return ch.Only.known(s, us) },
		func() error { return s.drawable(us) },
		func() error { return s.readKernels(ch.Kernel) },
		func() error { return s.withoutHostCode(us, ch) },
		func() error { return checkFrom(ch.From(s)) },
		func() error { return s.checkWorks(us, ch) },
		func() error { return s.checkChoices(us, ch) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return us, nil
}

// checkWorks says which workload does not suit what is measured.
func (s *Spec) checkWorks(us []use, ch Choices) error {
	if ch.Until.Claims && len(s.Claims) == 0 {
		return fmt.Errorf("study %s: --until claims: the study names no claims; published ones were expected in its file, as in claims: [pinning]", s.Name)
	}
	if u := ch.Until; u.config != nil && len(s.Measured) > 0 {
		return fmt.Errorf("study %s: --until '%s' seeks by timing work, and the study measures %s in place of it: name a study that times its work", s.Name, u.objective, oneOf(keys(slices.Sorted(maps.Keys(s.Measured)))))
	}
	for _, u := range us {
		w := u.Workload
		if s.config != nil {
			if err := s.config.Accepts(w); err != nil {
				return fmt.Errorf("study %s: %s: workload %s %w", s.Name, ch.measured(s), w.Name, err)
			}
		}
		if w.System && !s.rules().Systems {
			return fmt.Errorf("study %s: workload %s is a whole system, which has no run time: use a study with %s", s.Name, w.Name,
				oneOf(keys(s.known.Kinds.Names(func(r measure.Rules) bool { return r.Systems }))))
		}
		if w.Stays && !s.rules().Stays {
			return fmt.Errorf("study %s: workload %s never ends, so it has no run time: use a study with %s", s.Name, w.Name,
				oneOf(keys(s.known.Kinds.Names(func(r measure.Rules) bool { return r.Stays }))))
		}
		if ref := w.Image.Reference; ref != "" {
			if err := image.Check(ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// keys are names in the form of keys of a file.
func keys(names []string) (all []string) {
	for _, n := range names {
		all = append(all, n+":")
	}
	return all
}

// checkChoices says which choice does not suit the study.
func (s *Spec) checkChoices(us []use, ch Choices) error {
	if why := s.rules().Untraced; len(ch.Explain) > 0 && why != "" {
		return fmt.Errorf("study %s: %s: --explain: %s: leave it out", s.Name, ch.measured(s), why)
	}
	if why := s.rules().LoadHere; ch.LoadFrom != "" && why != "" {
		return fmt.Errorf("study %s: %s: --load-from: %s: leave it out", s.Name, ch.measured(s), why)
	}
	takesInput, serves := false, false
	for _, u := range us {
		takesInput, serves = takesInput || u.Workload.Input != nil, serves || u.Workload.Service != nil
	}
	if from := ch.From(s); from != "" && !serves {
		return fmt.Errorf("load from %s: no workload of the study %s has a service that a load asks: leave it out", from, s.Name)
	}
	if ch.Input == "" {
		return nil
	}
	if !takesInput {
		return fmt.Errorf("--input %s: no workload of the study %s takes an input: leave it out", ch.Input, s.Name)
	}
	return workload.CheckInput(ch.Input)
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
	p.Study.Syncs[notebook.Label(t.Workload, t.Params)] = synced
}

// design is the study's design with the choices applied.
func (s *Spec) design(ch Choices) (notebook.Design, error) {
	design, wrong := s.Design.parse()
	if wrong != nil {
		return design, errors.New(wrong.text)
	}
	if ch.Rounds > 0 {
		design.Floor, design.Cap, design.Precision = ch.Rounds, ch.Rounds, 0
		design.Emulated = min(design.Emulated, ch.Rounds)
	}
	switch {
	case ch.Until.config != nil:
		return ch.Until.config.Design(design), nil
	case ch.Until.asked():
		design.Cap, design.Precision, design.Decide, design.Claims = max(design.Cap, UntilRounds), ch.Until.Precision, ch.Until.Margin, ch.Until.Claims
	}
	if s.config != nil {
		design = s.config.Design(design)
	}
	return design, nil
}

// seeking is the study when an objective replaces what it measures. The study loses its own neighbours, because the search is for
// neighbours.
func (s *Spec) seeking(u Until) *Spec {
	if u.config == nil {
		return s
	}
	alone := *s
	alone.measure, alone.config = u.sought, u.config
	alone.Neighbours, alone.Workloads, alone.Figures = nil, slices.Clone(s.Workloads), nil
	for i := range alone.Workloads {
		alone.Workloads[i].Neighbours = nil
	}
	return &alone
}

// planner is a plan under construction.
type planner struct {
	*Spec
	*Plan
	lab  Lab
	ch   Choices
	host notebook.Host

	accels     map[string]string // by kernel
	noAccel    map[string]error
	impossible error // why this host cannot measure the kind at all; nil: it can
}

// Plan decides what is run, and makes the workloads ready: it builds roots, compiles programs and prepares inputs.
func (s *Spec) Plan(ctx context.Context, lab Lab, shipped fs.FS, ch Choices, o workload.Options) (*Plan, error) {
	design, err := s.design(ch)
	if err != nil {
		return nil, err
	}
	s = s.seeking(ch.Until)
	us, err := s.check(shipped, ch)
	if err != nil {
		return nil, err
	}
	p := &planner{Spec: s, lab: lab, ch: ch, host: lab.Host(), accels: map[string]string{}, noAccel: map[string]error{}}
	fitting := s.fitting(us, p.host, ch.Only)
	if err := worthwhile(fitting, ch.Only); err != nil {
		return nil, err // checked before a VM is booted to find its accelerator
	}
	lab.UseKernels(s.kernels.files)
	if err := p.findAccelerators(ctx, fitting.Treatments); err != nil {
		return nil, err
	}
	if s.config != nil {
		p.impossible = s.config.Possible()
	}
	p.begin(design)
	for _, u := range us {
		if err := p.add(ctx, u); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(worthwhile(p.Study, ch.Only), ch.Until.decidable(p.Study)); err != nil {
		return nil, err
	}
	if ch.Begun != nil {
		if err := p.goesOn(*ch.Begun, ch.SeedChosen); err != nil {
			return nil, err
		}
	}
	if err := p.make(ctx, us, o); err != nil {
		return nil, err
	}
	if err := p.busy(ctx, shipped, o); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, lab); err != nil {
		return nil, err
	}
	if err := worthwhile(p.Study, ch.Only); err != nil {
		return nil, err
	}
	p.Study.Hash = p.hash(design)
	if p.Study.Design.Looks() > 0 { // not in the hash, so that a folder from before Seen existed can be continued
		p.Study.Design.Seen = stats.LeastTrials
	}
	return p.Plan, nil
}

// findAccelerators finds the accelerator for each kernel of the treatments' guests.
func (p *planner) findAccelerators(ctx context.Context, treatments []notebook.Treatment) error {
	for _, t := range treatments {
		k := p.kind(t.Platform, t.Engine)
		if _, asked := p.accels[t.Kernel]; !asked && len(k.Accelerators) > 0 {
			p.accels[t.Kernel], p.noAccel[t.Kernel] = p.lab.Accelerator(ctx, k, t.Kernel, p.ch.Accel, p.AllowEmulation)
			if err := ctx.Err(); err != nil {
				return err // an interrupt does not mean that the host lacks something
			}
		}
	}
	return nil
}

// begin starts the plan, without treatments.
func (p *planner) begin(design notebook.Design) {
	s, ch := p.Spec, p.ch
	p.Plan = &Plan{ready: map[string]*workload.Ready{}, open: map[string]bool{}, engines: s.known.Engines, measure: s.measure, config: s.config}
	p.Study = notebook.Study{
		Version: notebook.Version, Tare: ch.Tare, Name: s.Name, Title: s.Title, Source: s.Source, Seed: ch.Seed,
		Created: time.Now().UTC(), Design: design, Metrics: map[string]notebook.Metric{}, Images: map[string]notebook.Image{},
		Figures: s.Figures, Claims: s.Claims, Explain: ch.Explain, LoadFrom: ch.From(s), Lengths: s.Lengths,
	}
	if s.config != nil {
		p.Study.Kind, p.Study.Config = s.measure.Name, s.config.Record()
	}
}

// add adds the treatments of a use.
func (p *planner) add(ctx context.Context, u use) error {
	can := func(t notebook.Treatment) bool { return fits(p.host, t) == nil && p.lab.Supports(ctx, t) == nil }
	for _, t := range p.treatments(u, p.host, func(kernel string) string { return p.accels[kernel] }, can) {
		if !p.ch.Only.keeps(t) || p.Plan.rules().BareMetal && t.Platform == notebook.BM {
			continue
		}
		if p.ch.Rounds > 0 || p.ch.Until.asked() {
			t.Rounds = 0
		}
		if t.HostCores > 0 && t.HostCores == len(p.host.CPUs) {
			t.HostCores = 0 // these are all CPUs, which the study may ask for as well
			t.ID = identify(t)
		}
		if slices.ContainsFunc(p.Study.Treatments, func(o notebook.Treatment) bool { return o.ID == t.ID }) {
			continue
		}
		reason := p.leavesOut(ctx, t, u.Workload)
		if err := ctx.Err(); err != nil {
			return err // an interrupt does not mean that the host lacks something
		}
		if reason != "" {
			p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: reason})
			continue
		}
		if p.Study.Treatments = append(p.Study.Treatments, t); len(p.Study.Treatments) > notebook.MaxTreatments {
			return fmt.Errorf("study %s has more than %d configurations, which is the most that a study may have; split it into several", p.Spec.Name, notebook.MaxTreatments)
		}
		p.describe(t, u)
	}
	return nil
}

// leavesOut says why a treatment of the workload is left out; empty: it is not.
func (p *planner) leavesOut(ctx context.Context, t notebook.Treatment, w *workload.Workload) string {
	k := p.kind(t.Platform, t.Engine)
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
	if p.Plan.config != nil {
		if why := p.Plan.config.LeavesOut(t, k, w); why != "" {
			return why
		}
	}
	switch {
	case p.impossible != nil:
		return p.impossible.Error()
	case t.Params[notebook.ParamAddresses] == notebook.AddressesFixed && k.RandomAddresses != "":
		return "its addresses are always random: " + k.RandomAddresses
	}
	if err := p.lab.Supports(ctx, t); err != nil {
		return err.Error()
	}
	return ""
}

// describe records what a treatment measures and what its guests are made of.
func (p *planner) describe(t notebook.Treatment, u use) {
	w := u.Workload
	if t.Kernel != "" {
		if p.Study.Kernels == nil {
			p.Study.Kernels = map[string]notebook.Kernel{}
		}
		p.Study.Kernels[t.Kernel] = p.kernels.read[p.kernels.files[t.Kernel]]
	}
	first, also := w.Primary(), w.Secondary()
	if p.Plan.config != nil {
		var drawn []string
		for _, f := range p.Figures {
			drawn = append(drawn, f.Metric)
		}
		first, also = p.Plan.config.Metrics(w, drawn)
	}
	if len(p.neighbours(u.Use)) > 0 {
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
func (p *planner) make(ctx context.Context, us []use, o workload.Options) error {
	var used []use
	var all []*workload.Workload
	for _, u := range us {
		if _, measured := p.Study.Metrics[u.Workload.Name]; measured {
			used = append(used, u)
			all = append(all, u.Workload)
		}
	}
	o.Input = p.ch.Input
	if err := workload.Gather(ctx, all, o); err != nil {
		return err
	}
	for _, u := range used {
		w, label := u.Workload, u.label()
		if p.ready[label] != nil {
			continue
		}
		o.Input = p.ch.Input
		if w.Input == nil && len(us) > 1 {
			o.Input = "" // the input is for the other workloads
		}
		r, err := workload.Make(ctx, w, u.params, o)
		if err != nil {
			return err
		}
		p.ready[label], p.open[label] = r, u.open
		p.Study.Images[label] = notebook.Image{Reference: r.Image.Reference, Digest: r.Image.Digest, Input: r.Work.Digest}
	}
	return nil
}

// hash covers everything that decides the meaning of the trials. What a study does not use does not enter the hash, so that
// existing folders keep theirs.
func (p *planner) hash(design notebook.Design) string {
	s, ch := p.Spec, p.ch
	work := map[string]any{} // the name of a workload does not say what it does
	for label, r := range p.ready {
		work[label] = r.Workload.Identity()
	}
	parts := []any{work, s.Name, s.Workloads, s.Platforms, s.Instances, s.HostCores, s.AllowEmulation, design, ch.Only, ch.Accel, ch.Rounds, ch.Until, p.Study.Images}
	if slices.ContainsFunc(p.Study.Treatments, func(t notebook.Treatment) bool { return t.Platform == notebook.BM || t.Engine == notebook.LayersEngine }) {
		parts = append(parts, heldByASet)
	}
	if len(ch.Explain) > 0 {
		parts = append(parts, ch.Explain)
	}
	if p.Plan.config != nil {
		parts = append(parts, p.Plan.config.Identity(slices.Collect(maps.Values(p.ready)))...)
	}
	if len(s.Neighbours) > 0 {
		parts = append(parts, s.Neighbours)
	}
	if p.Study.LoadFrom != "" {
		parts = append(parts, p.Study.LoadFrom)
	}
	if len(s.kernels.files) > 0 {
		parts = append(parts, slices.Sorted(maps.Keys(s.kernels.files)))
	}
	return hash(parts...)
}

// readyOf is the treatment's work.
func (p *Plan) readyOf(t notebook.Treatment) *workload.Ready {
	return p.ready[notebook.Label(t.Workload, t.Params)]
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
func worthwhile(s notebook.Study, only Only) error {
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

// heldByASet enters the hash of studies with guests that only affinity once bound to their CPUs: rounds of the old and the new way
// do not belong to one study.
const heldByASet = "a CPU set holds bare metal and the rungs of the ladder"

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
		label := notebook.Label(t.Workload, t.Params)
		ready := p.ready[label]
		alone := maps.Clone(t.Params) // without neighbours it is the same work
		delete(alone, notebook.ParamNeighbours)
		once := notebook.Label(t.Workload, alone)
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
