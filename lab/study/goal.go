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

// costlyFactor is how many times as much as the cheapest question a question may cost before it is costly. In every round that is a
// multiple of it, only costly questions wait. Such a round corrects the forecasts of the others, which rest on few rounds. One round of a
// costly question may take as long as a hundred rounds of another.
const costlyFactor = 4

// open are the questions that the goal asks after this many rounds. known: it asks none that can be answered. A treatment that the goal
// does not ask for takes part in no round. The baseline and its A/A control take part as long as a treatment needs them. Until the
// design's floor, only costly questions wait.
func (g Goal) open(p *progress, b baselines, c costs, round int) (open []question, known bool, err error) {
	s := p.study
	asked, err := g()
	if err != nil {
		return nil, false, err
	}
	if len(asked) == 0 && len(p.cells) == 0 {
		return nil, false, fmt.Errorf("study %s: --until-claims: this host cannot run the configurations that its claims compare", s.Name)
	}
	known = true
	for _, a := range asked {
		if slices.ContainsFunc(a.Of, func(id string) bool { return p.gaveUp[id] }) {
			continue
		}
		q := question{rounds: cmp.Or(a.Rounds, s.Design.Cap), atMost: a.Rounds == 0}
		for _, t := range s.Treatments {
			beside := t.Platform == notebook.BM && slices.ContainsFunc(a.Of, func(id string) bool { return b.group(id) == b.group(t.ID) })
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
	cheapest := time.Duration(math.MaxInt64 / costlyFactor)
	for _, q := range open {
		cheapest = min(cheapest, c.once(q, round))
	}
	for i, q := range open {
		open[i].fixed = (round < s.Design.Floor || round%costlyFactor == 0) && !c.costly(q, round, cheapest)
	}
	return open, known, nil
}

// costly reports whether a question waits because of its cost: its treatments have used more than their part of the time of all guests,
// and one round of them takes much longer than one round of the cheapest question.
func (c costs) costly(q question, round int, cheapest time.Duration) bool {
	var its, all time.Duration
	for id, of := range c.of {
		all += of.preparing + of.working
		if slices.Contains(q.of, id) {
			its += of.preparing + of.working
		}
	}
	return its*costlyFactor > all && c.once(q, round) > costlyFactor*cheapest
}

// once is how long one round of a question's treatments takes.
func (c costs) once(q question, round int) (d time.Duration) {
	for _, id := range q.of {
		d += c.lasts(id, round)
	}
	return d
}
