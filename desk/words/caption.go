package words

import (
	"maps"

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
