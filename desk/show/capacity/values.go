package capacity

import (
	"cmp"
	"slices"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/capacity"
	"tare/stats"
)

// Curve is how a service answered, rate by rate, in the trials that searched for its capacity.
type Curve struct {
	Objective kind.Config
	Points    []Point        // from the lowest rate to the highest
	Knee      stats.Estimate // requests a second with the greatest throughput over mean response time (Kleinrock's power): beyond it, requests mostly wait
}

// Point is one rate of a curve.
type Point struct {
	Rate   int            // requests sent a second
	Tail   stats.Estimate // Objective.Metric over rounds, in seconds, from steps without failed requests
	Failed int            // steps with failed requests
	Steps  int
}

// maxRates limits the rates of a row and the steps of a trial that are kept, because a folder is not trusted to have few.
const maxRates = 1000

// curve is a Curve under construction.
type curve struct {
	objective *kind.Config

	at    map[int]*rate
	knees map[data.Block]*stats.Sum
}

type rate struct {
	tail          map[data.Block]*stats.Sum
	failed, steps int
}

// Trial adds the steps of a measured trial.
func (c *curve) Trial(b data.Block, t *notebook.Trial) error {
	seen, err := notebook.SeenOf[kind.Seen](t)
	if steps := seen.Steps; t.Measured() && t.Failure == nil && len(steps) > 0 {
		c.add(b, steps)
	}
	return err
}

func (c *curve) add(b data.Block, steps []kind.Step) {
	if c.at == nil {
		c.at, c.knees = map[int]*rate{}, map[data.Block]*stats.Sum{}
	}
	most, knee := 0.0, 0
	for _, s := range steps[:min(len(steps), maxRates)] {
		r := c.at[s.Rate]
		if r == nil && (s.Rate < 1 || len(c.at) >= maxRates) {
			continue
		}
		if r == nil {
			r = &rate{tail: map[data.Block]*stats.Sum{}}
			c.at[s.Rate] = r
		}
		r.steps++
		if s.Failure != nil || !(s.Tail > 0) || !(s.Mean > 0) || !stats.Finite(s.Tail) {
			r.failed++
			continue
		}
		data.SumOf(r.tail, b).Add(s.Tail)
		if power := s.Throughput / s.Mean; power > most {
			most, knee = power, s.Rate
		}
	}
	if knee > 0 {
		data.SumOf(c.knees, b).Add(float64(knee))
	}
}

// Finish computes the curve.
func (c *curve) Finish(s *data.Summary) (any, []data.Doubt) {
	if len(c.at) == 0 {
		return nil, nil
	}
	out := &Curve{Objective: *c.objective, Knee: s.OverRounds(c.knees)}
	for n, r := range c.at {
		out.Points = append(out.Points, Point{n, s.OverRounds(r.tail), r.failed, r.steps})
	}
	slices.SortFunc(out.Points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
	return out, nil
}
