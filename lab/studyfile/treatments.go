package studyfile

import (
	"fmt"
	"slices"
	"strings"

	"tare/notebook"
)

// Treatments are the treatments of the work that the study and the choices ask for. Bare metal is first, and its A/A control second.
// accel returns the accelerator for guests with a kernel. can reports whether the host supports a treatment.
func (a *Asked) Treatments(w Work, h notebook.Host, accel func(kernel string) string, can func(notebook.Treatment) bool) []notebook.Treatment {
	s := a.Spec
	var out []notebook.Treatment
	hostCores := 0
	add := func(t notebook.Treatment) {
		t.Workload, t.Params, t.Factors, t.HostCores = w.Workload.Name, w.Params, w.Factors, hostCores
		t.Rounds = a.Choices.rounds(w.use)
		t.ID = Identify(t)
		if !a.Choices.Only.keeps(t) {
			return
		}
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
		for _, text := range s.instances(w.use) {
			inst, err := notebook.OfHost(h), error(nil)
			if text != notebook.HostSize {
				inst, err = notebook.ParseInstance(text)
			}
			if err != nil {
				continue // validated when the file was read
			}
			for _, p := range s.Platforms {
				a.at(w, p, inst, accel, can, add)
			}
		}
	}
	return out
}

// at calls add for each treatment of one platform at one instance type.
func (a *Asked) at(w Work, p Place, inst notebook.Instance, accel func(kernel string) string, can func(notebook.Treatment) bool, add func(notebook.Treatment)) {
	s := a.Spec
	if p.Platform == notebook.BM {
		for _, aa := range []bool{false, true} {
			add(notebook.Treatment{Platform: notebook.BM, Instance: inst, AA: aa, OthersOffline: p.OtherCPUs == offline, MemoryWithheld: p.OtherMemory == withheld})
		}
		return
	}
	es, vs, ns, is := s.engines(p), p.Provisioning, p.Networks, p.isolation()
	switch {
	case s.engine(p.Platform, es[0]).Provisionings == nil:
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
			if len(s.engine(p.Platform, engine).Accelerators) > 0 {
				t.Accelerator = accel(kernel)
			}
			return t
		}
		// Of several engines, the first that the host supports; if it supports none, the first. --only engine=… chooses among them.
		of := strings.Split(choice, "|")
		if asked := a.Choices.Only[notebook.FactorEngine.Name]; slices.Contains(of, asked) {
			of = []string{asked}
		}
		i := slices.IndexFunc(of, func(engine string) bool { return can(with(engine)) })
		t := with(of[max(i, 0)])
		for _, t.Isolation = range is {
			if t.Network = n; n == "" && w.Workload.Service != nil && !s.rules().OwnNetwork {
				t.Network = s.engine(t.Platform, t.Engine).Connected(t.Isolation, true)
			}
			for _, t.Machine = range w.use.machines(p) {
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
				for _, kernel := range a.kernels.of(s, p) {
					one(choice, v, n, kernel)
				}
			}
		}
	}
}

// Identify names a treatment by all that distinguishes it.
func Identify(t notebook.Treatment) string {
	parts := []string{t.Label(), t.Platform}
	for _, p := range []string{t.Engine, t.Isolation, t.Accelerator, t.Provisioning} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if t.Kernel != "" {
		parts = append(parts, "kernel", t.Kernel)
	}
	parts = append(parts, t.Instance.Name)
	if t.Network != "" {
		parts = append(parts, "network", t.Network)
	}
	if t.Machine != "" {
		parts = append(parts, "machine", t.Machine)
	}
	if t.HostCores > 0 {
		parts = append(parts, fmt.Sprintf("on %d CPUs", t.HostCores))
	}
	if t.AA {
		parts = append(parts, "aa")
	}
	return strings.Join(parts, " ")
}
