package words

import (
	"fmt"
	"strings"

	"tare/desk/advise"
	"tare/desk/data"
	"tare/notebook"
)

// Comments in a configuration that applies a choice of a ranking.

// AppliedDevices says what the names of devices need.
const AppliedDevices = "Docker knows devices by these names from version 25 on, where the host describes them (CDI)."

// AppliedRank says which choice the configuration applies.
func AppliedRank(r *advise.Ranking, c *advise.Choice) string {
	return fmt.Sprintf("%s, number %d of %d for %s on %s.", Capital(Choice(c.Treatment, r.Networks)), c.Rank, len(r.Choices), r.Workload, r.Host)
}

// AppliedTied says which other choices of the ranking a choice is not distinguishable from; "": none.
func AppliedTied(r *advise.Ranking, c *advise.Choice) string {
	var others []string
	for _, o := range r.Choices {
		if c.Tied && o.Tied && o.Rank != c.Rank {
			others = append(others, Choice(o.Treatment, r.Networks))
		}
	}
	if others == nil {
		return ""
	}
	return "The results do not distinguish it from " + List(others) + "."
}

// AppliedValue says by which value the choice was ranked.
func AppliedValue(r *advise.Ranking, c *advise.Choice) string {
	if c.Predicted {
		return "Predicted, not measured: " + rankedValue(r, *c) + "."
	}
	return "Measured: " + rankedValue(r, *c) + "."
}

// NotExpressed says that a format cannot express the first choice, and which formats fit it.
func NotExpressed(r *advise.Ranking, format, fitting string) string {
	return fmt.Sprintf("Number 1, %s, cannot be expressed in %s; %s.", Choice(r.Choices[0].Treatment, r.Networks), format, fitting)
}

// AppliedNote says what limits the choice's result.
func AppliedNote(d data.Doubt) string { return "Note: " + Doubt(d) + "." }

// AppliedPort says which port the service needs.
func AppliedPort(port int) string {
	return fmt.Sprintf("The service was measured at port %d: leave it open to its clients.", port)
}

// AppliedKernel says which words the command line of the VM's kernel had.
func AppliedKernel(line []string) string {
	return "The VM was measured with " + strings.Join(line, " ") + " on its kernel's command line: add it there."
}

// MeasuredCPUSet says that guests had this CPU set, and on which host.
func MeasuredCPUSet(cpus []int, host string) string {
	return fmt.Sprintf("The guests had the CPU set %s on %s; choose another on another host (lscpu -e).", notebook.FormatCPUList(cpus), host)
}

// ExampleCPUSet says that the CPU set is only an example: no guest had it.
func ExampleCPUSet(cpus []int) string {
	return fmt.Sprintf("The CPU set %s is an example, because the record of the guests has none: choose one with lscpu -e.", notebook.FormatCPUList(cpus))
}

// AppliedPlaceholder says what stands in for an image.
func AppliedPlaceholder(name string) string {
	return name + " is a placeholder: write your image there."
}

// AppliedEngine says with which engine a container was measured.
func AppliedEngine(engine string) string {
	return fmt.Sprintf("Measured with the engine %s; another engine's overhead may differ.", engine)
}
