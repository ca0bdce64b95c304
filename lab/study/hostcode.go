//go:build linux

package study

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tare/notebook"
)

// HostCode names what of the study runs as root on this host, and neither in a container nor in a VM.
func (s *Spec) HostCode(shipped fs.FS, ch Choices) ([]string, error) {
	us, err := s.uses(shipped)
	if err != nil {
		return nil, err
	}
	return s.hostCode(us, ch), nil
}

func (s *Spec) hostCode(us []use, ch Choices) (all []string) {
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
	for _, u := range us {
		w := u.Workload
		if len(w.Prepare) > 0 {
			add("the preparation of workload " + w.Name)
		}
		if w.Load != nil && ch.From(s) == "" {
			add("the load of workload " + w.Name)
		}
	}
	return all
}

// withoutHostCode refuses a study of which something would run as root on this host.
func (s *Spec) withoutHostCode(us []use, ch Choices) error {
	all := s.hostCode(us, ch)
	if !ch.NoHostCode || len(all) == 0 {
		return nil
	}
	return fmt.Errorf("study %s: --no-host-code: as root on this host would run %s; name platforms without bm, and workloads without prepare: and without a load on this host", s.Name, strings.Join(all, ", "))
}
