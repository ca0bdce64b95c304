package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/notebook"
)

// Question is something that further rounds should answer.
type Question struct {
	Of     []string // the treatments that a round needs to contribute to the answer
	Rounds int      // about how many more rounds are needed; 0: not predictable
}

// Goal returns, between rounds, the questions that the recorded trials leave open.
type Goal func() ([]Question, error)

// dearFactor is how many times more than the cheapest question another may cost before it waits. In every round of that number, no
// other question waits, because a forecast after few rounds has to be corrected. A dear question waits there too: a round of it may
// take as long as a hundred of another.
const dearFactor = 4

// open are the questions that the goal asks after so many rounds. known: it asks none that can be answered. A treatment that the goal
// does not ask for is in no round, except the baseline and its check against itself, which are in a round as long as a treatment is
// that they serve. Until the design's floor, only dear questions wait.
func (g Goal) open(p *progress, b baselines, c costs, round int) (open []question, known bool, err error) {
	s := p.study
	asked, err := g()
	if err != nil {
		return nil, false, err
	}
	if len(asked) == 0 && len(p.cells) == 0 {
		return nil, false, fmt.Errorf("study %s: --until claims: none of its claims can be tested with what this host can run of it", s.Name)
	}
	known = true
	for _, a := range asked {
		if slices.ContainsFunc(a.Of, func(id string) bool { return p.gaveUp[id] }) {
			continue
		}
		q := question{rounds: cmp.Or(a.Rounds, s.Design.Cap), atMost: a.Rounds == 0}
		for _, t := range s.Treatments {
			beside := t.Platform == notebook.BM && slices.ContainsFunc(a.Of, func(id string) bool { return b.against[id].ID == b.against[t.ID].ID })
			if !beside && !slices.Contains(a.Of, t.ID) {
				continue
			}
			q.of = append(q.of, t.ID)
			q.rounds = min(q.rounds, s.Design.Most(t)-p.begun(t.ID, round))
		}
		if known = false; q.rounds > 0 {
			open = append(open, q)
		}
	}
	cheapest := time.Duration(math.MaxInt64 / dearFactor)
	for _, q := range open {
		cheapest = min(cheapest, c.once(q, round))
	}
	for i, q := range open {
		open[i].fixed = (round < s.Design.Floor || round%dearFactor == 0) && !c.dear(q, round, cheapest)
	}
	return open, known, nil
}

// dear reports whether the treatments of a question had more than their part of the time that guests took so far, and a round of them
// takes much longer than a round of the cheapest question.
func (c costs) dear(q question, round int, cheapest time.Duration) bool {
	var its, all time.Duration
	for id, of := range c.of {
		all += of.preparing + of.working
		if slices.Contains(q.of, id) {
			its += of.preparing + of.working
		}
	}
	return its*dearFactor > all && c.once(q, round) > dearFactor*cheapest
}

// once is how long one round of a question's treatments takes.
func (c costs) once(q question, round int) (d time.Duration) {
	for _, id := range q.of {
		d += c.lasts(id, round)
	}
	return d
}
