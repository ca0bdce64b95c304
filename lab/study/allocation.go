package study

import (
	"cmp"
	"time"

	"tare/notebook"
	"tare/stats"
)

// allocation decides how many trials the guests of a round do, so that the ratios are known soonest. The number follows from the cost
// of guests and from how their trials vary.
type allocation struct {
	rule
	costs costs
	fixed bool // the study fixes the number
}

// allocate decides how many trials the guests of a round do: the same number in all guests that are compared with each other, and at
// least the study's number. who has the treatments that the round is for. If no rule ends the study, or the study fixes the number,
// guests do the study's number.
func (a allocation) allocate(who map[string]int, round int) {
	if a.fixed {
		return
	}
	n := map[string]int{} // by group
	for _, t := range a.study.Treatments {
		if planned := a.planned[cell{t.ID, round}]; planned > 0 && a.applies(t) { // an earlier session began the round
			n[a.group(t.ID)] = planned
		}
	}
	for _, t := range a.study.Treatments {
		g := a.group(t.ID)
		if !a.applies(t) || a.gaveUp[t.ID] || who[t.ID] == 0 {
			continue
		}
		if n[g] == 0 {
			n[g] = a.best(g, who, round)
		}
		a.planned[cell{t.ID, round}] = n[g]
	}
}

// best is how many trials in the group's guests make its ratios known soonest.
func (a allocation) best(group string, who map[string]int, round int) int {
	least := a.study.Design.Trials
	var guests, trials time.Duration
	var levels stats.Levels
	for _, t := range a.study.Treatments {
		if a.group(t.ID) != group || who[t.ID] == 0 || a.gaveUp[t.ID] || !a.applies(t) {
			continue
		}
		c := a.costs.of[t.ID]
		if c.trials == 0 { // none in this session yet: as before
			return cmp.Or(a.planned[cell{t.ID, round - 1}], least)
		}
		guests, trials = guests+c.guest(), trials+c.trial()
		if !a.shared[t.ID] {
			levels = levels.Plus(a.levels(t, round))
		}
	}
	return levels.Trials(guests.Seconds(), trials.Seconds(), least)
}

// levels are the noise levels of the treatment's ratio to its baseline.
func (a allocation) levels(t notebook.Treatment, rounds int) stats.Levels {
	x, y := a.values(t, rounds)
	if b, _ := a.baseline(t); y != nil && a.turns[cell{t.ID, rounds - 1}] && a.turns[cell{b.ID, rounds - 1}] {
		return stats.LevelsOfTurns(x, y)
	}
	return stats.LevelsOf(x, y)
}

// values are the successful trials of the treatment and of its baseline, by round, from the rounds in which both have some. For a
// baseline, x has its own trials and y none.
func (a allocation) values(t notebook.Treatment, rounds int) (x, y [][]float64) {
	b, ok := a.baseline(t)
	for round := range rounds {
		of, with := a.cells[cell{t.ID, round}], a.cells[cell{b.ID, round}]
		switch {
		case of == nil || len(of.values) == 0:
		case !ok || b.ID == t.ID:
			x = append(x, of.values)
		case with != nil && len(with.values) > 0:
			x, y = append(x, of.values), append(y, with.values)
		}
	}
	return x, y
}
