package study

import (
	"cmp"
	"slices"
	"time"
)

// question is something that is to be known and is not yet: rounds are run for it.
type question struct {
	of     []string // the treatments that a round needs to contribute to the answer
	rounds int      // about how many more rounds it takes
	atMost bool     // that cannot be foreseen: rounds is an upper limit
	fixed  bool     // it takes so many rounds whatever is measured, and never waits
}

// choose returns the questions that the next round is for: all, if the time that is left is enough to answer all of them. Otherwise as
// many as it is enough for, the cheapest first, and the others wait. If it is enough for none, none waits; with one, all wait but
// the cheapest and those that never wait. lasts is how long a guest of a treatment takes.
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

// rounds is how many rounds each treatment is in until all the questions are answered. One round of a treatment serves all questions
// that need it.
func rounds(open []question) map[string]int {
	n := map[string]int{}
	for _, q := range open {
		for _, t := range q.of {
			n[t] = max(n[t], q.rounds)
		}
	}
	return n
}
