package study

import (
	"cmp"
	"slices"

	"tare/notebook"
	"tare/stats"
)

// rule is the design's stopping rule: each treatment's ratio to its baseline must be known as well as the design asks. For a treatment
// without a baseline, its mean must. The rule knows only the design and the record.
type rule struct {
	*progress
	baselines
}

// open are the questions that are open after this many rounds. known: all of the rule's questions are answered. A baseline and its A/A
// control take part in rounds as long as a treatment needs them.
func (r rule) open(round int) (open []question, known bool) {
	d := r.study.Design
	known = d.Looks() > 0 && round >= d.Floor
	begin := !known
	for _, t := range r.study.Treatments {
		left := d.Most(t) - r.begun(t.ID, round)
		q := question{of: []string{t.ID}, rounds: left, atMost: r.applies(t) && d.Floor < d.Cap, fixed: begin || !r.applies(t), choice: r.choices[t.ID]}
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
		if !begin {
			q.of = append(q.of, r.beside(t)...)
		}
		if q.rounds > 0 {
			open = append(open, q)
		}
	}
	return open, known
}

// beside are the other treatments whose trials count in the treatment's ratio. The A/A control is among them only where it accompanies others:
// elsewhere its own ratio is a question too.
func (r rule) beside(t notebook.Treatment) (ids []string) {
	counts := slices.Concat(r.own(t), r.arms(t))
	for _, o := range r.study.Treatments {
		if o.ID != t.ID && slices.Contains(counts, o.ID) && (!o.AA || r.accompanies(o)) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// needs is about how many more rounds it takes until the treatment's ratio is known as well as the design asks, or its mean if it has
// no baseline. foreseen: the number could be computed; otherwise it is the number of rounds up to the design's cap. answered: no more
// rounds are needed. Whether higher or lower values are better changes nothing: a ratio and its inverse are equally far beyond a margin
// (stats.Quotient.Inverse).
func (r rule) needs(t notebook.Treatment, round int) (more int, foreseen, answered bool) {
	d := r.study.Design
	b, has := r.baseline(t)
	q := r.mean(t, round).Quotient()
	if has && b.ID != t.ID {
		q, _ = r.ratio(t, round)
	}
	enough, sure := 0, r.confidence(t, round)
	if d.Decide > 0 {
		answered, enough = has && q.Verdict(d.Decide) != stats.Inconclusive, q.Rounds(d.Decide, sure, sure)
	} else {
		answered, enough = stats.Precise(q, d.Precision), q.PreciseRounds(d.Precision, sure)
	}
	if floor := r.floor(t, round); d.Seen > 0 && q.N < floor && (answered || enough > 0) { // a stall may not have been seen yet
		answered, enough = false, max(enough, floor)
	}
	return max(cmp.Or(enough, d.Cap)-q.N, 1), enough > 0, answered
}

// accompanies reports whether a treatment checks the host as long as others run. That is the A/A control, under a design that decides
// about differences.
func (r rule) accompanies(t notebook.Treatment) bool { return t.AA && r.study.Design.Decide > 0 }

// applies reports whether the rule ends the treatment's rounds. Otherwise their number is fixed.
func (r rule) applies(t notebook.Treatment) bool {
	return r.study.Design.Looks() > 0 && t.Rounds == 0 && t.Representative()
}

// ratio is the treatment's ratio to its baseline after these rounds. ok: it has a baseline.
func (r rule) ratio(t notebook.Treatment, rounds int) (q stats.Quotient, ok bool) {
	if _, ok = r.baseline(t); !ok {
		return stats.NoRatio, false
	}
	order, own := r.pooled(r.own(t), rounds)
	_, others := r.pooled(r.arms(t), rounds)
	x, y, _ := stats.Paired(order, own, others)
	return stats.Ratio(x, y, r.confidence(t, rounds)), true
}

// pooled are the means of treatments that count as one, by round, and all rounds in order.
func (r rule) pooled(ids []string, rounds int) (order []int, sums map[int]stats.Sum) {
	var all []map[int]stats.Sum
	for _, id := range ids {
		var of map[int]stats.Sum
		order, of = r.sums(id, rounds)
		all = append(all, of)
	}
	return order, stats.Pooled(all...)
}

// confidence is the confidence of the interval of the treatment's ratio after these rounds. The desk computes the same.
func (r rule) confidence(t notebook.Treatment, rounds int) stats.Confidence {
	d := r.study.Design
	c := stats.Sure(d.Looks())
	if b, ok := r.baseline(t); ok && b.ID != t.ID && r.applies(t) {
		c.Precision, c.Floor = d.Precision, r.floor(t, rounds)
	}
	return c
}

// floor is the number of rounds from which the stopping rule may apply to the treatment's ratio, or to its mean if it has no ratio.
// It follows from the trials of these rounds. Bare metal against itself needs no least number of trials, because a stall affects
// both arms.
func (r rule) floor(t notebook.Treatment, rounds int) int {
	d := r.study.Design
	if t.AA {
		return d.Floor
	}
	mine, arms := r.own(t), r.arms(t)
	var own, others []stats.Seen
	for round := range rounds {
		x, y := r.seen(round, mine...), r.seen(round, arms...)
		if x.Trials == 0 || len(arms) > 0 && y.Trials == 0 {
			continue
		}
		own = append(own, x)
		if len(arms) > 0 {
			others = append(others, y)
		}
	}
	return stats.Floor(d.Floor, d.Seen, own, others)
}

// seen is how many trials treatments did in a round, and for how long.
func (r rule) seen(round int, ids ...string) (all stats.Seen) {
	for _, id := range ids {
		if d := r.cells[cell{id, round}]; d != nil {
			all.Trials += len(d.values)
			all.Seconds += d.took
		}
	}
	return all
}

// mean is the treatment's mean after these rounds.
func (r rule) mean(t notebook.Treatment, rounds int) stats.Estimate {
	order, sums := r.sums(t.ID, rounds)
	x, _, _ := stats.Paired(order, sums, sums)
	d := r.study.Design
	return stats.Mean(x, stats.Sure(d.Looks()))
}

// baselines are the treatments that others are compared with (notebook.Study.Baselines).
type baselines struct {
	against  map[string]notebook.Treatment // the baseline of each treatment; of a baseline itself
	shared   map[string]bool               // baselines of other treatments, not only of an A/A control
	controls map[string]string             // the A/A control of a baseline: the second arm of bare metal
	choices  map[string]string             // question.choice of each treatment
}

// baselinesOf finds the baselines once, because every guest needs them.
func baselinesOf(s *notebook.Study) baselines {
	all := baselines{s.Baselines(), map[string]bool{}, map[string]string{}, map[string]string{}}
	for _, t := range s.Treatments {
		all.choices[t.ID] = choiceOf(s.Treatments, t)
		b, ok := all.against[t.ID]
		switch {
		case !ok:
		case t.AA:
			all.controls[b.ID] = t.ID
			all.shared[b.ID] = all.shared[b.ID] || all.against[b.ID].ID == b.ID
		default:
			all.shared[b.ID] = all.shared[b.ID] || b.ID != t.ID
		}
	}
	return all
}

// choiceOf names the environments that differ from the treatment in their CPU limit only: by the first of them. The A/A control has its own.
func choiceOf(treatments []notebook.Treatment, t notebook.Treatment) string {
	i := slices.IndexFunc(treatments, func(o notebook.Treatment) bool {
		return o.AA == t.AA && o.SameWork(t) && o.Variant() == t.Variant() && o.Instance.Name == t.Instance.Name && o.HostCores == t.HostCores
	})
	return treatments[i].ID
}

// baseline is the treatment that t is compared with; for a baseline it is t itself.
func (b baselines) baseline(t notebook.Treatment) (of notebook.Treatment, ok bool) {
	of, ok = b.against[t.ID]
	return of, ok
}

// arms are the treatments that are the baseline of t together: bare metal and its A/A control, or another reference. Bare metal and the control
// themselves are compared with one treatment only.
func (b baselines) arms(t notebook.Treatment) []string {
	of, ok := b.against[t.ID]
	control := b.controls[of.ID]
	switch {
	case !ok:
		return nil
	case control == "" || t.Platform == notebook.BM:
		return []string{of.ID}
	}
	return []string{of.ID, control}
}

// own are the treatments that count as t where it is compared with another environment: bare metal has its A/A control as a second arm.
func (b baselines) own(t notebook.Treatment) []string {
	if control := b.controls[t.ID]; control != "" && b.against[t.ID].ID != t.ID {
		return []string{t.ID, control}
	}
	return []string{t.ID}
}

// group names the treatments whose guests do the same number of trials in a round: all that are compared with one baseline, and the A/A control
// of one of them. Changes from trial to trial in a guest's life then affect both sides of a ratio.
func (b baselines) group(id string) string {
	of := b.against[id].ID
	return cmp.Or(b.against[of].ID, of, id)
}
