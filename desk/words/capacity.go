package words

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tare/desk/data"
	capacitykind "tare/notebook/kinds/capacity"
)

// Answers says how many requests a second a service answered at its objective; empty where that is not known.
func Answers(r *data.Row) string {
	i := slices.IndexFunc(r.Secondary, func(s data.Secondary) bool { return s.Metric == capacitykind.PerSecond })
	if i < 0 || r.Curve == nil {
		return ""
	}
	s := r.Secondary[i]
	return Measured(s.Mean, data.Floor(s.Metric, s.Low), s.High, "requests a second")
}

// percentile is a metric that is one of a run's requests.
var percentile = regexp.MustCompile(`^p[0-9]+(\.[0-9]+)?$`)

// Percentiles says what the percentiles among the rows' secondary metrics are; empty where there is none.
func Percentiles(rows []*data.Row) string {
	var all []string
	for _, m := range data.SecondaryColumns(rows) {
		if percentile.MatchString(m.Metric.Name) {
			all = append(all, m.Metric.Name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ") + ": the percentile of each run's requests, averaged over rounds; not the percentile of all requests."
}

// carries is the answer at one place where capacities were sought: of rows that can be ranked, the one that carries most first.
func carries(where string, ranked []*data.Row, base *data.Row, to string, named func(*data.Row) string) string {
	var all []string
	for i, r := range ranked {
		share := Measured(100/r.Ratio, 100/r.RatioHigh, 100/r.RatioLow, "%")
		if i == 0 {
			share += fmt.Sprintf(" of %s's requests at %s", to, Plain(r.Curve.Objective.Objective()))
			if base != nil && Answers(base) != "" {
				share += ", " + Answers(base)
			}
		}
		all = append(all, named(r)+" carries "+share)
	}
	return fmt.Sprintf("%s, %s.", where, strings.Join(all, "; "))
}
