package words

import (
	"maps"
	"strings"

	"tare/notebook"
)

// captions are the captions of metrics, by their keys.
var captions = notebook.MetricNames{notebook.OwnShare.Name: "own share"}

// AddCaptions adds the captions of the metrics of a kind of study, by their keys. It is called while the program starts, by a variable of the
// kind's package.
func AddCaptions(of notebook.MetricNames) bool {
	maps.Copy(captions, of)
	return true
}

// Caption is what a metric is called in English, by its name. A metric of a workload is called as the workload's author named it.
func Caption(name string) string {
	caption, _ := captions.Of(name)
	return caption
}

// Called is what a metric is called in a sentence: a workload's author may have named it as in code, such as transactions_per_second.
func Called(m notebook.Metric) string { return strings.ReplaceAll(Plain(Caption(m.Name)), "_", " ") }

// comparative says that a value of a metric is lower or higher, before the metric's name: "fewer" transactions per second.
func comparative(m notebook.Metric, less bool) string {
	switch {
	case counts(m) && less:
		return "fewer"
	case counts(m):
		return "more"
	case less:
		return "lower"
	}
	return "higher"
}

// counts says whether a metric's name is of things that are counted.
func counts(m notebook.Metric) bool { return strings.HasSuffix(Called(m), "s per second") }
