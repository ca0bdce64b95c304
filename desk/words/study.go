package words

import (
	"fmt"
	"strings"

	"tare/notebook"
)

// StudyOK says that a study file has no error, and what it asks for.
func StudyOK(name string, configurations, workloads, floor, most int) string {
	return fmt.Sprintf("%s is ok: %s of %s, %s each. To see how long that takes here: tare run %[1]s --plan", name, Count(configurations, "configuration"), Count(workloads, "workload"), Between(floor, most, "round"))
}

// Between counts something with a range: "5 to 20 rounds".
func Between(least, most int, what string) string {
	if least == most {
		return Count(most, what)
	}
	return Thousands(least) + " to " + Count(most, what)
}

// Needs are what a study needs of a host.
type Needs struct {
	Root     bool          `json:"root"`
	VMs      bool          `json:"kvm"`       // some configurations are VMs
	Emulates bool          `json:"emulation"` // which may be emulated
	GPU      bool          `json:"gpu"`
	CPUs     notebook.Span `json:"cpus"` // of the smallest and the largest configuration
	RAM      notebook.Span `json:"memory_gb"`
	DiskGB   float64       `json:"disk_gb"` // at most, for images
}

// Text says them for a table: "1–2 CPUs, 4 GB, (KVM)".
func (n Needs) Text() string {
	parts := []string{}
	switch cpus := ends(n.CPUs); cpus {
	case "0", "256": // as many as the host has
	case "1":
		parts = append(parts, "1 CPU")
	default:
		parts = append(parts, cpus+" CPUs")
	}
	if n.RAM.High > 0 && n.RAM.High < 512 {
		parts = append(parts, ends(n.RAM)+" GB")
	}
	switch {
	case n.VMs && n.Emulates:
		parts = append(parts, "(KVM)")
	case n.VMs:
		parts = append(parts, "KVM")
	}
	if n.GPU {
		parts = append(parts, "GPU")
	}
	return strings.Join(parts, ", ")
}

// ends writes both ends of a span of sizes: "0.5–4".
func ends(s notebook.Span) string {
	low, high := fmt.Sprintf("%.3g", s.Low), fmt.Sprintf("%.3g", s.High)
	if low == high {
		return low
	}
	return low + "–" + high
}

// StudiesNote stands below the list of studies.
const StudiesNote = "All need root. Configurations that a host is too small for are left out. (KVM): VMs are emulated where there is no KVM. " +
	"Times are rough, for a host that has what the study needs. A + stands for runs whose time is not known. For this host: tare run STUDY --plan"
