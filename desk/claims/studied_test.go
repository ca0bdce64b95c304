package claims

import (
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/notebook"
	"tare/studies"
	"tare/workloads"
)

// shippedStudy is what a study's file says of its treatments.
type shippedStudy struct {
	Workloads []struct {
		Name      string            `yaml:"name"`
		Params    map[string]Values `yaml:"params"`
		Instances []string          `yaml:"instances"`
		Machines  []string          `yaml:"machines"` // instead of the platforms'
	} `yaml:"workloads"`
	Platforms []struct {
		Platform     string   `yaml:"platform"`
		Provisioning []string `yaml:"provisioning"`
		Machines     []string `yaml:"machines"`
	} `yaml:"platforms"`
	Instances []string `yaml:"instances"`
	HostCores []string `yaml:"host_cores"`
	Claims    []string `yaml:"claims"`
}

// defaults are those of a workload's parameters.
func defaults(t *testing.T, name string) map[string]string {
	var w struct {
		Params map[string]struct {
			Default string `yaml:"default"`
		} `yaml:"params"`
	}
	text, err := fs.ReadFile(workloads.FS, name+"/workload.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &w)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for k, p := range w.Params {
		all[k] = p.Default
	}
	return all
}

// treatments are the study's, without engines.
func (s *shippedStudy) treatments(t *testing.T) (all []notebook.Treatment) {
	or := func(list, other []string) []string {
		if len(list) > 0 {
			return list
		}
		return other
	}
	one := func(list []string) []string { return or(list, []string{""}) }
	for _, w := range s.Workloads {
		combos := []map[string]string{defaults(t, w.Name)}
		for k, values := range w.Params {
			var more []map[string]string
			for _, c := range combos {
				for _, v := range values {
					n := maps.Clone(c)
					n[k], _, _ = strings.Cut(v, " ")
					more = append(more, n)
				}
			}
			combos = more
		}
		for _, p := range s.Platforms {
			machines := p.Machines
			if notebook.HasMachine(p.Platform) {
				machines = or(w.Machines, machines)
			}
			for _, provisioning := range one(p.Provisioning) {
				for _, machine := range one(machines) {
					for _, c := range combos {
						for _, i := range or(w.Instances, s.Instances) {
							all = append(all, notebook.Treatment{Workload: w.Name, Params: c, Platform: p.Platform, Provisioning: provisioning, Machine: strings.TrimPrefix(machine, "usual"), Instance: size(i)})
						}
					}
				}
			}
		}
	}
	return all
}

// On a host like the paper's each treatment that a claim of The Art of CPU-Pinning is about is in a study that names these claims. A claim that no study can
// test would be "not testable here" everywhere.
func TestAStudyTestsEachClaim(t *testing.T) {
	const cores = 112
	type on struct {
		notebook.Treatment
		host float64
	}
	names, err := fs.Glob(studies.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var measured []on
	for _, name := range names {
		text, err := fs.ReadFile(studies.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		var s shippedStudy
		if err := yaml.Unmarshal(text, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Contains(s.Claims, "pinning") {
			continue
		}
		for _, tr := range s.treatments(t) {
			measured = append(measured, on{tr, cores})
			for _, n := range s.HostCores {
				if smaller, err := strconv.ParseFloat(n, 64); err == nil && smaller >= tr.Instance.Cores {
					measured = append(measured, on{tr, smaller})
				}
			}
		}
	}
	all, err := Shipped("pinning")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		for _, s := range c.Hypothesis.needs() {
			if !slices.ContainsFunc(measured, func(m on) bool { return s.has(m.Treatment, int(m.host), m.Instance.Cores/m.host) }) {
				t.Errorf("%s: no study has %s %v %v cores %v", c.ID, s.Workload, s.Platform, s.Params, s.Cores)
			}
		}
	}
}
