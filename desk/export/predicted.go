package export

import (
	"io"

	"tare/desk/predict"
	"tare/desk/words"
	"tare/stats"
)

// predicted is one prediction as JSON. What is not known is null.
type predicted struct {
	Platform     string          `json:"platform"`
	Engine       *string         `json:"engine"`
	Provisioning *string         `json:"provisioning"`
	Instance     string          `json:"instance"`
	Name         string          `json:"name"`
	Emulated     bool            `json:"emulated"`
	Ratio        stats.Number    `json:"ratio"`
	Low          stats.Number    `json:"ratio_low"`
	High         stats.Number    `json:"ratio_high"`
	Parts        []predictedPart `json:"parts"`
	Refused      *string         `json:"refused"`
}

type predictedPart struct {
	Event string       `json:"event"`
	Rate  stats.Number `json:"per_second"`
	Value stats.Number `json:"adds"`
	Low   stats.Number `json:"adds_low"`
	High  stats.Number `json:"adds_high"`
}

func predictionOf(p *predict.Prediction) predicted {
	t := p.Environment.Treatment
	out := predicted{
		Platform: t.Platform, Engine: word(t.Engine), Provisioning: word(t.Provisioning), Instance: t.Instance.Name,
		Name: words.PredictedEnvironment(p.Environment), Emulated: p.Environment.Emulated,
		Ratio: stats.Number(p.Ratio), Low: stats.Number(p.Low), High: stats.Number(p.High), Parts: []predictedPart{},
	}
	for _, part := range p.Parts {
		out.Parts = append(out.Parts, predictedPart{part.Name, stats.Number(part.Rate), stats.Number(part.Value), stats.Number(part.Low), stats.Number(part.High)})
	}
	if p.Refused != nil {
		out.Refused = word(words.Doubt(p.Refused))
	}
	return out
}

// Forecasts writes predictions as `tare predict --format json` promises them.
func Forecasts(w io.Writer, all *predict.Forecasts) error {
	type work struct {
		Workload    string       `json:"workload"`
		Trials      int          `json:"traced_runs"`
		Size        stats.Number `json:"event_size"` // bare metal's time in the kernel for an event, relative to the same in a loop
		Reference   *string      `json:"reference"`  // null: bare metal
		Predictions []predicted  `json:"predictions"`
	}
	out := struct {
		Works   []work   `json:"works"`
		Skipped []string `json:"not_predicted"`
		Notes   []string `json:"notes"`
	}{[]work{}, append([]string{}, words.SkippedWorks(all.Skipped)...), append(words.Doubts(all.Doubts), words.ModelLeavesOut)}
	for i := range all.Works {
		f := &all.Works[i]
		reference := ""
		if f.Reference != nil {
			reference = words.PredictedEnvironment(f.Reference)
		}
		w := work{Reference: word(reference), Workload: f.Treatment.Label(), Trials: f.Trials, Size: stats.Number(f.Size), Predictions: []predicted{}}
		for j := range f.Predictions {
			w.Predictions = append(w.Predictions, predictionOf(&f.Predictions[j]))
		}
		out.Works = append(out.Works, w)
	}
	return NewEncoder(w).Encode(out)
}

// Checks writes how good the predictions of a calibration are, as `tare predict --format json` promises them.
func Checks(w io.Writer, checks []predict.Check) error {
	type errors struct {
		Median  stats.Number `json:"median"`
		Worst   stats.Number `json:"p90"`
		OfShown stats.Number `json:"median_of_overhead"`
	}
	type left struct {
		Workload  string       `json:"workload"`
		Measured  stats.Number `json:"measured"`
		Low       stats.Number `json:"measured_low"`
		High      stats.Number `json:"measured_high"`
		Shown     bool         `json:"shown"`
		Others    stats.Number `json:"mean_of_others"`
		Predicted predicted    `json:"predicted"`
	}
	type check struct {
		Environment string       `json:"environment"`
		Cannot      *string      `json:"cannot"` // why nothing is predicted there; null: it is
		Failed      []string     `json:"failed"` // what does not work there
		Predicted   int          `json:"predicted"`
		Refused     int          `json:"refused"`
		Inside      int          `json:"inside"`
		Half        stats.Number `json:"half_width"`
		Shown       int          `json:"shown"`
		Model       errors       `json:"model"`
		None        errors       `json:"no_overhead"`
		Others      errors       `json:"mean_of_others"`
		Left        []left       `json:"left_out"`
	}
	of := func(e predict.Errors) errors {
		return errors{stats.Number(e.Median), stats.Number(e.Worst), stats.Number(e.OfShown)}
	}
	out := []check{}
	for i := range checks {
		c := &checks[i]
		cannot := ""
		if c.Environment.Cannot != nil {
			cannot = words.Doubt(c.Environment.Cannot)
		}
		v := check{
			Cannot: word(cannot), Failed: list(words.SkippedWorks(c.Environment.Failed)),
			Environment: words.PredictedEnvironment(c.Environment), Predicted: c.N, Refused: c.Refused, Inside: c.Inside, Half: stats.Number(c.Half),
			Shown: c.Shown, Model: of(c.Model), None: of(c.None), Others: of(c.Others), Left: []left{},
		}
		for j := range c.Left {
			l := &c.Left[j]
			v.Left = append(v.Left, left{l.Treatment.Label(), stats.Number(l.Ratio), stats.Number(l.Low), stats.Number(l.High), l.Shown, stats.Number(l.Others), predictionOf(&l.Predicted)})
		}
		out = append(out, v)
	}
	return NewEncoder(w).Encode(out)
}
