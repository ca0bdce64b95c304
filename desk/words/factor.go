package words

import (
	"cmp"

	"tare/desk/data"
	"tare/notebook"
)

// factors are the English names of factors, by name.
var factors = map[string]string{
	notebook.FactorPlatform.Name:     "platform",
	notebook.FactorEngine.Name:       "engine",
	notebook.FactorAccelerator.Name:  "accelerator",
	notebook.FactorKernel.Name:       "kernel",
	notebook.FactorProvisioning.Name: "provisioning",
	notebook.FactorInstance.Name:     "size",
	notebook.FactorNetwork.Name:      "network",
	notebook.FactorIsolation.Name:    "isolation",
	notebook.FactorMachine.Name:      "machine",
	notebook.FactorHostCores.Name:    "host CPUs",
	notebook.FactorAddresses.Name:    "addresses",
	notebook.FactorHugePages.Name:    "huge pages",
	notebook.FactorNeighbours.Name:   "neighbours",
	notebook.FactorCache.Name:        "cache",
	notebook.FactorMerging.Name:      "merging",
	notebook.FactorRoot.Name:         "root",
	notebook.FactorDevices.Name:      "devices",
	notebook.FactorRate.Name:         "rate",
	notebook.FactorSpacing.Name:      "spacing",
	notebook.FactorFrom.Name:         "from",
	notebook.FactorPull.Name:         "pull",
}

// Factor names a factor, or a parameter of a workload: "huge pages".
func Factor(name string) string { return cmp.Or(factors[name], Plain(name)) }

// On says where a row is on an axis: "large", "8 CPUs, CHR 0.25", "rate 4".
func On(axis string, r *data.Row) string {
	t := r.Treatment
	value, _ := t.Value(axis)
	switch axis {
	case notebook.FactorInstance.Name:
		return Plain(t.Instance.Name)
	case notebook.FactorHostCores.Name:
		return join(", ", []string{Count(r.HostCores, notebook.FactorHostCores.Unit), before("CHR ", CHR(r.CHR))})
	case notebook.FactorNeighbours.Name:
		if notebook.NeighboursOf(t).None() {
			return "alone"
		}
		return Plain(notebook.NeighboursOf(t).Text())
	case notebook.FactorPlatform.Name:
		return Platform(value)
	}
	f, known := notebook.FactorNamed(axis)
	switch {
	case value != "" || !known || !f.IsField():
		return Plain(Factor(axis) + " " + value)
	case axis == notebook.FactorNetwork.Name && t.Platform == notebook.BM:
		return "host’s own"
	case axis == notebook.FactorNetwork.Name:
		return "engine’s own"
	case t.Platform == notebook.BM:
		return Platform(t.Platform)
	}
	return "usual " + Factor(axis)
}

// Along explains the places of rows on an axis; empty if they explain themselves.
func Along(axis string, s *data.Summary, rows []*data.Row) string {
	switch axis {
	case notebook.FactorHostCores.Name:
		return alongHosts(s, rows)
	case notebook.FactorNetwork.Name:
		return "Along the axis: how the guest is connected."
	case notebook.FactorNeighbours.Name:
		return "Along the axis: the busy guests beside the measured one; N/core means N guests, this one included, on each of the host’s CPUs."
	}
	return ""
}

// alongHosts explains an axis of hosts with different numbers of CPUs, and what else differs between them.
func alongHosts(s *data.Summary, rows []*data.Row) string {
	said := "Along the axis: how many CPUs the host had online, and CHR, the instance’s cores over them."
	if places := data.Distinct(rows, func(r *data.Row) int { return r.HostCores }); len(places) == 1 {
		said += " There is only one place. To compare, add the folder of a host with another number of CPUs: tare report DIR… --pool."
	}
	hosts := data.Distinct(rows, func(r *data.Row) string { return r.HostID })
	if len(hosts) < 2 {
		return said
	}
	said += " The hosts are several machines: compare their times only where the machines are alike; each ratio is to its own bare metal."
	if unlike := s.Unlike(hosts); len(unlike) > 0 {
		said += " The machines differ in their " + Traits(unlike) + "."
	}
	return said
}

// moreThanCores says what else may grow with the number of CPUs. No comparison of machines separates it from CHR.
const moreThanCores = "A machine with more CPUs may also have more sockets, caches and memory, and no comparison of machines can tell these from the number of CPUs."

// Traits names what hosts differ in: "CPU model and kernel".
func Traits(all []data.HostTrait) string {
	var names []string
	for _, t := range all {
		switch t.Kind {
		case data.TraitCPU:
			names = append(names, "CPU model")
		case data.TraitSetting:
			names = append(names, "setting “"+settingNames[t.Of]+"”")
		case data.TraitMitigations:
			names = append(names, settingNames["mitigations"])
		case data.TraitVersion:
			names = append(names, "version of "+Plain(t.Of))
		default:
			names = append(names, string(t.Kind))
		}
	}
	return List(names)
}

// before puts a word before a text, unless the text is empty.
func before(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}
