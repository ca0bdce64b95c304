package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/notebook"
	"tare/stats"
)

// question is what rounds are run for: something that is to be known, and is not.
type question struct {
	of     []string // treatments that have to be in a round to say anything of it
	rounds int      // about how many more it takes
	atMost bool     // that cannot be foreseen: rounds is the most there may be
	fixed  bool     // so many, whatever is measured: it never waits
}

// choose says which of the open questions the next round is for: all, or, where the time that is left is too short to answer all, as many
// as it is enough for, the cheapest first, while the others wait. Where it is enough for none, none waits; with one, all but those that never do, or
// but the cheapest. lasts is how long a guest of a treatment takes.
func choose(open []question, lasts func(treatment string) time.Duration, left time.Duration, one bool) (now []question) {
	price := func(all ...question) (d time.Duration) {
		for t, n := range rounds(all) {
			d += time.Duration(n) * lasts(t)
		}
		return d
	}
	cheapest := slices.Clone(open)
	slices.SortStableFunc(cheapest, func(a, b question) int { return cmp.Compare(price(a), price(b)) })
	for _, q := range open {
		if q.fixed {
			now = append(now, q)
		}
	}
	fixed := len(now)
	for _, q := range cheapest {
		if !q.fixed && (price(append(slices.Clone(now), q)...) <= left || one && len(now) == 0) {
			now = append(now, q)
		}
	}
	if len(now) == fixed && !one {
		return open
	}
	return now
}

// rounds is how many rounds each treatment is in until all the questions are answered: one round serves all that it takes part in.
func rounds(open []question) map[string]int {
	n := map[string]int{}
	for _, q := range open {
		for _, t := range q.of {
			n[t] = max(n[t], q.rounds)
		}
	}
	return n
}

// allTake is every which round no question of a goal waits: what was foreseen of one after few rounds is mended. A dear one
// waits there too: a round of it may take as long as a hundred of another.
const allTake = 4

// dear says whether a question's treatments have had more than their part of the time that guests took so far, and a round of them takes as
// long as many of the cheapest question's, which takes so long.
func (r *Run) dear(q question, round int, cheapest time.Duration) bool {
	var its, all time.Duration
	for id, c := range r.costs {
		all += c.preparing + c.working
		if slices.Contains(q.of, id) {
			its += c.preparing + c.working
		}
	}
	return its*allTake > all && r.once(q, round) > allTake*cheapest
}

// once is how long one round of a question's treatments takes.
func (r *Run) once(q question, round int) (d time.Duration) {
	for _, id := range q.of {
		d += r.lasts(id, round)
	}
	return d
}

// asked are the goal's questions after so many rounds. What the goal does not ask for is in no round; until the design's floor none waits but a
// dear one. Bare metal and its check against itself are in a round as long as something at their place is.
func (r *Run) asked(round int) (open []question, known bool, err error) {
	s := r.Plan.Study
	asked, err := r.Goal()
	if err != nil {
		return nil, false, err
	}
	if len(asked) == 0 && len(r.cells) == 0 {
		return nil, false, fmt.Errorf("study %s: --until claims: none of its claims can be tested with what this host can run of it", s.Name)
	}
	known = true
	for _, a := range asked {
		if slices.ContainsFunc(a.Of, func(id string) bool { return r.gaveUp[id] }) {
			continue
		}
		q := question{rounds: cmp.Or(a.Rounds, s.Design.Cap), atMost: a.Rounds == 0}
		for _, t := range s.Treatments {
			beside := t.Platform == notebook.BM && slices.ContainsFunc(a.Of, func(id string) bool { return r.against[id].ID == r.against[t.ID].ID })
			if !beside && !slices.Contains(a.Of, t.ID) {
				continue
			}
			q.of = append(q.of, t.ID)
			q.rounds = min(q.rounds, s.Design.Most(t)-r.begun(t, round))
		}
		if known = false; q.rounds > 0 {
			open = append(open, q)
		}
	}
	cheapest := time.Duration(math.MaxInt64 / allTake)
	for _, q := range open {
		cheapest = min(cheapest, r.once(q, round))
	}
	for i, q := range open {
		open[i].fixed = (round < s.Design.Floor || round%allTake == 0) && !r.dear(q, round, cheapest)
	}
	return open, known, nil
}

// open are the questions after so many rounds, and whether all that the design's rule asks is answered. What is shared with others, bare
// metal and its check against itself, is in a round as long as one of them is.
func (r *Run) open(round int) (open []question, known bool, err error) {
	if r.Goal != nil {
		return r.asked(round)
	}
	d := r.Plan.Study.Design
	known = d.Looks() > 0 && round >= d.Floor
	begin := !known
	for _, t := range r.Plan.Study.Treatments {
		left := d.Most(t) - r.begun(t, round)
		q := question{of: []string{t.ID}, rounds: left, atMost: r.ruled(t) && d.Floor < d.Cap, fixed: begin || !r.ruled(t)}
		if r.gaveUp[t.ID] || !begin && (r.shared[t.ID] || r.accompanies(t)) {
			continue
		}
		if !q.fixed {
			more, foreseen, answered := r.needs(t, round)
			if answered {
				continue
			}
			known, q.rounds, q.atMost = false, min(left, more), !foreseen
		}
		if b, ok := r.baseline(t); ok && !begin {
			for _, o := range r.Plan.Study.Treatments {
				if of, _ := r.baseline(o); o.ID != t.ID && of.ID == b.ID && (o.ID == b.ID || r.accompanies(o)) {
					q.of = append(q.of, o.ID)
				}
			}
		}
		if q.rounds > 0 {
			open = append(open, q)
		}
	}
	return open, known, nil
}

// needs is about how many more rounds it takes until the treatment's ratio is known as well as the design asks, as far as its cap where that cannot
// be foreseen, whether it can, and whether the ratio is known. Where there is nothing to compare it with, its mean is to be known as precisely.
// A ratio is as far beyond a margin as one over it is, so which values of the metric are better changes nothing here (stats.Quotient.Inverse).
func (r *Run) needs(t notebook.Treatment, round int) (more int, foreseen, answered bool) {
	d := r.Plan.Study.Design
	b, has := r.baseline(t)
	q := stats.Quotient(r.mean(t, round))
	if has && b.ID != t.ID {
		q, _ = r.ratio(t, round)
	}
	enough, sure := 0, r.sure(t, round)
	if d.Decide > 0 {
		answered, enough = has && q.Answer(d.Decide) != stats.Open, q.Rounds(d.Decide, sure, sure)
	} else {
		answered, enough = stats.Precise(q, d.Precision), q.PreciseRounds(d.Precision, sure)
	}
	if floor := r.floor(t, round); d.Seen > 0 && q.N < floor && (answered || enough > 0) { // a stall may not have been seen yet
		answered, enough = false, max(enough, floor)
	}
	return max(cmp.Or(enough, d.Cap)-q.N, 1), enough > 0, answered
}

// accompanies says whether a treatment checks the host as long as others run: bare metal against itself, where what differs is asked for.
func (r *Run) accompanies(t notebook.Treatment) bool { return t.AA && r.Plan.Study.Design.Decide > 0 }

// ruled says whether a treatment's rounds end by the design's rule, and not by a number.
func (r *Run) ruled(t notebook.Treatment) bool {
	return r.Plan.Study.Design.Looks() > 0 && t.Rounds == 0 && t.Representative()
}

// begun is how many rounds before this one the treatment was in.
func (r *Run) begun(t notebook.Treatment, round int) (n int) {
	for i := range round {
		if r.cells[cell{t.ID, i}] != nil {
			n++
		}
	}
	return n
}

// cost is what a treatment's guests took so far in this session.
type cost struct {
	guests, trials int           // trials: measured ones
	preparing      time.Duration // of all its guests, and removing them: whatever is no measured trial
	working        time.Duration // of all those trials
}

func (c cost) guest() time.Duration { return c.preparing / time.Duration(max(c.guests, 1)) }
func (c cost) trial() time.Duration { return c.working / time.Duration(max(c.trials, 1)) }

// lasts is about how long a guest of the treatment takes in the round. One of which nothing is known yet may well take as long as the
// longest of the others.
func (r *Run) lasts(id string, round int) (d time.Duration) {
	if c := r.costs[id]; c.guests > 0 {
		trials := r.trials(id, round)
		if len(r.Plan.Study.Explain) > 0 {
			trials *= 2
		}
		return c.guest() + time.Duration(trials)*c.trial()
	}
	for _, c := range r.costs {
		d = max(d, (c.preparing+c.working)/time.Duration(c.guests))
	}
	return d
}

// group names the treatments whose guests do as many trials in a round: all that one bare metal is compared with. What changes from trial
// to trial in a guest's life then falls on both sides of a ratio alike.
func (r *Run) group(id string) string { return cmp.Or(r.against[id].ID, id) }

// trials is how many measured trials the treatment's guest does in the round.
func (r *Run) trials(id string, round int) int {
	return cmp.Or(r.planned[cell{id, round}], r.Plan.Study.Design.Trials)
}

// allocates says whether the run may decide how many trials a guest does: not where tracers look on at as many trials again, nor where each trial
// is many loads, nor where a guest is weighed.
func (r *Run) allocates() bool {
	s := r.Plan.Study
	return len(s.Explain) == 0 && !r.Plan.rules.Search
}

// allocate decides how many trials the guests of a round do, each as many as those that it is compared with. It never lets one do fewer than the
// study says; where no rule ends the study, and where the run may not decide, it does just those.
func (r *Run) allocate(who map[string]int, round int) {
	s := r.Plan.Study
	if !r.allocates() {
		return
	}
	n := map[string]int{} // by group
	for _, t := range s.Treatments {
		if planned := r.planned[cell{t.ID, round}]; planned > 0 && r.ruled(t) { // an earlier session began the round
			n[r.group(t.ID)] = planned
		}
	}
	for _, t := range s.Treatments {
		g := r.group(t.ID)
		if !r.ruled(t) || r.gaveUp[t.ID] || who[t.ID] == 0 {
			continue
		}
		if n[g] == 0 {
			n[g] = r.best(g, who, round)
		}
		r.planned[cell{t.ID, round}] = n[g]
	}
}

// best is how many trials in the group's guests make its ratios known soonest.
func (r *Run) best(group string, who map[string]int, round int) int {
	least := r.Plan.Study.Design.Trials
	var guests, trials time.Duration
	var levels stats.Levels
	for _, t := range r.Plan.Study.Treatments {
		if r.group(t.ID) != group || who[t.ID] == 0 || r.gaveUp[t.ID] || !r.ruled(t) {
			continue
		}
		c := r.costs[t.ID]
		if c.trials == 0 { // in this session: as before
			return cmp.Or(r.planned[cell{t.ID, round - 1}], least)
		}
		guests, trials = guests+c.guest(), trials+c.trial()
		if !r.shared[t.ID] {
			levels = levels.Plus(stats.LevelsOf(r.values(t, round)))
		}
	}
	return levels.Trials(guests.Seconds(), trials.Seconds(), least)
}

// values are the successful trials of the treatment and of its baseline, by round, of those rounds in which both have some. A baseline's
// own are compared with nothing.
func (r *Run) values(t notebook.Treatment, rounds int) (x, y [][]float64) {
	b, ok := r.baseline(t)
	for round := range rounds {
		of, with := r.cells[cell{t.ID, round}], r.cells[cell{b.ID, round}]
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
