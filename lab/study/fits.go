package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/lab/studyfile"
	"tare/notebook"
)

// neighboursFit says why the host has no room for a treatment's neighbours, as far as that is known before there are any; nil: it has.
func neighboursFit(h notebook.Host, t notebook.Treatment) error {
	n := notebook.NeighboursOf(t)
	hostCores := len(h.CPUs)
	if t.HostCores > 0 {
		hostCores = t.HostCores
	}
	kinds := n.Kinds(max(hostCores/max(int(math.Ceil(t.Instance.Cores)), 1), 1))
	if len(kinds) > notebook.MostNeighbours {
		return fmt.Errorf("it needs %d neighbours here, and there are %d at most", len(kinds), notebook.MostNeighbours)
	}
	if t.Platform != notebook.VM && t.Platform != notebook.VMCN {
		return nil // a container's page cache is the host's, which takes it back
	}
	full := int64(1) // guests that may come to all of their memory: those that compute take little
	for _, kind := range kinds {
		if kind != notebook.BusyCPU {
			full++
		}
	}
	if all := full * t.Instance.Memory; len(kinds) > 0 && all > h.Memory-spareMemory {
		return fmt.Errorf("it needs %.3g GB of memory with its neighbours, whose page caches the host cannot take back, and the host has %.1f GB, of which half a GB stays the host's own",
			float64(all)/(1<<30), float64(h.Memory)/(1<<30))
	}
	return nil
}

// spareMemory is what a guest's size must leave of the host's memory for the host itself, in bytes.
const spareMemory = 512 << 20

// fits says why the host is too small for a treatment; nil: it is large enough.
func fits(h notebook.Host, t notebook.Treatment) error {
	cores, n := t.Instance.Cores, len(h.CPUs)
	switch {
	case t.HostCores > n:
		return fmt.Errorf("it is about a host with %d CPUs and this one has %d", t.HostCores, n)
	case cores > float64(n):
		return fmt.Errorf("it needs %g cores and the host has %d", cores, n)
	case t.HostCores > 0 && cores > float64(t.HostCores):
		return fmt.Errorf("it needs %g cores and the host is made one of %d", cores, t.HostCores)
	case t.Instance.Memory > h.Memory-spareMemory:
		return fmt.Errorf("it needs %g GB of memory and the host has %.1f GB, of which half a GB stays the host's own",
			float64(t.Instance.Memory)/(1<<30), float64(h.Memory)/(1<<30))
	}
	return nil
}

// worthwhile rejects a plan in which nothing is left of what was asked: no treatment, or only bare metal where something was to be
// compared with it. Measuring that takes time and answers nothing.
func worthwhile(s notebook.Study, only studyfile.Only) error {
	bare := func(t notebook.Treatment) bool { return t.Platform == notebook.BM }
	asked := slices.DeleteFunc(slices.Clone(s.LeftOut), func(l notebook.LeftOut) bool { return bare(l.Treatment) })
	switch measured := s.Treatments; {
	case len(measured) == 0 && len(asked) == 0:
		asked = s.LeftOut
	case slices.ContainsFunc(measured, func(t notebook.Treatment) bool { return !bare(t) }), len(asked) == 0:
		return nil
	}
	const most = 3
	var why []string
	for _, l := range asked {
		if !slices.Contains(why, l.Reason) {
			why = append(why, l.Reason)
		}
	}
	if n := len(why) - most; n > 0 {
		why = append(why[:most], fmt.Sprintf("and %d more reasons", n))
	}
	what := "nothing"
	switch {
	case len(only) > 0 && len(why) == 0:
		return fmt.Errorf("study %s: nothing in it has all of --only %s: name values that occur together", s.Name, only)
	case len(only) > 0:
		what += " that --only " + only.String() + " selects"
	case len(s.Treatments) > 0:
		what += " but bare metal"
	}
	return fmt.Errorf("study %s: %s can be measured here: %s; `sudo tare doctor` says what this host supports and how to get the rest", s.Name, what, strings.Join(why, "; "))
}
