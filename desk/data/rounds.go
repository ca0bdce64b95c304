package data

import (
	"slices"

	"tare/stats"
)

// ByRound is a size by round.
type ByRound map[Block]*stats.Sum

// Add takes a value of a round.
func (r *ByRound) Add(b Block, v float64) {
	if *r == nil {
		*r = ByRound{}
	}
	SumOf(*r, b).Add(v)
}

// With adds another size of the same rounds.
func (r *ByRound) With(other ByRound) {
	if *r == nil {
		*r = ByRound{}
	}
	for b, v := range other {
		s := SumOf(*r, b)
		s.Of, s.N = s.Of+v.Of, s.N+v.N
	}
}

// SumOf finds or makes the sum of a round.
func SumOf(of map[Block]*stats.Sum, b Block) *stats.Sum {
	if of[b] == nil {
		of[b] = &stats.Sum{}
	}
	return of[b]
}

// OverRounds is the mean over rounds of what was measured in each, with its interval.
func (s *Summary) OverRounds(of map[Block]*stats.Sum) stats.Estimate {
	row := Row{}
	for b, v := range of {
		row.Values = append(row.Values, Value{Block: b, Mean: v.Mean(), Trials: v.N})
	}
	slices.SortFunc(row.Values, func(a, b Value) int { return a.Compare(b.Block) })
	return s.Mean(&row, stats.Alpha)
}
