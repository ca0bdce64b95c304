package studyfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
)

// Asked is what a study and the choices of a command ask for, as far as that is known without a host.
type Asked struct {
	Spec    *Spec
	Choices Choices
	Design  notebook.Design // the study's, with the choices applied
	Works   []Work
	Kind    *measure.Kind  // what is measured instead of the time of the work; nil: that time
	Config  measure.Config // how it is measured; nil without a kind

	kernels kernels
	shipped fs.FS // workloads
}

// Ask applies the choices of a command to the study. It returns an error for each mistake in either that shows without a host. shipped
// are the workloads that come with Tare.
func (s *Spec) Ask(shipped fs.FS, ch Choices) (*Asked, error) {
	design, err := s.design(ch)
	if err != nil {
		return nil, err
	}
	s = s.seeking(ch.Until)
	a := &Asked{Spec: s, Choices: ch, Design: design, Kind: s.measure, Config: s.config, shipped: shipped}
	if a.Works, err = s.works(shipped); err != nil {
		return nil, err
	}
	for _, check := range []func() error{
		func() error { return s.drawable(a.Works) },
		func() (err error) { a.kernels, err = s.readKernels(ch.Kernels); return err },
		func() error { return ch.Only.known(s.Name, s.values(a.Works, a.kernels)) },
		a.withoutHostCode,
		func() error { return checkFrom(a.LoadFrom()) },
		a.checkWorks,
		a.checkChoices,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Rules are the rules of the kind of study.
func (a *Asked) Rules() measure.Rules { return a.Spec.rules() }

// Engines are the engines that the study can name.
func (a *Asked) Engines() engine.Registry { return a.Spec.known.Engines }

// Kernels are the files with guests' kernels, by the names that treatments use.
func (a *Asked) Kernels() map[string]string { return a.kernels.files }

// Kernel is the kernel that treatments use by this name.
func (a *Asked) Kernel(name string) notebook.Kernel { return a.kernels.read[a.kernels.files[name]] }

// Beside reports whether the study asks for neighbours of the guests with the work.
func (a *Asked) Beside(w Work) bool { return len(a.Spec.neighbours(w.use)) > 0 }

// Neighbour is the workload of a neighbour of a kind of notebook.Busy.
func (a *Asked) Neighbour(busy string) (*workload.Workload, error) {
	return workload.Find(a.shipped, busyWork[busy], ".")
}

// busyWork names the workload of a neighbour of each kind of notebook.Busy.
var busyWork = map[string]string{notebook.BusyCPU: "busy-cpu", notebook.BusyIO: "busy-io"}

// LoadFrom is the machine that runs the study's loads, ssh://…; "": this host.
func (a *Asked) LoadFrom() string { return cmp.Or(a.Choices.LoadFrom, a.Spec.LoadFrom) }

// measured names what selects the kind of study: its key, or the objective that was chosen.
func (a *Asked) measured() string {
	if a.Choices.Until.Seeks() {
		return a.Choices.Until.Flag()
	}
	return a.Kind.Name
}

// checkWorks refuses workloads that do not suit what the study measures.
func (a *Asked) checkWorks() error {
	s, ch := a.Spec, a.Choices
	if ch.Until.Claims && len(s.Claims) == 0 {
		return fmt.Errorf("study %s: --until-claims: the study names no claims: add published ones to its file, such as claims: [pinning]", s.Name)
	}
	if u := ch.Until; u.config != nil && len(s.Measured) > 0 {
		return fmt.Errorf("study %s: %s needs timed work, and the study measures %s instead: use a study that times its work", s.Name, u.Flag(), oneOf(keys(slices.Sorted(maps.Keys(s.Measured)))))
	}
	for _, u := range a.Works {
		w := u.Workload
		if s.config != nil {
			if err := s.config.Accepts(w); err != nil {
				return fmt.Errorf("study %s: %s: workload %s %w", s.Name, a.measured(), w.Name, err)
			}
		}
		if w.System && !s.rules().Systems {
			return fmt.Errorf("study %s: workload %s is a whole system, which has no run time: use a study with %s", s.Name, w.Name,
				oneOf(keys(s.known.Kinds.Names(func(r measure.Rules) bool { return r.Systems }))))
		}
		if r := s.rules(); len(w.Setting.Before) > 0 && (r.Once != "" || r.Search && w.Service == nil) {
			return fmt.Errorf("study %s: %s: workload %s: prepare: is only for services and timed commands: leave it out", s.Name, a.measured(), w.Name)
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

// checkChoices refuses choices that do not suit the study.
func (a *Asked) checkChoices() error {
	s, ch := a.Spec, a.Choices
	if why := s.rules().Untraced; len(ch.Explain) > 0 && why != "" {
		return fmt.Errorf("study %s: %s: --explain: %s: leave it out", s.Name, a.measured(), why)
	}
	if why := s.rules().LoadHere; ch.LoadFrom != "" && why != "" {
		return fmt.Errorf("study %s: %s: --load-from: %s: leave it out", s.Name, a.measured(), why)
	}
	takesInput, serves := false, false
	for _, u := range a.Works {
		takesInput, serves = takesInput || u.Workload.Input != nil, serves || u.Workload.Service != nil
	}
	if from := a.LoadFrom(); from != "" && !serves {
		return fmt.Errorf("load from %s: no workload of the study %s is a service with a load: leave it out", from, s.Name)
	}
	if ch.Input == "" {
		return nil
	}
	if !takesInput {
		return fmt.Errorf("--input %s: no workload of the study %s takes an input: leave it out", ch.Input, s.Name)
	}
	return workload.CheckInput(ch.Input)
}

// seeking is the study with an objective instead of what it measures. The study loses its own neighbours, because the search is for
// neighbours.
func (s *Spec) seeking(u Until) *Spec {
	if u.config == nil {
		return s
	}
	sought := s.withoutNeighbours()
	sought.measure, sought.config = u.sought, u.config
	return &sought
}

// HostCode names the parts of the study that run as root on this host, outside containers and VMs.
func (a *Asked) HostCode() []string {
	kept := slices.DeleteFunc(slices.Clone(a.Works), func(w Work) bool {
		only, chosen := a.Choices.Only[byWorkload]
		return chosen && w.Workload.Name != only
	})
	return a.Spec.hostCode(kept, a.LoadFrom())
}

// withoutHostCode refuses a study that would run something as root on this host, if the user forbids that.
func (a *Asked) withoutHostCode() error {
	all := a.HostCode()
	if !a.Choices.NoHostCode || len(all) == 0 {
		return nil
	}
	return fmt.Errorf("study %s: --no-host-code: the study would run %s as root on this host; use platforms without bm, and workloads without prepare: and without a load on this host", a.Spec.Name, strings.Join(all, ", "))
}

// Hash covers everything in a plan that decides the meaning of its trials: the treatments, the images, and the work of each label, as
// made ready. Features that a study does not use are not part of the hash, so that existing folders keep theirs.
func (a *Asked) Hash(planned notebook.Study, ready map[string]*workload.Ready) string {
	s, ch := a.Spec, a.Choices
	work := map[string]any{} // the name of a workload does not say what it does
	for label, r := range ready {
		work[label] = r.Workload.Identity()
	}
	parts := []any{work, s.Name, s.Workloads, s.Platforms, s.Instances, s.HostCores, s.AllowEmulation, a.Design, ch.Only, ch.Accel, ch.Rounds, ch.Until, planned.Images}
	if slices.ContainsFunc(planned.Treatments, func(t notebook.Treatment) bool { return t.Platform == notebook.BM || t.Engine == notebook.LayersEngine }) {
		parts = append(parts, heldByASet)
	}
	if len(ch.Explain) > 0 {
		parts = append(parts, ch.Explain)
	}
	if a.Config != nil {
		parts = append(parts, a.Config.Identity(slices.Collect(maps.Values(ready)))...)
	}
	if len(s.Neighbours) > 0 {
		parts = append(parts, s.Neighbours)
	}
	if planned.KSM != "" {
		parts = append(parts, "ksm", planned.KSM)
	}
	if planned.LoadFrom != "" {
		parts = append(parts, planned.LoadFrom)
	}
	if len(a.kernels.files) > 0 {
		parts = append(parts, slices.Sorted(maps.Keys(a.kernels.files)))
	}
	return hash(parts...)
}

// heldByASet enters the hash of studies with guests that Tare once bound to their CPUs only by affinity, and now by a CPU set. One study
// must not mix the two.
const heldByASet = "a CPU set holds bare metal and the rungs of the ladder"

func isBareMetal(p Place) bool { return p.Platform == notebook.BM }

func outsideVMs(p Place) bool { return p.Platform != notebook.VM && p.Platform != notebook.VMCN }

// design is the study's design with the choices applied.
func (s *Spec) design(ch Choices) (notebook.Design, error) {
	design, wrong := s.Design.parse()
	if wrong != nil {
		return design, errors.New(wrong.text)
	}
	search := ch.Until.config
	design.Against = ch.Against
	if ch.Rounds > 0 {
		design.Floor, design.Cap, design.Precision = ch.Rounds, ch.Rounds, 0
		design.Emulated = min(design.Emulated, ch.Rounds)
	}
	if search != nil {
		design = search.Design(design)
	}
	if len(ch.Kernels) > 1 { // they are compared with each other, emulated or not
		design.Emulated = design.Cap
		if !slices.ContainsFunc(s.Platforms, isBareMetal) { // nor does their idling disturb a reference
			design.Order = cmp.Or(design.Order, notebook.OrderInterleaved)
			if !ch.Until.Asked() { // looking after each round would widen the intervals, and no rule ends emulated VMs' rounds
				design.Floor, design.Precision = design.Cap, 0
			}
		}
	}
	if (ch.Rounds > 0 || search != nil) && !slices.ContainsFunc(s.Platforms, outsideVMs) { // these rounds are all that was asked for
		design.Emulated = design.Floor
	}
	switch {
	case search != nil:
		return design, nil
	case ch.Until.Asked():
		design.Cap, design.Precision, design.Decide, design.Claims = max(design.Cap, UntilRounds), ch.Until.Precision, ch.Until.Margin, ch.Until.Claims
		if ch.Until.ByStudy {
			design.Decide = cmp.Or(design.Margin, design.Decide)
		}
	}
	if s.config != nil {
		design = s.config.Design(design)
	}
	return design, nil
}
