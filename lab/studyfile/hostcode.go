package studyfile

import (
	"slices"

	"tare/notebook"
)

// hostCode names the parts of the study that run as root on this host, outside containers and VMs. from is the machine on which loads
// run; "": this host.
func (s *Spec) hostCode(works []Work, from string) (all []string) {
	add := func(what string) {
		if !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	for _, p := range s.Platforms {
		switch {
		case p.Platform == notebook.BM:
			add("the work on bare metal")
		case slices.Contains(p.Engines, notebook.LayersEngine):
			add("the work on the rungs of engine " + notebook.LayersEngine)
		}
	}
	for _, of := range works {
		w := of.Workload
		if len(w.Prepare) > 0 {
			add("the preparation of workload " + w.Name)
		}
		if w.Load != nil && from == "" {
			add("the load of workload " + w.Name)
		}
	}
	return all
}
