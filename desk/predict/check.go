package predict

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/desk/data"
	"tare/stats"
)

// Left is a work predicted from the probes and all other workloads.
type Left struct {
	*Row
	Predicted Prediction
	Others    float64 // geometric mean of the other workloads' ratios: a naive prediction
}

// off is how far the prediction is off, on the scale of predictions; NaN where it is refused.
func (l *Left) off() float64 { return math.Abs(scaled(l.Predicted.Ratio) - l.scaled) }

// Inside says whether what was measured is as near to the prediction as the intervals of both allow.
func (l *Left) Inside() bool {
	return l.off() <= math.Hypot(l.Predicted.half, l.Predicted.wider*l.noise)
}

// Check says how good the predictions of an environment are.
type Check struct {
	Environment *Environment
	Left        []Left // the worst first, then those that were refused; nil where the environment has no model
	Quality
}

// Quality sums up predictions of works that were measured. Refused ones count only as such.
type Quality struct {
	N, Refused, Inside int
	Half               float64 // median half width of the intervals, relative to the ratio
	Model              Errors
	None, Others       Errors // of the naive predictions "no overhead" and "mean of the others", over the same works
	Shown              int    // works whose overhead is shown
}

// Errors are those of a way to predict.
type Errors struct {
	Median, Worst float64 // 50th and 90th percentile, in shares of the measured time
	OfShown       float64 // median in shares of the overhead, where that is shown; NaN where none is
}

// Check predicts each workload of each environment from the others.
func (c *Calibration) Check() []Check {
	left := make([][]Left, len(c.Environments))
	for _, workload := range c.workloads() {
		models := c.fit(workload)
		for i, e := range c.Environments {
			if e.model == nil {
				continue
			}
			others := othersMean(e.Rows, workload)
			for _, r := range e.Rows {
				if r.Treatment.Workload != workload {
					continue
				}
				l := Left{Row: r, Others: others, Predicted: refuse(e, NotFitted{})}
				if models[i] != nil {
					l.Predicted = models[i].predict(e, r.Work)
				}
				left[i] = append(left[i], l)
			}
		}
	}
	var all []Check
	for i, e := range c.Environments {
		slices.SortStableFunc(left[i], worst)
		all = append(all, Check{Environment: e, Left: left[i], Quality: QualityOf(left[i])})
	}
	return all
}

// worst orders left-out works by how far off their predictions are. Those that were refused are last.
func worst(a, b Left) int {
	x, y := a.off(), b.off()
	switch {
	case math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x):
		return 1
	case math.IsNaN(y):
		return -1
	}
	return cmp.Compare(y, x)
}

// othersMean is the geometric mean of the ratios of other workloads.
func othersMean(rows []*Row, workload string) float64 {
	sum, n := 0.0, 0
	for _, r := range rows {
		if r.Treatment.Workload != workload {
			sum, n = sum+math.Log(r.Ratio), n+1
		}
	}
	return math.Exp(sum / float64(n))
}

// QualityOf sums up predictions.
func QualityOf(left []Left) (q Quality) {
	var half []float64
	off := map[*Errors][2][]float64{&q.Model: {}, &q.None: {}, &q.Others: {}}
	for i := range left {
		l := &left[i]
		if l.Predicted.Refused != nil {
			q.Refused++
			continue
		}
		q.N++
		if l.Inside() {
			q.Inside++
		}
		half = append(half, math.Sqrt(l.Predicted.High/l.Predicted.Low)-1)
		if l.Shown {
			q.Shown++
		}
		for of, predicted := range map[*Errors]float64{&q.Model: l.Predicted.Ratio, &q.None: 1, &q.Others: l.Others} {
			e := off[of]
			e[0] = append(e[0], math.Abs(predicted/l.Ratio-1))
			if l.Shown {
				e[1] = append(e[1], math.Abs((predicted-l.Ratio)/(l.Ratio-1)))
			}
			off[of] = e
		}
	}
	q.Half = quantile(half, 0.5)
	for of, e := range off {
		of.Median, of.Worst, of.OfShown = quantile(e[0], 0.5), quantile(e[0], 0.9), quantile(e[1], 0.5)
	}
	return q
}

func quantile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return stats.Quantile(values, p)
}

func byWorkload(rows []*Row) [][]*Row {
	return data.Together(rows, func(a, b *Row) bool { return a.Treatment.Workload == b.Treatment.Workload })
}

// workloads are those of the rows, each once.
func (c *Calibration) workloads() (all []string) {
	for _, e := range c.Environments {
		for _, r := range e.Rows {
			if !slices.Contains(all, r.Treatment.Workload) {
				all = append(all, r.Treatment.Workload)
			}
		}
	}
	return all
}

// fit makes the model of each environment, without the rows of a workload; empty: with all. nil: an environment has too few rows. How far works are
// off, and how wide intervals are, is estimated from all environments together: the rows of one are too few. Emulated ones are a group of
// their own.
func (c *Calibration) fit(without string) []*model {
	models := make([]*model, len(c.Environments))
	for _, emulated := range []bool{false, true} {
		var group []*training
		for i, e := range c.Environments {
			if t := e.training(without); t != nil && e.Emulated == emulated {
				models[i] = &model{most: highest(e.Probes, t.rows)}
				t.model = models[i]
				group = append(group, t)
			}
		}
		if len(group) > 0 && !learn(group) {
			for _, t := range group {
				models[slices.Index(c.Environments, t.Environment)] = nil
			}
		}
	}
	return models
}

// training is what an environment's model is learned from.
type training struct {
	*Environment
	rows  []*Row
	model *model
}

// training is the environment without the rows of a workload; nil: too little is left.
func (e *Environment) training(without string) *training {
	t := &training{Environment: e}
	for _, r := range e.Rows {
		if r.Treatment.Workload != without {
			t.rows = append(t.rows, r)
		}
	}
	if e.priors == nil || len(t.rows) < leastRows/2 {
		return nil
	}
	return t
}

// learn estimates the costs of environments, how far these are off, and how wide intervals are. The misfit is the one under which each workload
// is predicted best from the others. False: no estimate is a number.
func learn(group []*training) bool {
	best := math.Inf(-1)
	for _, f := range misfits {
		likelihood := 0.0
		costs := make([]belief, len(group))
		for i, t := range group {
			var ok bool
			f = f.in(t.Environment)
			if costs[i], ok = t.priors[f.own].update(t.rows, f); !ok {
				likelihood = math.Inf(-1)
				break
			}
			scores, ok := costs[i].scores(t.rows, f, costs[i].without)
			if !ok {
				likelihood = math.Inf(-1)
				break
			}
			for _, s := range scores {
				likelihood += distuv.StudentsT{Sigma: s.sd, Nu: heavyTail}.LogProb(s.off)
			}
		}
		if likelihood > best {
			best = likelihood
			for i, t := range group {
				t.model.costs, t.model.misfit = costs[i], f.in(t.Environment)
			}
		}
	}
	if math.IsInf(best, -1) {
		return false
	}
	var pooled []score
	for _, t := range group {
		f := t.model.misfit
		again := func(left []*Row, f misfit) (belief, bool) {
			others := slices.DeleteFunc(slices.Clone(t.rows), func(r *Row) bool { return slices.Contains(left, r) })
			return t.priors[f.own].update(others, f)
		}
		scores, ok := t.model.costs.scores(t.rows, f, again)
		if !ok {
			return false
		}
		pooled = append(pooled, scores...)
	}
	for _, t := range group {
		t.model.wider = widening(pooled)
	}
	return true
}

// score is how far a row is off what is predicted without its workload.
type score struct {
	off   float64
	sd    float64 // standard deviation of that: of the prediction, and of the row
	share float64 // of its predicted time that costs are
}

// scores are those of all rows. less is the belief without some of them.
func (b belief) scores(rows []*Row, m misfit, less func([]*Row, misfit) (belief, bool)) (all []score, ok bool) {
	for _, of := range byWorkload(rows) {
		without, ok := less(of, m)
		if !ok {
			return nil, false
		}
		for _, r := range of {
			x, sd, share := without.predict(r.shares, m)
			all = append(all, score{r.scaled - x, math.Hypot(sd, r.noise), share})
		}
	}
	return all, true
}

// widths are how many standard deviations it is from a value to an end of its interval: of work that is predicted to lose less than fewCosts
// of its time to costs, and of other work. The two are off for different reasons.
type widths struct{ few, many float64 }

// fewCosts separates work of which costs are a part that hardly shows.
const fewCosts = 0.05

func (w widths) of(share float64) float64 {
	if share < fewCosts {
		return w.few
	}
	return w.many
}

// widening makes intervals so wide that they would have held for the wanted share of the rows, and of one more (split conformal prediction).
func widening(scores []score) (w widths) {
	var few, many []float64
	for _, s := range scores {
		if s.share < fewCosts {
			few = append(few, math.Abs(s.off/s.sd))
		} else {
			many = append(many, math.Abs(s.off/s.sd))
		}
	}
	all := slices.Concat(few, many)
	of := func(some []float64) float64 {
		if len(some) < leastRows {
			some = all
		}
		slices.Sort(some)
		held := some[min(int(math.Ceil(float64(len(some)+1)*(1-stats.Alpha))), len(some))-1]
		return max(held, distuv.UnitNormal.Quantile(1-stats.Alpha/2)) // few rows agree better by luck
	}
	return widths{of(few), of(many)}
}
