package studyfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/notebook"
)

// Only selects the treatments of a plan that have these values: of the workload, or of a factor.
type Only map[string]string

const (
	byWorkload = "workload"
	allCores   = "all"   // of the host, as host_cores: has it
	usual      = "usual" // the machine that a study names so, and the kernel that the engine chooses
)

// OnlyKeys are the keys of an Only.
func OnlyKeys() []string { return append([]string{byWorkload}, notebook.FactorNames(nil)...) }

// String is the form that ParseOnly reads.
func (o Only) String() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		all = append(all, k+"="+o[k])
	}
	return strings.Join(all, ",")
}

// ParseOnly reads KEY=VALUE,….
func ParseOnly(text string) (Only, error) {
	only := Only{}
	if text == "" {
		return only, nil
	}
	keys := OnlyKeys()
	for _, kv := range notebook.SplitPairs(text) {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || v == "" {
			return nil, fmt.Errorf("--only %q: KEY=VALUE was expected, with a key of %s", kv, strings.Join(keys, ", "))
		}
		if !slices.Contains(keys, k) {
			return nil, fmt.Errorf("--only: unknown key %q; %s was expected", k, strings.Join(keys, ", "))
		}
		if only[k] != "" {
			return nil, fmt.Errorf("--only: %s is named twice; one value of each key was expected", k)
		}
		only[k] = v
	}
	return only, nil
}

// onlyValue is a treatment's value of a factor in the form that users write.
func onlyValue(f notebook.Factor, t notebook.Treatment) string {
	switch v := f.Of(t); {
	case v != "":
		return v
	case f.Name == notebook.FactorHostCores.Name:
		return allCores
	case f.Name == notebook.FactorMachine.Name, f.Name == notebook.FactorKernel.Name:
		return usual
	}
	return ""
}

// keeps reports whether the treatment is selected. Bare metal stays whatever is selected of what it does not have, such as an engine,
// because the others are compared with it.
func (o Only) keeps(t notebook.Treatment) bool {
	for k, v := range o {
		if k == byWorkload {
			if t.Workload != v {
				return false
			}
			continue
		}
		f, _ := notebook.FactorNamed(k)
		ofAll := !f.IsField() || k == notebook.FactorInstance.Name || k == notebook.FactorHostCores.Name
		if (ofAll || t.Platform != notebook.BM) && onlyValue(f, t) != v {
			return false
		}
	}
	return true
}

// known says which value occurs nowhere in the study.
func (o Only) known(a *Asked) error {
	has := a.values()
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(has[k], o[k]) {
			continue
		}
		all := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(has[k]))), func(v string) bool { return v == "" })
		if all == nil {
			return fmt.Errorf("--only %s=%s: the study %s has no %s: leave it out", k, o[k], a.Spec.Name, k)
		}
		return fmt.Errorf("--only %s=%s: the study %s has %s", k, o[k], a.Spec.Name, strings.Join(all, ", "))
	}
	return nil
}

// values are the workloads of the study, and its values of each factor, as far as they are known without a host.
func (a *Asked) values() map[string][]string {
	s := a.Spec
	has := map[string][]string{notebook.FactorProvisioning.Name: slices.Clone(notebook.Provisionings), notebook.FactorHostCores.Name: s.HostCores}
	if len(s.HostCores) == 0 {
		has[notebook.FactorHostCores.Name] = []string{allCores}
	}
	add := func(f notebook.Factor, values ...string) { has[f.Name] = append(has[f.Name], values...) }
	for _, w := range a.Works {
		has[byWorkload] = append(has[byWorkload], w.Workload.Name)
		add(notebook.FactorInstance, s.instances(w.use)...)
		if w.Workload.Service != nil {
			add(notebook.FactorNetwork, notebook.NetBridge) // where the study names no network
		}
		for name, value := range w.Factors {
			has[name] = append(has[name], value)
		}
	}
	for _, p := range s.Platforms {
		add(notebook.FactorPlatform, p.Platform)
		add(notebook.FactorNetwork, p.Networks...)
		add(notebook.FactorIsolation, p.isolation()...)
		es := p.Engines
		if len(es) == 0 {
			es = s.known.Engines.Names(p.Platform)[:1]
		}
		for _, choice := range es {
			for _, name := range strings.Split(choice, "|") {
				add(notebook.FactorEngine, name)
				if p.Platform != notebook.BM {
					add(notebook.FactorAccelerator, s.engine(p.Platform, name).Accelerators...)
				}
			}
		}
		if !notebook.HasMachine(p.Platform) {
			continue
		}
		for _, text := range p.machines() {
			add(notebook.FactorMachine, onlyValue(notebook.FactorMachine, notebook.Treatment{Machine: text}))
		}
		for _, name := range a.kernels.of(s, p) {
			add(notebook.FactorKernel, onlyValue(notebook.FactorKernel, notebook.Treatment{Kernel: name}))
		}
	}
	return has
}
