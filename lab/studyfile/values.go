package studyfile

import (
	"slices"
	"strings"

	"tare/notebook"
)

// values are the workloads of the study, and its values of each factor, as far as they are known without a host.
func (s *Spec) values(works []Work, k kernels) map[string][]string {
	has := map[string][]string{notebook.FactorProvisioning.Name: slices.Clone(notebook.Provisionings), notebook.FactorHostCores.Name: s.HostCores}
	if len(s.HostCores) == 0 {
		has[notebook.FactorHostCores.Name] = []string{allCores}
	}
	add := func(f notebook.Factor, values ...string) { has[f.Name] = append(has[f.Name], values...) }
	for _, w := range works {
		has[byWorkload] = append(has[byWorkload], w.Workload.Name)
		add(notebook.FactorInstance, s.instances(w.use)...)
		if w.Workload.Service != nil {
			add(notebook.FactorNetwork, notebook.NetBridge) // the default, if the study names no network
		}
		for name, value := range w.Factors {
			has[name] = append(has[name], value)
		}
	}
	for _, p := range s.Platforms {
		add(notebook.FactorPlatform, p.Platform)
		add(notebook.FactorNetwork, p.Networks...)
		add(notebook.FactorIsolation, p.isolation()...)
		for _, choice := range s.engines(p) {
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
		for _, w := range works {
			for _, text := range w.use.machines(p) {
				add(notebook.FactorMachine, onlyValue(notebook.FactorMachine, notebook.Treatment{Machine: text}))
			}
		}
		for _, name := range k.of(s, p) {
			add(notebook.FactorKernel, onlyValue(notebook.FactorKernel, notebook.Treatment{Kernel: name}))
		}
	}
	return has
}

// Values are the values that --only can name for a key, each once, as far as they are known without a host.
func (a *Asked) Values(key string) (all []string) {
	for _, v := range a.Spec.values(a.Works, a.kernels)[key] {
		if v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}
