package study

import (
	"cmp"
	"time"

	"tare/lab/studyfile"
	"tare/notebook"
	"tare/stats"
)

// progress is how far the run of a study has come: the recorded trials, the number of trials for which guests were made, and the
// treatments that were given up.
type progress struct {
	study   *notebook.Study
	cells   map[cell]*done
	planned map[cell]int   // measured trials for which a guest was made or will be made
	fewest  map[string]int // by treatment: Design.Fewest
	turns   map[cell]bool  // its guest and the guests that it is compared with did their trials in turns
	last    int            // the latest round begun in an earlier session
	failed  int            // trials
	failing map[string]int // by treatment: rounds in a row in which all trials failed
	gaveUp  map[string]bool
}

// cell is one treatment in one round.
type cell struct {
	treatment string
	round     int
}

type done struct {
	trials int       // recorded measured trials, failed ones included
	traced int       // recorded traced trials, failed ones included
	value  stats.Sum // of the measured trials that succeeded
	values []float64 // the values of these trials
	took   float64   // the time of these trials, in seconds
}

func newProgress(s *notebook.Study) *progress {
	p := &progress{study: s, cells: map[cell]*done{}, planned: map[cell]int{}, fewest: map[string]int{}, turns: map[cell]bool{}, failing: map[string]int{}, gaveUp: map[string]bool{}}
	for _, t := range s.Treatments {
		p.fewest[t.ID] = s.Design.Fewest(t)
	}
	return p
}

// made adds a guest that the notebook holds. Its round continues with the number of trials that the guest was made for.
func (p *progress) made(g notebook.Guest) {
	c := cell{g.Treatment, g.Round}
	p.planned[c] = max(0, min(g.Trials, studyfile.MostRounds)) // a file may hold any number
	p.turns[c] = g.Together > 1
}

// take adds a trial that the notebook holds.
func (p *progress) take(t notebook.Trial) {
	if t.Warmup {
		return
	}
	c := cell{t.Treatment, t.Round}
	p.last = max(p.last, t.Round)
	if p.cells[c] == nil {
		p.cells[c] = &done{}
	}
	d := p.cells[c]
	if t.Failure != nil {
		p.failed++
	}
	if t.Traced {
		d.traced = max(d.traced, t.Index+1)
		return
	}
	d.trials = max(d.trials, t.Index+1)
	if t.Failure == nil {
		d.value.Add(t.Value)
		d.values = append(d.values, t.Value)
		d.took += t.ElapsedS
	}
}

// recall finds the treatments that earlier sessions gave up.
func (p *progress) recall() {
	for _, t := range p.study.Treatments {
		for round := range p.last + 1 {
			if d := p.cells[cell{t.ID, round}]; d != nil && d.trials >= p.trials(t.ID, round) {
				p.judge(t.ID, *d)
			}
		}
	}
}

// giveUpAfter is the number of rounds in a row in which every trial of a treatment fails before the treatment is given up.
const giveUpAfter = 2

// judge counts the rounds in a row in which every trial of a treatment failed. It reports whether the treatment is given up.
func (p *progress) judge(id string, d done) (gaveUp bool) {
	if d.value.N > 0 {
		p.failing[id] = 0
		return false
	}
	p.failing[id]++
	p.gaveUp[id] = p.gaveUp[id] || p.failing[id] >= giveUpAfter
	return p.gaveUp[id]
}

// trials is how many measured trials the treatment's guest does in the round.
func (p *progress) trials(id string, round int) int {
	return cmp.Or(p.planned[cell{id, round}], p.fewest[id])
}

// begun is how many rounds before this one the treatment was in.
func (p *progress) begun(id string, round int) (n int) {
	for i := range round {
		if p.cells[cell{id, i}] != nil {
			n++
		}
	}
	return n
}

// complete is in how many of these rounds the treatment did all its trials.
func (p *progress) complete(id string, rounds int) (n int) {
	for round := range rounds {
		if d := p.cells[cell{id, round}]; d != nil && d.trials >= p.trials(id, round) {
			n++
		}
	}
	return n
}

// sums returns a treatment's values in these rounds, by round, and the rounds in order.
func (p *progress) sums(id string, rounds int) (order []int, of map[int]stats.Sum) {
	of = map[int]stats.Sum{}
	for round := range rounds {
		order = append(order, round)
		if d := p.cells[cell{id, round}]; d != nil {
			of[round] = d.value
		}
	}
	return order, of
}

// costs are the times that guests took so far in this session, by treatment.
type costs struct {
	progress *progress
	of       map[string]cost
}

// cost is the time that a treatment's guests took.
type cost struct {
	guests, trials int           // trials: measured ones
	preparing      time.Duration // making and removing its guests: all that is not a measured trial
	working        time.Duration // measured trials
}

func (c cost) guest() time.Duration { return c.preparing / time.Duration(max(c.guests, 1)) }

func (c cost) trial() time.Duration { return c.working / time.Duration(max(c.trials, 1)) }

// add adds the time of a guest that did this many measured trials.
func (c costs) add(id string, trials int, preparing, working time.Duration) {
	was := c.of[id]
	c.of[id] = cost{was.guests + 1, was.trials + trials, was.preparing + preparing, was.working + working}
}

// lasts is about how long a guest of the treatment takes in the round. For a treatment that had no guest yet, it is the time of the quickest
// other treatment. Every treatment should be measured once before any is measured twice, so a long guess must not keep it from its first
// guest.
func (c costs) lasts(id string, round int) (d time.Duration) {
	if of := c.of[id]; of.guests > 0 {
		trials := c.progress.trials(id, round)
		if len(c.progress.study.Explain) > 0 {
			trials *= 2
		}
		return of.guest() + time.Duration(trials)*of.trial()
	}
	for _, of := range c.of {
		if each := (of.preparing + of.working) / time.Duration(of.guests); d == 0 || each < d {
			d = each
		}
	}
	return d
}
