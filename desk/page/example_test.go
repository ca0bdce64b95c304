package page_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"tare/desk/data"
	"tare/desk/page"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A report is one page, with its figures in a folder next to it.
func ExampleWriteSummary() {
	row := &data.Row{Treatment: notebooktest.Treatment("bm large"), Metric: notebook.Metric{Name: "execution time", Unit: "s"}, Rounds: 3, Trials: 3, Representative: true,
		Baseline: "bm large", Mean: 4, MeanLow: 3.9, MeanHigh: 4.1, Ratio: 1, RatioLow: 1, RatioHigh: 1, Dots: []data.Dot{{Value: 3.9}, {Value: 4.1}}}
	out, err := os.MkdirTemp("", "report-")
	if err != nil {
		log.Fatal(err)
	}
	files, err := page.WriteSummary(&data.Summary{Rows: []*data.Row{row}}, out, page.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		rel, err := filepath.Rel(out, f)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rel)
	}
	if err := os.RemoveAll(out); err != nil {
		log.Fatal(err)
	}
	// Output:
	// report.html
	// figures/1-ffmpeg-runs.svg
	// figures/1-ffmpeg-runs.pdf
}
