package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"tare/lab/ruler"
)

// ErrorsKey is the figure that counts what went wrong in a load: above zero, the trial has failed.
const ErrorsKey = "errors"

// Figures reads what a measured command printed as its last line, a JSON object of numbers, and gives the metric and
// the secondary metrics that the workload names. A command without such a line, or with errors in it, has failed; cause
// says why. Of a workload whose metric is a time, all are empty.
func (w *Workload) Figures(r ruler.Result) (metric float64, also map[string]float64, cause string) {
	if w.Metric.From == "" && len(w.Also) == 0 {
		return r.Elapsed.Seconds(), nil, ""
	}
	lines := bytes.Split(bytes.TrimSpace(r.Stdout), []byte("\n"))
	last := lines[len(lines)-1]
	var all map[string]*float64 // nil: null, which is how JavaScript prints a number that is none
	if err := json.Unmarshal(last, &all); err != nil {
		return 0, nil, fmt.Sprintf("a line with a JSON object of numbers was expected at the end of its output, not %.80q", last)
	}
	if n, ok := all[ErrorsKey]; ok && n == nil {
		cause = fmt.Sprintf("it printed no %q that is a number of zero or more: null", ErrorsKey)
	} else if ok && *n != 0 {
		cause = fmt.Sprintf("%g of its requests failed", *n)
		if said := lastLine(r.Stderr); said != "" {
			cause += ": " + said
		}
	}
	number := func(key string) float64 {
		// A figure that is none says so by its absence; a time or a count is never negative.
		if v := all[key]; v != nil && *v >= 0 {
			return *v
		}
		if cause == "" {
			cause = fmt.Sprintf("it printed no %q that is a number of zero or more: %.200s", key, strings.ToValidUTF8(string(last), "?"))
		}
		return 0
	}
	metric = r.Elapsed.Seconds()
	if w.Metric.From != "" {
		metric = number(w.Metric.From)
	}
	also = map[string]float64{}
	for _, m := range w.Also {
		also[m.Name] = number(m.Name)
	}
	return metric, also, cause
}
