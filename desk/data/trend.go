package data

import (
	"math"

	"tare/notebook"
	"tare/stats"
)

// Order adds up a cell's successful trials by their index in the guest, for their trend. Values and their number are the cell's.
type Order struct {
	Index, Squares, Values float64 // sums of the index, of its square, and of it times the value
	First, Last            int     // index of the first trial and of the last
}

func (o *Order) add(n int, index int, value float64) {
	if n == 1 || index < o.First {
		o.First = index
	}
	o.Last = max(o.Last, index)
	i := float64(index)
	o.Index, o.Squares, o.Values = o.Index+i, o.Squares+i*i, o.Values+i*value
}

// drift is what the cell's values grow by from the first of its trials to the last, by least squares, as a share of their mean; NaN where there is
// only one.
func (c *Cell) drift() float64 {
	n := float64(c.Value.N)
	free := n*c.Order.Squares - c.Order.Index*c.Order.Index
	if c.Value.N < 2 || !(free > 0) || c.Value.Of == 0 {
		return math.NaN()
	}
	slope := (n*c.Order.Values - c.Order.Index*c.Value.Of) / free
	return slope * float64(c.Order.Last-c.Order.First) / c.Value.Mean()
}

// drifts is how much more the row's values grow than the baseline's within a guest, in each round in which both have several trials; most is
// how many trials a guest of the row has at most there.
func drifts(row, base *Row) (all []float64, in []Block, most int) {
	of := map[Block]float64{}
	for i := range base.Cells {
		of[base.Cells[i].Block] = base.Cells[i].drift()
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		b, is := of[c.Block]
		if d := c.drift() - b; is && stats.Finite(d) {
			all, in, most = append(all, d), append(in, c.Block), max(most, c.Value.N)
		}
	}
	return all, in, most
}

// trends notes which rows' trials change within a guest otherwise than the baseline's do: their ratio depends on how many trials a guest has, which the
// run itself may choose. In at most 5 % of studies without such a change is any noted, and none that is smaller than the margin.
func (r *reader) trends() {
	type found struct {
		row  *Row
		all  []float64
		in   []Block
		most int
	}
	var rows []found
	for _, t := range r.order {
		row := &t.row
		base := r.base(row)
		if base == nil || base == row || row.Treatment.AA || row.IsFigure || !row.Representative {
			continue
		}
		if all, in, most := drifts(row, base); len(all) > 1 {
			rows = append(rows, found{row, all, in, most})
		}
	}
	for _, f := range rows {
		e := stats.Mean(f.all, r.sum.sure(folders(f.in), stats.Alpha/float64(len(rows))))
		if e.HasInterval() && (e.Low > 0 || e.High < 0) && math.Abs(e.Value) >= r.sum.Margin() {
			f.row.doubt(Trend{e.Value, e.Low, e.High, f.most, NameOf(r.base(f.row).Treatment)})
		}
	}
}

// base is the row that a row's ratio is relative to; nil where there is none.
func (r *reader) base(row *Row) *Row {
	for _, t := range r.order {
		if row.Baseline != "" && t.row.Treatment.ID == row.Baseline && t.row.HostID == row.HostID && t.row.IsFigure == row.IsFigure && t.row.Metric == row.Metric {
			return &t.row
		}
	}
	return nil
}

// timedOut says whether a trial was killed at its time limit: it would have taken longer, nobody knows how much.
func timedOut(t *notebook.Trial, limitS float64) bool {
	return t.Failure != nil && limitS > 0 && t.ElapsedS >= limitS
}

// stopped notes what trials that were stopped at the time limit leave of a ratio of execution times. They are in no mean, and each would have
// raised it. If each counts as the time that it had, the ratio is a bound: from below where such trials are the row's, from above
// where they are the baseline's. Where both have some it has none.
func (r *reader) stopped(t, base *tally) {
	runs, of := t.row.stopped(), base.row.stopped()
	beside := base.row.control(&t.row)
	if beside != nil {
		of += beside.stopped()
	}
	if runs+of == 0 || t.otherMetric || base.otherMetric || t.row.IsFigure {
		return
	}
	d := TimedOut{Runs: runs, Of: t.row.Trials, Base: of, BaseOf: base.row.Trials, Baseline: NameOf(base.row.Treatment)}
	if beside != nil {
		d.BaseOf += beside.Trials
	}
	if t == base {
		d.Base = 0
	} else if runs == 0 || of == 0 {
		x, y := t.row.withStopped(), base.row.withStopped()
		if q := r.sum.Ratio(&x, &y, stats.Alpha); q.HasInterval() {
			d.Ratio, d.Low, d.High = q.Value, q.Low, q.High
		}
	}
	if t == base || d.Ratio > 0 || runs > 0 {
		t.row.doubt(d)
	}
}

// stopped is how many of the row's trials were stopped at the time limit.
func (r *Row) stopped() (n int) {
	for i := range r.Cells {
		n += r.Cells[i].Stopped.N
	}
	return n
}

// withStopped is the row as if its trials that were stopped had taken just the time that they were given.
func (r *Row) withStopped() Row {
	x := *r
	x.Values = nil
	if r.again != nil {
		again := r.again.withStopped()
		x.again = &again
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Value.N+c.Stopped.N > 0 {
			all := stats.Sum{Of: c.Value.Of + c.Stopped.Of, N: c.Value.N + c.Stopped.N}
			x.Values = append(x.Values, Value{Block: c.Block, Mean: all.Mean(), Trials: all.N})
		}
	}
	return x
}
