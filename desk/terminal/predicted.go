package terminal

import (
	"io"

	"tare/desk/predict"
	"tare/desk/words"
)

// Forecasts writes what is predicted of each work, in each environment.
func Forecasts(w io.Writer, all *predict.Forecasts, on Screen) error {
	t := &text{Screen: on}
	for i := range all.Works {
		f := &all.Works[i]
		t.head(words.Forecast(f))
		cols := []column{{head: "environment"}, {head: words.PredictedRatio, gap: 2}, {head: words.PredictedMostly, gap: 2}}
		var refused []string
		for j := range f.Predictions {
			p := &f.Predictions[j]
			where := words.PredictedEnvironment(p.Environment)
			if p.Refused != nil {
				refused = append(refused, where+": "+words.Doubt(p.Refused))
				continue
			}
			for c, cell := range []string{where, words.Interval(p.Ratio, p.Low, p.High), words.PredictionParts(p)} {
				cols[c].cells = append(cols[c].cells, cell)
			}
		}
		if len(cols[0].cells) > 0 {
			t.line("")
			t.grid(t.whole(cols), func(int) bool { return false })
		}
		t.list(words.Capital(words.NotPredicted), refused)
		t.line("")
	}
	t.list(words.Capital(words.NotPredicted), words.SkippedWorks(all.Skipped))
	for _, d := range all.Doubts {
		t.wrap("", words.Sentence(words.Doubt(d)))
	}
	t.wrap("", words.ModelLeavesOut)
	return t.flush(w)
}

// whole takes the last columns from a table for which the screen is too narrow.
func (t *text) whole(cols []column) []column {
	for len(cols) > 2 && !t.fits(cols) {
		t.without("the column " + cols[len(cols)-1].head)
		cols = cols[:len(cols)-1]
	}
	return cols
}

// errors is a table of how far off the ways to predict are.
func (t *text) errors(q *predict.Quality) {
	var cols []column
	for i, head := range words.ErrorColumns {
		cols = append(cols, column{head: head, right: i > 0, gap: 2})
	}
	for _, row := range words.Errors(q) {
		for i, cell := range row {
			cols[i].cells = append(cols[i].cells, cell)
		}
	}
	t.grid(t.whole(cols), func(int) bool { return false })
}

// Checks writes how good the predictions of a calibration are: of each environment, those that were outside their intervals, or all.
func Checks(w io.Writer, checks []predict.Check, skipped []predict.Skipped, all bool, on Screen) error {
	t := &text{Screen: on}
	t.wrap("", words.LeftOutEach)
	for i := range checks {
		c := &checks[i]
		t.line("")
		t.head(words.PredictedEnvironment(c.Environment))
		if c.Environment.Cannot != nil {
			t.wrap("  ", words.Sentence(words.Doubt(c.Environment.Cannot)))
			continue
		}
		t.wrap("  ", words.Quality(&c.Quality))
		if c.N > 0 {
			t.line("")
			t.errors(&c.Quality)
		}
		cols := []column{{head: "  workload"}, {head: words.MeasuredRatio, gap: 2}, {head: words.PredictedRatio, gap: 2}, {head: words.PredictedMostly, gap: 2}}
		for j := range c.Left {
			l := &c.Left[j]
			p := &l.Predicted
			if !all && (p.Refused != nil || l.Inside()) {
				continue
			}
			predicted := words.Interval(p.Ratio, p.Low, p.High)
			if p.Refused != nil {
				predicted = words.Doubt(p.Refused)
			}
			for k, cell := range []string{"  " + words.BriefWork(l.Treatment), words.Interval(l.Ratio, l.Low, l.High), predicted, words.PredictionParts(p)} {
				cols[k].cells = append(cols[k].cells, cell)
			}
		}
		if len(cols[0].cells) > 0 {
			t.line("")
			if !all {
				t.wrap("  ", words.OutsideIntervals)
			}
			t.grid(t.whole(cols), func(int) bool { return false })
		}
		t.list("  "+words.FailedThere, words.SkippedWorks(c.Environment.Failed))
	}
	t.list(words.WithoutCounts, words.SkippedWorks(skipped))
	return t.flush(w)
}
