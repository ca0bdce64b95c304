package study

import (
	"cmp"
	"slices"
	"time"
)

// question is something that further rounds should answer.
type question struct {
	of     []string // the treatments that a round needs to contribute to the answer
	rounds int      // about how many more rounds it takes
	atMost bool     // no forecast is possible: rounds is an upper limit
	fixed  bool     // it takes this many rounds whatever is measured, and never waits

	// choice names the questions that wait together: those of environments that differ in their CPU limit only. Whoever asks which limit to
	// use needs both. Empty: it waits for itself only.
	choice string
}

// choose returns the questions that the next round is for. If there is time to answer all questions, it returns all. Otherwise it returns
// as many as there is time for, the cheapest choice first, and the others wait. If there is time for none, it returns all; but with one, it
// returns the cheapest and those that never wait. lasts is how long a guest of a treatment takes.
func choose(open []question, lasts func(treatment string) time.Duration, left time.Duration, one bool) (now []question) {
	price := func(all ...question) (d time.Duration) {
		for t, n := range rounds(all) {
			d += time.Duration(n) * lasts(t)
		}
		return d
	}
	cheapest := choices(open)
	slices.SortStableFunc(cheapest, func(a, b []question) int { return cmp.Compare(price(a...), price(b...)) })
	for _, q := range open {
		if q.fixed {
			now = append(now, q)
		}
	}
	fixed := len(now)
	for _, c := range cheapest {
		if price(slices.Concat(now, c)...) <= left || one && len(now) == 0 {
			now = append(now, c...)
		}
	}
	if len(now) == fixed && !one {
		return open
	}
	return now
}

// choices groups the questions that may wait by their choice.
func choices(open []question) (all [][]question) {
	at := map[string]int{} // by choice: its place in all
	for _, q := range open {
		i, known := at[q.choice]
		switch {
		case q.fixed:
		case known && q.choice != "":
			all[i] = append(all[i], q)
		default:
			at[q.choice], all = len(all), append(all, []question{q})
		}
	}
	return all
}

// rounds is how many rounds each treatment takes part in until all questions are answered. One round of a treatment serves all
// questions that need it.
func rounds(open []question) map[string]int {
	n := map[string]int{}
	for _, q := range open {
		for _, t := range q.of {
			n[t] = max(n[t], q.rounds)
		}
	}
	return n
}
