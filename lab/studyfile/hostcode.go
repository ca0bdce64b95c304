package studyfile

import (
	"slices"

	"tare/notebook"
)

// hostCode names what of the study runs as root on this host, and neither in a container nor in a VM. from is the machine on which
// loads run; "": this host.
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
