package words

import (
	"regexp"
	"strings"

	"tare/desk/data"
)

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
