package data

import (
	"cmp"
	"slices"

	capacitykind "tare/notebook/kinds/capacity"
	"tare/stats"
)

// Curve is how a service answered, rate by rate, in the trials that sought its capacity.
type Curve struct {
	Objective capacitykind.Config
	Points    []Point        // from the lowest rate to the highest
	Knee      stats.Estimate // requests a second at which throughput over mean response time is greatest (Kleinrock's power): beyond it they mostly wait
}

// Point is one rate of a curve.
type Point struct {
	Rate   int            // requests a second that were sent
	Tail   stats.Estimate // of Objective.Metric, over rounds, in seconds; of steps in which no request failed
	Failed int            // steps in which requests did
	Steps  int
}

// maxRates bounds the rates of a row and the steps of a trial that are kept: a folder is not trusted to have few.
const maxRates = 1000

// curve is a Curve in the making.
type curve struct {
	at    map[int]*rate
	knees map[Block]*stats.Sum
}

type rate struct {
	tail          map[Block]*stats.Sum
	failed, steps int
}

// trial takes a trial's steps.
func (c *curve) trial(b Block, steps []capacitykind.Step) {
	if c.at == nil {
		c.at, c.knees = map[int]*rate{}, map[Block]*stats.Sum{}
	}
	most, knee := 0.0, 0
	for _, s := range steps[:min(len(steps), maxRates)] {
		r := c.at[s.Rate]
		if r == nil && (s.Rate < 1 || len(c.at) >= maxRates) {
			continue
		}
		if r == nil {
			r = &rate{tail: map[Block]*stats.Sum{}}
			c.at[s.Rate] = r
		}
		r.steps++
		if s.Failure != "" || !(s.Tail > 0) || !(s.Mean > 0) || !stats.Finite(s.Tail) {
			r.failed++
			continue
		}
		sum(r.tail, b).Add(s.Tail)
		if power := s.Throughput / s.Mean; power > most {
			most, knee = power, s.Rate
		}
	}
	if knee > 0 {
		sum(c.knees, b).Add(float64(knee))
	}
}

func sum(of map[Block]*stats.Sum, b Block) *stats.Sum {
	if of[b] == nil {
		of[b] = &stats.Sum{}
	}
	return of[b]
}

// overRounds is the mean over rounds of what was measured in each, with its interval.
func (s *Summary) overRounds(of map[Block]*stats.Sum) stats.Estimate {
	row := Row{}
	for b, v := range of {
		row.Values = append(row.Values, Value{Block: b, Mean: v.Mean(), Trials: v.N})
	}
	slices.SortFunc(row.Values, func(a, b Value) int { return a.Compare(b.Block) })
	return s.Mean(&row, stats.Alpha)
}

// finish works the curve out; nil where no trial has steps.
func (c *curve) finish(s *Summary, objective *capacitykind.Config) *Curve {
	if len(c.at) == 0 || objective == nil {
		return nil
	}
	out := &Curve{Objective: *objective, Knee: s.overRounds(c.knees)}
	for n, r := range c.at {
		out.Points = append(out.Points, Point{n, s.overRounds(r.tail), r.failed, r.steps})
	}
	slices.SortFunc(out.Points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
	return out
}
