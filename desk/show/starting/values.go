package starting

import (
	"slices"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/starting"
	"tare/stats"
)

// Phase is a part of a row's starts, from one moment to the next. Means are over rounds, in seconds since the request.
type Phase struct {
	Moment   string // at its end: one of notebook's
	From, To float64
}

// Started is one moment of a row's starts, over all starts, in seconds.
type Started struct {
	Moment                 string
	Mean, Median, P95, P99 stats.Estimate
	Starts                 int
}

// starts are a row's moments, those of a restore after those of a start; nil if no start was timed.
func starts(r *data.Row) (all []Started) {
	if r.Metric.Name != kind.Time {
		return nil
	}
	for _, name := range append(append([]string{}, notebook.StartMoments...), append([]string{kind.MomentSaved}, notebook.RestoreMoments...)...) {
		var values []float64
		for _, v := range r.SecondaryValues(name) {
			values = append(values, v.Mean)
		}
		if len(values) == 0 {
			continue
		}
		all = append(all, Started{
			Moment: name, Mean: r.Known(name), Starts: len(values),
			Median: stats.Percentile(values, 0.5), P95: stats.Percentile(values, 0.95), P99: stats.Percentile(values, 0.99),
		})
	}
	return all
}

// phases are the parts of a row's starts, ordered by their mean times; none if no start was timed.
func phases(r *data.Row) (all []Phase) {
	if r.Metric.Name != kind.Time {
		return nil
	}
	at := 0.0
	for {
		next := Phase{From: at}
		for _, name := range notebook.StartMoments {
			if v := r.Known(name).Value; v > at && (next.To == 0 || v < next.To) {
				next.Moment, next.To = name, v
			}
		}
		if next.To == 0 {
			return all
		}
		all, at = append(all, next), next.To
	}
}

// Saving holds the messages of trials about saving and restoring their guests, each once.
type Saving struct{ How, Not, WentOn []*notebook.Message }

// Trial adds what a trial says, whether or not it succeeded.
func (s *Saving) Trial(_ data.Block, t *notebook.Trial) error {
	seen, err := notebook.SeenOf[kind.Seen](t)
	start := seen.Startup
	if start == nil || start.HowSaved == nil && start.NoSaving == nil {
		return err
	}
	for _, of := range []struct {
		to   *[]*notebook.Message
		said *notebook.Message
	}{{&s.How, start.HowSaved}, {&s.Not, start.NoSaving}, {&s.WentOn, start.WentOn}} {
		if of.said != nil && !slices.ContainsFunc(*of.to, of.said.Equal) {
			*of.to = append(*of.to, of.said)
		}
	}
	return nil
}

// Finish returns what the trials said; nil: nothing.
func (s *Saving) Finish(*data.Summary) (any, []data.Doubt) {
	if s.How == nil && s.Not == nil {
		return nil, nil
	}
	return s, nil
}
