package chart

import (
	"math"
	"strings"
	"testing"

	"tare/desk/predict"
	"tare/notebook/notebooktest"
)

// Each environment with a prediction has a figure, in which each predicted work has a symbol.
func TestPredictionsAreDrawn(t *testing.T) {
	crun, gvisor := &predict.Environment{Treatment: notebooktest.Treatment("cn crun pinned 1/1GB")}, &predict.Environment{Treatment: notebooktest.Treatment("cn gvisor pinned 1/1GB")}
	work := &predict.Work{Treatment: notebooktest.Treatment("nginx bm 1/1GB")}
	left := []predict.Left{
		{Row: &predict.Row{Work: work, Ratio: 1.1}, Predicted: predict.Prediction{Environment: crun, Ratio: 1.2, Low: 1, High: 1.4}},
		{Row: &predict.Row{Work: work, Ratio: 3}, Predicted: predict.Prediction{Environment: crun, Ratio: 2, Low: 1, High: 4}},
		{Row: &predict.Row{Work: work, Ratio: 3}, Predicted: predict.Prediction{Environment: crun, Ratio: math.NaN(), Refused: predict.Untraced{}}},
	}
	figures := OfChecks([]predict.Check{{Environment: crun, Left: left, Quality: predict.QualityOf(left)}, {Environment: gvisor}})
	if len(figures) != 1 || figures[0].File != "predicted-1-crun-cpu-set-1-1gb" || !strings.Contains(figures[0].Title, "crun, CPU set") {
		t.Fatalf("%+v", figures)
	}
	if svg := string(figures[0].SVG()); strings.Contains(svg, "NaN") || !strings.Contains(svg, "stroke-dasharray") {
		t.Error(svg)
	}
}
