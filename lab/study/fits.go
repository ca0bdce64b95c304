package study

import (
	"fmt"
	"math"
	"slices"

	"tare/lab/studyfile"
	"tare/notebook"
)

// spareMemory is what a guest's size must leave of the host's memory for the host itself, in bytes.
const spareMemory = 512 << 20

// fits says why the host is too small for a treatment; nil: it is large enough.
func fits(h notebook.Host, t notebook.Treatment) *notebook.Message {
	cores, n := t.Instance.Cores, len(h.CPUs)
	switch {
	case t.HostCores > n:
		return notebook.Say("host-has-fewer-cpus", "cpus", t.HostCores, "has", n)
	case cores > float64(n):
		return notebook.Say("too-many-cores", "cores", cores, "has", n)
	case t.HostCores > 0 && cores > float64(t.HostCores):
		return notebook.Say("too-many-cores-of-smaller", "cores", cores, "cpus", t.HostCores)
	case t.Instance.Memory > h.Memory-spareMemory:
		return notebook.Say("too-much-memory", "memory", t.Instance.Memory, "has", h.Memory)
	}
	return nil
}

// neighboursFit says why the host has no room for a treatment's neighbours, as far as that is known before they start; nil: it has.
func neighboursFit(h notebook.Host, t notebook.Treatment) *notebook.Message {
	n := notebook.NeighboursOf(t)
	hostCores := len(h.CPUs)
	if t.HostCores > 0 {
		hostCores = t.HostCores
	}
	kinds := n.Kinds(max(hostCores/max(int(math.Ceil(t.Instance.Cores)), 1), 1))
	if len(kinds) > notebook.MostNeighbours {
		return notebook.Say("too-many-neighbours", "needs", len(kinds), "most", notebook.MostNeighbours)
	}
	if t.Platform != notebook.VM && t.Platform != notebook.VMCN {
		return nil // a container's page cache belongs to the host, which can reclaim it
	}
	full := int64(1) // guests that may use all of their memory; those that only compute use little
	for _, kind := range kinds {
		if kind != notebook.BusyCPU {
			full++
		}
	}
	if all := full * t.Instance.Memory; len(kinds) > 0 && all > h.Memory-spareMemory {
		return notebook.Say("too-much-memory-with-neighbours", "memory", all, "has", h.Memory)
	}
	return nil
}

// worthwhile rejects a plan that cannot answer anything: it has no treatment, or only bare metal although the study compares others with
// it.
func worthwhile(s notebook.Study, only studyfile.Only) error {
	bare := func(t notebook.Treatment) bool { return t.Platform == notebook.BM }
	asked := slices.DeleteFunc(slices.Clone(s.LeftOut), func(l notebook.LeftOut) bool { return bare(l.Treatment) })
	switch measured := s.Treatments; {
	case len(measured) == 0 && len(asked) == 0:
		asked = s.LeftOut
	case slices.ContainsFunc(measured, func(t notebook.Treatment) bool { return !bare(t) }), len(asked) == 0:
		return nil
	}
	if len(only) > 0 && len(asked) == 0 {
		return fmt.Errorf("study %s: no configuration has all of --only %s: name values that occur together", s.Name, only)
	}
	return &notebook.Error{Says: notebook.Say("nothing-to-measure", "study", s.Name, "only", only.String(), "bare", len(s.Treatments) > 0, "why", reasons(asked))}
}

// reasons says why treatments are left out: the first few reasons, each once, and how many more there are.
func reasons(all []notebook.LeftOut) *notebook.Message {
	const most = 3
	var why []*notebook.Message
	for _, l := range all {
		if !slices.ContainsFunc(why, l.Reason.Equal) {
			why = append(why, l.Reason)
		}
	}
	if n := len(why) - most; n > 0 {
		why = append(why[:most], notebook.Say("more-reasons", "reasons", n))
	}
	return notebook.Several(why)
}
