package words

import (
	"fmt"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// Headings of lists in a terminal.
const (
	AgainstItself    = "A/A check: bare metal against itself"
	AgainstUsual     = "VMs against the usual machine"
	MemoryToGiveBack = "What would free memory"
	NotTestableHere  = "Not testable here, and why"
	TracersMetrics   = "The tracers' metrics (--format json has them)"
)

// Columns that a narrow terminal leaves out, as TooNarrow names them.
const (
	SharesIntervals   = "the intervals of the shares"
	RatiosToBareMetal = "the ratios to bare metal"
)

// TooNarrow says which columns do not fit the terminal.
func TooNarrow(left []string) string {
	return "This terminal is too narrow for " + strings.Join(left, " and ") + ": a wider one, or --format json, shows them."
}

// MoreMetrics says where to find the metrics that a terminal leaves out.
func MoreMetrics(n int) string {
	return Count(n, "metric") + " more are in the report and in `tare export`."
}

// RulerCost says what the ruler costs in guests of one kind. It names the host if there are several.
func RulerCost(s *data.Summary, r data.RulerCost) string {
	of := notebook.Treatment{Platform: r.Platform, Engine: r.Engine, Accelerator: r.Accelerator, Kernel: r.Kernel}
	said := fmt.Sprintf("%s: %s for an empty process (%s to %s over %s), round trip %s",
		Environment(of, false), Duration(r.Median), Duration(r.Low), Duration(r.High), Count(r.Guests, "guest"), Duration(r.RoundTrip))
	if len(s.Hosts) > 1 {
		said = r.Host + ", " + said
	}
	return said
}
