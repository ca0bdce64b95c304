package studyfile

import (
	"fmt"
	"slices"
	"strings"

	"tare/notebook"
)

// HostCode names what of the study runs as root on this host, and neither in a container nor in a VM.
func (a *Asked) HostCode() (all []string) {
	add := func(what string) {
		if !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	for _, p := range a.Spec.Platforms {
		switch {
		case p.Platform == notebook.BM:
			add("the work on bare metal")
		case slices.Contains(p.Engines, notebook.LayersEngine):
			add("the work on the rungs of engine " + notebook.LayersEngine)
		}
	}
	for _, of := range a.Works {
		w := of.Workload
		if len(w.Prepare) > 0 {
			add("the preparation of workload " + w.Name)
		}
		if w.Load != nil && a.LoadFrom() == "" {
			add("the load of workload " + w.Name)
		}
	}
	return all
}

// withoutHostCode refuses a study of which something would run as root on this host.
func (a *Asked) withoutHostCode() error {
	all := a.HostCode()
	if !a.Choices.NoHostCode || len(all) == 0 {
		return nil
	}
	return fmt.Errorf("study %s: --no-host-code: as root on this host would run %s; name platforms without bm, and workloads without prepare: and without a load on this host", a.Spec.Name, strings.Join(all, ", "))
}
