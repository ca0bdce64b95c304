package study

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"tare/lab/measure"
)

// Order is the order of n treatments in a round: random, and the same for the same seed.
func Order(seed uint64, round, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(round))).Perm(n)
}

// Interleave is the order of a guest's measured trials, n traced ones (true) among n untraced ones. It is random, and the same for
// the same seed. Every second round repeats the order of the round before with traced and untraced exchanged. A drift within a
// guest's life thus affects both alike, and their difference is the cost of the tracers.
func Interleave(seed uint64, round int, treatment string, n int) []bool {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", round/2, treatment) // writing to a hash cannot fail
	order := slices.Concat(slices.Repeat([]bool{true}, n), slices.Repeat([]bool{false}, n))
	rand.New(rand.NewPCG(seed, h.Sum64())).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if round%2 == 1 {
		for i := range order {
			order[i] = !order[i]
		}
	}
	return order
}

// todo are the trials of a treatment in a round that are not on record, in their order.
func (p *progress) todo(id string, round int) (todo []measure.Step) {
	s := p.study
	n := p.trials(id, round)
	order := make([]bool, n)
	if len(s.Explain) > 0 {
		order = Interleave(s.Seed, round, id, n)
	}
	d := p.cells[cell{id, round}]
	if d == nil {
		d = &done{}
	}
	measured, traced := 0, 0
	for _, e := range order {
		n, stand := &measured, d.trials
		if e {
			n, stand = &traced, d.traced
		}
		if *n >= stand {
			s := measure.Step{Role: measure.Measured, Index: *n}
			if e {
				s.Role = measure.Traced
			}
			todo = append(todo, s)
		}
		*n++
	}
	return todo
}
