package predict

import (
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// worksOf are the works that were traced on bare metal. Others are skipped, with the reason.
func worksOf(s *data.Summary) (works []*Work, skipped []Skipped) {
	for _, r := range s.Rows {
		t := r.Treatment
		if t.Platform != notebook.BM || t.AA || r.Kind != "" || !r.Metric.Directed() {
			continue
		}
		w, why := workOf(r)
		if why != nil {
			skipped = append(skipped, Skipped{t, why})
			continue
		}
		works = append(works, w)
	}
	return works, skipped
}

// workOf reads what a workload did on bare metal.
func workOf(r *data.Row) (*Work, data.Doubt) {
	switch {
	case r.Unreliable():
		f, _ := r.Failures()
		return nil, f
	case r.Rounds == 0:
		return nil, data.NotMeasured{}
	case r.Trace == nil:
		return nil, Untraced{}
	}
	w := &Work{Treatment: r.Treatment}
	elapsed := traced(r, func(c *data.TracedCell) stats.Sum { return c.Elapsed })
	value := traced(r, func(c *data.TracedCell) stats.Sum { return c.Value })
	if w.Trials = elapsed.N; !(elapsed.Of > 0 && value.Of > 0 && r.Mean > 0) {
		return nil, Untraced{}
	}
	// A trial that tracers slow down does the same work in more time, or less of it in the same time. What it costs by the metric says how
	// much slower it is, so that the rates are those of trials without tracers.
	w.slower = value.Mean() / r.Mean
	if r.Metric.MoreIsBetter() {
		w.slower = 1 / w.slower
	}
	busy := inFlight(r)
	system := figure(r, "system_s")
	if system.N == 0 {
		return nil, Uncounted{notebook.TracerCPU}
	}
	w.system = system.Mean() / elapsed.Mean() * w.slower / busy
	followed := wall(r, notebook.WallOther).N // trials whose waits are known
	for _, e := range Events {
		var n stats.Sum
		switch {
		case e.Name == DiskWaits:
			n = wall(r, e.Figure)
		case slices.Contains(waits, e.Figure):
			n = stats.Sum{Of: waited(r, e.Figure), N: followed}
		default:
			n = figure(r, e.Figure)
		}
		if n.N == 0 {
			return nil, Uncounted{e.Tracer}
		}
		rate := max(n.Mean(), 0) / elapsed.Mean() * w.slower / busy
		if !stats.Finite(rate) {
			return nil, Uncounted{e.Tracer}
		}
		w.Rates = append(w.Rates, rate)
	}
	return w, nil
}

// inFlight is in which part of the time at least one request was under way, by Little's law: requests a second times their response time, but
// at most 1. While a service waits for the next request, nothing can slow its response times down. Of other work it is 1.
func inFlight(r *data.Row) float64 {
	if r.Metric.Unit != "s" {
		return 1
	}
	for _, of := range r.Secondary {
		if at := of.Mean * r.Mean; strings.HasSuffix(of.Metric.Name, "s_per_second") && at > 0 {
			return min(at, 1)
		}
	}
	return 1
}

// waited is how often threads of the work waited for a reason, in all traced trials.
func waited(r *data.Row, reason string) (n float64) {
	for _, d := range r.Trace.Spread {
		if d.Role == notebook.RoleWork && d.What == notebook.OffCPU && d.Of == reason {
			n += float64(d.N())
		}
	}
	return n
}

// figure adds up a figure of the tracers over all traced trials; it is empty if no tracer recorded the figure.
func figure(r *data.Row, name string) stats.Sum {
	i := slices.Index(r.Trace.Names, name)
	if i < 0 {
		return stats.Sum{}
	}
	return traced(r, func(c *data.TracedCell) stats.Sum { return c.Figure(i) })
}

// wall adds up the time of a part of the time breakdowns of all traced trials.
func wall(r *data.Row, part string) stats.Sum {
	return traced(r, func(c *data.TracedCell) stats.Sum {
		if c.Wall == nil {
			return stats.Sum{}
		}
		return c.Wall.Of(part)
	})
}

// traced adds up something of all traced trials.
func traced(r *data.Row, of func(*data.TracedCell) stats.Sum) (all stats.Sum) {
	for i := range r.Cells {
		if c := r.Cells[i].Traced; c != nil {
			s := of(c)
			all.Of, all.N = all.Of+s.Of, all.N+s.N
		}
	}
	return all
}

// rowOf is what a work took.
func rowOf(s *data.Summary, r, base *data.Row, w *Work) (*Row, data.Doubt) {
	q := r.Cost()
	switch {
	case r.Unreliable():
		f, _ := r.Failures()
		return nil, f
	case r.Rounds == 0 || !stats.Finite(q.Value) || q.Value <= 0:
		return nil, data.NotMeasured{}
	}
	both := []*data.Row{base, base.Control()}
	x, vx := middle(logs(r))
	y, vy := middle(logs(both...))
	log := x - y
	if r.Metric.MoreIsBetter() {
		log = -log
	}
	row := &Row{Work: w, Ratio: math.Exp(log), scaled: scaled(math.Exp(log))}
	slope := row.Ratio * slopeAt(row.Ratio)
	row.freedom = float64(len(r.Values) - 1)
	row.variance = (vx + vy) * slope * slope
	row.noise = math.Sqrt(max(row.variance, (spread(logs(r))+spread(logs(both...)))*slope*slope))
	if !stats.Finite(row.scaled) || !stats.Finite(row.noise) {
		return nil, data.NotMeasured{}
	}
	half := stats.Student(float64(len(r.Values)+len(logs(both...))-2), stats.Alpha) * row.noise
	row.Low, row.High = unscaled(row.scaled-half), unscaled(row.scaled+half)
	row.Shown = !r.Doubtful && (row.Low > 1+s.Margin() || row.High < 1/(1+s.Margin()))
	return row, nil
}

// logs are the logarithms of the values of rows, of which some may be nil. The logarithm of a time of 0 is not finite.
func logs(rows ...*data.Row) (all []float64) {
	for _, r := range rows {
		if r == nil {
			continue
		}
		for _, v := range r.Values {
			all = append(all, math.Log(v.Mean))
		}
	}
	return all
}

// spread is the variance of the mean of values; 0: there is one value only.
func spread(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	return stats.VarianceOfMean(values)
}

// middle is the median of values and its variance, from their median distance to it, as if they were normally distributed. A disturbed round
// moves neither.
func middle(values []float64) (median, variance float64) {
	median = stats.Median(values)
	away := make([]float64, len(values))
	for i, v := range values {
		away[i] = math.Abs(v - median)
	}
	const ofMedian = 1.4826 // a standard deviation, in median distances
	sd := ofMedian * stats.Median(away)
	return median, math.Pi / 2 * sd * sd / float64(len(values))
}

// steady draws the variance of each row towards what the rows have in common: few rounds that agree by luck would outweigh all others.
func steady(rows []*Row) {
	const prior = 2.0 // degrees of freedom that what they have in common counts for
	var all []float64
	for _, r := range rows {
		if r.freedom > 0 {
			all = append(all, r.variance)
		}
	}
	if len(all) == 0 {
		return
	}
	common := stats.Median(all)
	for _, r := range rows {
		r.variance = (r.freedom*r.variance + prior*common) / (r.freedom + prior)
	}
}
