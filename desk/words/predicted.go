package words

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/data"
	"tare/desk/predict"
	"tare/notebook"
)

// Texts of predictions.
const (
	PredictedRatio   = "predicted ratio"
	PredictedMostly  = "mostly because of"
	MeasuredRatio    = "measured"
	FailedThere      = "Does not work there:"
	WithoutCounts    = "Not in the calibration:"
	NotPredicted     = "not predicted"
	ModelLeavesOut   = "The model covers only the events that Tare counts. It leaves out effects of caches, memory bandwidth, NUMA, disks and neighbours."
	LeftOutEach      = "Tare predicted each workload from the single events and the other workloads, as if it had never run in the environment."
	OutsideIntervals = "What was measured lies outside the interval of:"
)

// EventName is what an event is called: "socket calls".
func EventName(e predict.Event) string {
	return strings.ReplaceAll(strings.ReplaceAll(e.Name, "_", " "), "io uring", "io_uring")
}

// Forecast introduces the predictions of a work.
func Forecast(f *predict.Forecast) string {
	if f.Reference != nil {
		return fmt.Sprintf("%s, relative to %s, in which it was observed for %s", Plain(f.Treatment.Label()), Environment(f.Reference.Treatment, false), Duration(f.Seconds))
	}
	return fmt.Sprintf("%s, from %s on bare metal (%s)", Plain(f.Treatment.Label()), Count(f.Trials, "traced run"), Plain(f.Treatment.Instance.Name))
}

// BriefWork is a work with its parameters, as far as they fit into a column.
func BriefWork(t notebook.Treatment) string {
	const most = 44
	name := []rune(Plain(t.Label()))
	if len(name) > most {
		return string(name[:most-1]) + "…"
	}
	return string(name)
}

// A prediction names at most mostParts kinds of events, and only those that change the ratio by at least leastPart.
const (
	mostParts = 3
	leastPart = 0.005
)

// PredictionParts names the kinds of events that change the ratio most.
func PredictionParts(p *predict.Prediction) string {
	var parts []string
	for _, part := range p.Parts {
		if len(parts) < mostParts && math.Abs(part.Value) >= leastPart {
			parts = append(parts, fmt.Sprintf("%s %s", EventName(part.Event), Signed(Digits(part.Value, 2))))
		}
	}
	return strings.Join(parts, ", ")
}

// PredictedEnvironment names the environment of a prediction.
func PredictedEnvironment(e *predict.Environment) string {
	s := Short(e.Treatment, false) + ", " + Plain(e.Treatment.Instance.Name)
	if e.Emulated {
		s += " (" + Doubt(data.Emulated{}) + ")"
	}
	return s
}

// Quality says how many predictions there are, and how many hold.
func Quality(q *predict.Quality) string {
	if q.N == 0 {
		return fmt.Sprintf("All %d are refused.", q.Refused)
	}
	return fmt.Sprintf("%d predicted, %d refused; %d of the %d (%s) inside their intervals, whose median half width is %s.",
		q.N, q.Refused, q.Inside, q.N, Percent(float64(q.Inside)/float64(q.N), 0), Percent(q.Half, 0))
}

// ErrorColumns are the column heads of Errors.
var ErrorColumns = [4]string{"off by, of the time", "in half", "in 1 of 10", "of the overhead, in half"}

// Errors are the rows of the table of errors: one for each way to predict.
func Errors(q *predict.Quality) [][4]string {
	var rows [][4]string
	for _, of := range []struct {
		name string
		predict.Errors
	}{{"this model", q.Model}, {`"no overhead"`, q.None}, {`"the mean of the others"`, q.Others}} {
		shown := "–"
		if q.Shown > 0 {
			shown = percentOf(of.OfShown)
		}
		rows = append(rows, [4]string{of.name, percentOf(of.Median), percentOf(of.Worst), shown})
	}
	return rows
}

func percentOf(share float64) string { return Digits(100*share, 2) + " %" }

// SkippedWorks lists the works that Tare cannot predict, with the reasons.
func SkippedWorks(all []predict.Skipped) (lines []string) {
	for _, s := range all {
		lines = append(lines, Plain(s.Treatment.Label())+": "+Doubt(s.Why))
	}
	return lines
}

// Texts of the figure of predictions.
const (
	PredictedTitle = "Predicted and measured ratios"
	PredictedAxis  = "predicted ratio to bare metal, against the measured ratio"
	PredictedHow   = "Each symbol is a workload in an environment, with the 95 % interval of its prediction. On the dashed line, the two ratios are equal."
)

// QualityBriefly sums up predictions for a legend.
func QualityBriefly(q *predict.Quality) string {
	if q.N == 0 {
		return fmt.Sprintf("%d refused", q.Refused)
	}
	return fmt.Sprintf("half of %d off by at most %s, %d refused", q.N, percentOf(q.Model.Median), q.Refused)
}
