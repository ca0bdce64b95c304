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

// Along explains the places on an axis; empty if they explain themselves. hosts is the number of hosts on which the rows were measured.
func Along(axis string, hosts int) string {
	switch axis {
	case notebook.FactorHostCores.Name:
		said := "Along the axis: how many CPUs the host had online, and CHR, the instance’s cores over them."
		if hosts > 1 {
			said += " The hosts are several machines: compare their times only where the machines are alike; each ratio is to its own bare metal."
		}
		return said
	case notebook.FactorNetwork.Name:
		return "Along the axis: how the guest is connected."
	case notebook.FactorNeighbours.Name:
		return "Along the axis: the busy guests beside the measured one; N/core means N guests, this one included, on each of the host’s CPUs."
	}
	return ""
}

// before puts a word before a text, unless the text is empty.
func before(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}
