package words

import "strings"

// MetricHelp explains a metric of the OpenMetrics text format, by its name.
func MetricHelp(name string) string {
	for _, unit := range []string{"_seconds", "_bytes"} {
		if of, is := strings.CutSuffix(name, unit); is && strings.HasPrefix(of, "tare_mean") {
			name = of
		}
	}
	return metricHelp[name]
}

var metricHelp = map[string]string{
	"tare_last_run_time_seconds":       "When the last run of the study ended on this host, in seconds since 1970.",
	"tare_runs":                        "Runs of the study on this host that measured something.",
	"tare_cost_ratio":                  "Cost relative to the reference. Above 1 is worse.",
	"tare_cost_low_ratio":              "Lower end of the 95 % interval of the cost.",
	"tare_cost_high_ratio":             "Upper end of the 95 % interval of the cost.",
	"tare_verdict":                     "Always 1. The label has the verdict: slower, faster, equivalent or inconclusive.",
	"tare_mean":                        "Mean of the metric.",
	"tare_mean_low":                    "Lower end of the 95 % interval of the mean.",
	"tare_mean_high":                   "Upper end of the 95 % interval of the mean.",
	"tare_trials":                      "Measured runs of the configuration, including failed ones.",
	"tare_trials_failed":               "Measured runs of the configuration that failed.",
	"tare_history_runs":                "Runs of the study that have a value of the configuration.",
	"tare_history_examined":            "1: the history is long enough to look for changes. 0: it is too short.",
	"tare_history_spread_ratio":        "Standard deviation of the runs around their level, as a share.",
	"tare_history_changes":             "Changes of the level in the whole history.",
	"tare_history_change_time_seconds": "When the first run with the latest level ended, in seconds since 1970.",
	"tare_history_change_ratio":        "The latest level over the level before it. Above 1: cost or mean rose.",
}
