package studyfile

import (
	"fmt"
	"slices"
	"strings"

	"tare/notebook"
)

// Names that stand for several tracers.
const (
	ExplainByDefault = "default" // notebook.DefaultTracers: what the kernel counts anyway
	ExplainDeep      = "deep"    // notebook.DeepTracers: each event as well
)

// ParseExplain reads the tracers that --explain names, separated by commas, and returns them in a fixed order. The tracer of requests follows
// every switch, which replaces the kernel's counters. So the tracer of the scheduler comes with it.
func ParseExplain(text string) ([]string, error) {
	switch text {
	case ExplainByDefault:
		return slices.Clone(notebook.DefaultTracers), nil
	case ExplainDeep:
		return slices.Clone(notebook.DeepTracers), nil
	}
	asked := strings.Split(text, ",")
	for i, name := range asked {
		if !slices.Contains(notebook.TracerNames, name) {
			return nil, fmt.Errorf("unknown tracer %q; the tracers are %s", name, strings.Join(notebook.TracerNames, ", "))
		}
		if slices.Contains(asked[:i], name) {
			return nil, fmt.Errorf("%s is named twice", name)
		}
	}
	if slices.Contains(asked, notebook.TracerRequests) {
		asked = append(asked, notebook.TracerScheduler)
	}
	return slices.DeleteFunc(slices.Clone(notebook.TracerNames), func(name string) bool { return !slices.Contains(asked, name) }), nil
}

// Choices are what a command decides in addition to the study file.
type Choices struct {
	Seed   uint64
	Rounds int // exactly this many; 0: as the file says
	Until  Until
	Only   Only
	// Against is what ratios are relative to, instead of bare metal, as notebook.ParseReference reads it.
	Against string
	Accel   string   // "auto", notebook.KVM, notebook.KVMEmulated, notebook.TCG
	Kernels []string // kernel files for VMs, instead of the study's; of two, the second is compared with the first
	Input   string   // a file instead of the workloads' own input
	Tare    string   // the program's version

	LoadFrom string // the machine on which loads run, instead of the study's

	NoHostCode bool // refuse a study that would run something as root on this host

	Begun      *notebook.Study // what the results folder already holds; nil: nothing
	SeedChosen bool            // the user chose the seed

	Explain []string // tracers for an equal number of additional, traced trials; none: no trial is traced
}

// rounds is the number of rounds of a use; 0: the design's, or the number that was chosen for all uses.
func (c Choices) rounds(u Use) int {
	if c.Rounds > 0 || c.Until.Asked() {
		return 0
	}
	return u.Rounds
}
