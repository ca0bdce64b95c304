package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"tare/lab/ruler"
	"tare/notebook"
)

// ErrorsKey is the figure that counts what went wrong in a load: above zero, the trial has failed.
const ErrorsKey = "errors"

// Figures reads what a measured command printed as its last line, a JSON object of numbers, and gives the metric and
// the secondary metrics that the workload names. A command without such a line, or with errors in it, has failed; cause
// says why. Of a workload whose metric is a time, all are empty.
func (w *Workload) Figures(r ruler.Result) (metric float64, also map[string]float64, _ string) {
	if w.Metric.From == "" && len(w.Also) == 0 {
		return r.Elapsed.Seconds(), nil, ""
	}
	number, cause := printed(r)
	get := func(key string) float64 {
		v, why := number(key)
		if cause == "" {
			cause = why
		}
		return v
	}
	metric = r.Elapsed.Seconds()
	if w.Metric.From != "" {
		metric = get(w.Metric.From)
	}
	also = map[string]float64{}
	for _, m := range w.Also {
		also[m.Name] = get(m.Name)
	}
	return metric, also, cause
}

// printed reads a command's last line, and says what is wrong with it. number is one of its numbers, with why there is none.
func printed(r ruler.Result) (number func(key string) (float64, string), cause string) {
	lines := bytes.Split(bytes.TrimSpace(r.Stdout), []byte("\n"))
	last := lines[len(lines)-1]
	var all map[string]*float64 // nil: null, which is how JavaScript prints a number that is none
	if err := json.Unmarshal(last, &all); err != nil {
		cause = fmt.Sprintf("a line with a JSON object of numbers was expected at the end of its output, not %.80q", last)
	} else if n, ok := all[ErrorsKey]; ok && n == nil {
		cause = fmt.Sprintf("it printed no %q that is a number of zero or more: null", ErrorsKey)
	} else if ok && *n != 0 {
		cause = fmt.Sprintf("%g of its requests failed", *n)
		if said := lastLine(r.Stderr); said != "" {
			cause += ": " + said
		}
	}
	return func(key string) (float64, string) {
		// A figure that is none says so by its absence; a time or a count is never negative.
		if v := all[key]; v != nil && *v >= 0 {
			return *v, ""
		}
		return 0, fmt.Sprintf("it printed no %q that is a number of zero or more: %.200s", key, strings.ToValidUTF8(string(last), "?"))
	}, cause
}

// carried is the share of a rate of requests that has to be answered each second.
const carried = 0.9

// Step is what a load at a rate gave, and whether it met the objective.
func (w *Workload) Step(r ruler.Result, rate int, c notebook.Capacity) notebook.Step {
	s := notebook.Step{Rate: rate, Failure: Failure(r)}
	if s.Failure != "" {
		return s
	}
	number, cause := printed(r)
	for key, to := range map[string]*float64{"requests_per_second": &s.Throughput, "mean": &s.Mean, c.Metric: &s.Tail} {
		v, why := number(key)
		if *to = v; cause == "" {
			cause = why
		}
	}
	s.Failure = cause
	s.Met = cause == "" && s.Tail <= c.Bound && s.Throughput >= carried*float64(rate)
	return s
}
