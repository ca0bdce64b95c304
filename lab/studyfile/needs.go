package studyfile

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"tare/lab/engine"
	"tare/lab/workload"
	"tare/notebook"
)

// Needs is what a machine without a network must have to run a study.
type Needs struct {
	Workloads []*workload.Workload // each once, including those of neighbours
	Engines   []engine.Kind        // the first of alternatives
}

// Needs returns what the study needs. It returns an error if the study needs files of this host, or something from the network.
func (s *Spec) Needs(shipped fs.FS) (n Needs, err error) {
	asked, err := s.Ask(shipped, Choices{})
	if err != nil {
		return n, err
	}
	cannot := func(what string) error {
		return fmt.Errorf("study %s: %s, but the machine that runs the study has neither this host's files nor a network", s.Name, what)
	}
	if s.LoadFrom != "" {
		return n, cannot("its load comes from " + s.LoadFrom)
	}
	all := map[string]*workload.Workload{}
	for i, u := range s.Workloads {
		if strings.Contains(u.Name, "/") {
			return n, s.located(cannot("workload "+u.Name+" is a folder of your own"), "workloads", i)
		}
	}
	for _, u := range asked.Works {
		switch {
		case u.Workload.Image.Reference != "":
			return n, cannot("workload " + u.Workload.Name + " has the image " + u.Workload.Image.Reference)
		case u.Workload.Input != nil && u.Workload.Input.PyPI+u.Workload.Input.Maven == "":
			return n, cannot("workload " + u.Workload.Name + " has an input of your own")
		}
		all[u.Workload.Name] = u.Workload
	}
	for _, name := range busyWork {
		if !s.hasNeighbours() {
			break
		}
		if all[name], err = workload.Find(shipped, name, "."); err != nil {
			return n, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n.Workloads = append(n.Workloads, all[name])
	}
	for i, p := range s.Platforms {
		if slices.ContainsFunc(p.Kernel, func(k string) bool { return k != "default" }) {
			return n, s.located(cannot("its virtual machines have a kernel of your own"), "platforms", i)
		}
		if p.Platform == notebook.BM {
			continue
		}
		for _, choice := range s.engines(p) {
			n.Engines = append(n.Engines, s.engine(p.Platform, choice))
		}
	}
	return n, nil
}
