package data

import (
	"slices"

	"tare/notebook"
	"tare/stats"
)

// Ratio is the mean of x over the mean of y with its interval, over the rounds that both rows have, as the rows' own
// ratios are made: bare metal counts with its A/A control (Paired). Alpha is the share of such intervals that may miss (stats.Alpha for 95 %; less where many are
// tested at once). Rows of different hosts share no round: the answer is then NaN with N 0.
func (s *Summary) Ratio(x, y *Row, alpha float64) stats.Quotient {
	xs, ys, both := Paired(x, y)
	return stats.Ratio(xs, ys, s.ruled(x, y, both, alpha))
}

// Relative is the ratio of x to xBase over the ratio of y to yBase with its interval, for rows that were measured independently of each other: on two
// hosts, or next to bare metal of their own. Alpha is as in Ratio.
func (s *Summary) Relative(x, xBase, y, yBase *Row, alpha float64) stats.Quotient {
	pairs := func(x, y *Row) (p stats.Pairs, both []Block) {
		p.X, p.Y, both = Paired(x, y)
		return p, both
	}
	over, rounds := pairs(x, xBase)
	below, others := pairs(y, yBase)
	return stats.Relative(over, below, s.sure(folders(append(rounds, others...)), alpha))
}

// Paired gives the values of two rows in the rounds that both have. Where one of them is bare metal and the other is not, a round of bare
// metal has the trials of its A/A control too (stats.Pooled): they were made for the check, and tell as much of bare metal. The control
// itself is paired only with bare metal, and so is bare metal of another size.
func Paired(x, y *Row) (xs, ys []float64, both []Block) {
	order, xv := x.with(x.control(y))
	_, yv := y.with(y.control(x))
	return stats.Paired(order, xv, yv)
}

// MeanOfBoth is the mean over rounds of a row and its A/A control, to which ratios to the row are relative (Paired), with its interval. It is the
// row's own where it has no control.
func (s *Summary) MeanOfBoth(r *Row) stats.Estimate {
	if r.again == nil {
		return stats.Estimate{Value: r.Mean, Low: r.MeanLow, High: r.MeanHigh, N: r.Rounds}
	}
	var both Row
	order, of := r.with(r.again)
	for _, b := range order {
		both.Values = append(both.Values, Value{Block: b, Mean: of[b].Mean(), Trials: of[b].N})
	}
	return s.Mean(&both, stats.Alpha)
}

// Control is bare metal's A/A control, whose trials count in ratios to it (Paired), though Mean leaves them out; nil: the row has none.
func (r *Row) Control() *Row { return r.again }

// control is the row's A/A control, with which it counts where it is compared with another; nil where it does not, or has none.
func (r *Row) control(other *Row) *Row {
	if other.Treatment.Platform == notebook.BM {
		return nil
	}
	return r.again
}

// Base is the row that a row's ratio is relative to, a figure's in the same metric; nil where there is none.
func (s *Summary) Base(r *Row) *Row {
	for _, b := range s.Rows {
		if r.Baseline == "" || b.Treatment.ID != r.Baseline || b.HostID != r.HostID {
			continue
		}
		if !r.IsFigure {
			return b
		}
		if i := slices.IndexFunc(b.Figures, func(f *Row) bool { return f.Metric == r.Metric }); i >= 0 {
			return b.Figures[i]
		}
	}
	return nil
}

// Mean is the row's mean with its interval, as in Ratio.
func (s *Summary) Mean(x *Row, alpha float64) stats.Estimate {
	return stats.Mean(Means(x.Values), s.sure(folders(x.Values), alpha))
}

// Means are the values themselves.
func Means(values []Value) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = v.Mean
	}
	return all
}

// sums are a row's values by block, and the blocks in order.
func (r *Row) sums() (order []Block, of map[Block]stats.Sum) {
	of = make(map[Block]stats.Sum, len(r.Values))
	for _, v := range r.Values {
		order = append(order, v.Block)
		of[v.Block] = stats.Sum{Of: v.Mean, N: 1}
	}
	return order, of
}

// with are a row's values by block, and the blocks in order. With an A/A control, a round has the mean of both; the control may have rounds of its own.
func (r *Row) with(again *Row) (order []Block, of map[Block]stats.Sum) {
	order, of = r.sums()
	if again == nil {
		return order, of
	}
	also, second := again.sums()
	order = slices.Concat(order, slices.DeleteFunc(also, func(b Block) bool { return of[b].N > 0 }))
	slices.SortFunc(order, Block.Compare)
	return order, stats.Pooled(of, second)
}

// folders are those that blocks, or what is of a block, are in, each once.
func folders[T interface{ in() int }](blocks []T) []int { return Distinct(blocks, T.in) }

func (b Block) in() int { return b.Folder }

// sure is the confidence of an interval over rounds of these folders. Where a study among them could stop when it liked, it holds after
// every round of theirs. Where none could, each further folder may have been run for what those before it said.
func (s *Summary) sure(folders []int, alpha float64) stats.Confidence {
	var designs []notebook.Design
	for _, f := range folders {
		designs = append(designs, s.Folders[f].Study.Design)
	}
	c := stats.Confidence{Alpha: alpha, Looks: notebook.Looks(designs...)}
	if c.Looks == 0 {
		c.Extensions = max(len(folders)-1, 0)
	}
	return c
}

// ruled is sure for the ratio of x to y: where a study's rule looks at that ratio until it is precise, the last look may be narrower.
func (s *Summary) ruled(x, y *Row, both []Block, alpha float64) stats.Confidence {
	folders := folders(both)
	c := s.sure(folders, alpha)
	a, b := x.Treatment, y.Treatment
	if len(folders) == 1 && alpha == stats.Alpha && !x.IsFigure && !y.IsFigure && a.ID != b.ID && a.Rounds == 0 && a.Representative() &&
		s.Folders[folders[0]].rules(x, y) {
		d := s.Folders[folders[0]].Study.Design
		c.Precision, c.Floor = d.Precision, d.Floor
		if d.Precision > 0 && !a.AA { // what stalls bare metal stalls it under another name too
			c.Floor = stats.Floor(d.Floor, d.Seen, x.seen(x.control(y), both), y.seen(y.control(x), both))
		}
	}
	return c
}

// rules says whether the rule of the folder's study is about the ratio of x to y.
func (f *Folder) rules(x, y *Row) bool {
	a, b := x.Treatment, y.Treatment
	if len(f.baselines) > 0 {
		return f.baselines[a.ID] == b.ID
	}
	return b.Platform == notebook.BM && !b.AA && a.SameWork(b) && a.Instance.SameSize(b.Instance) && x.HostCores == y.HostCores
}

// seen is what the row did in these rounds, which are in order, with its A/A control where it counts.
func (r *Row) seen(control *Row, blocks []Block) []stats.Seen {
	all := make([]stats.Seen, len(blocks))
	for _, arm := range []*Row{r, control} {
		if arm == nil {
			continue
		}
		for i := range arm.Cells {
			c := &arm.Cells[i]
			if n, is := slices.BinarySearchFunc(blocks, c.Block, Block.Compare); is {
				all[n].Trials += c.Value.N
				all[n].Seconds += c.Elapsed.Of
			}
		}
	}
	return all
}

// Sure is the confidence of intervals over the row's rounds if a share alpha of them may miss.
func (s *Summary) Sure(x *Row, alpha float64) stats.Confidence {
	return s.sure(folders(x.Values), alpha)
}

// Confidence is that of 95 % over these cells.
func (s *Summary) Confidence(cells []*Cell) stats.Confidence {
	return s.sure(folders(cells), stats.Alpha)
}
