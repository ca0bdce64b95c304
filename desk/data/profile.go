package data

import (
	"cmp"
	"slices"
	"strings"

	arrivalskind "tare/notebook/kinds/arrivals"
	"tare/stats"
)

// Profile is what the host's CPUs were at while a row's containers were started, of all its trials together.
type Profile struct {
	Trials  int
	Samples int // of which the stack is known
	Lost    int64
	Roles   []Share // of Samples, in the order of arrivalskind.ProfileRoles
	Engine  int     // samples of the engine
	Kernel  int     // of these in the kernel
	Classes []Share // of Engine, the largest first
	Stacks  []Stack // of the engine, in the order of their frames
}

// Share is a part of samples.
type Share struct {
	Name   string
	Kernel bool
	N      int
}

// Stack is samples of the engine with the same stack.
type Stack struct {
	Frames []string // a program, and functions, outermost first
	Kernel int      // from which frame on it is the kernel; len(Frames): nowhere
	N      int
}

// mostStacks bounds the different stacks of a row that are kept: a folder is not trusted to have few.
const mostStacks = 100_000

type profile struct {
	*Profile
	roles, classes map[string]int
	stacks         map[string]*Stack
}

// trial takes a trial's profile.
func (p *profile) trial(n *arrivalskind.Profile) {
	if n == nil {
		return
	}
	if p.Profile == nil {
		*p = profile{&Profile{}, map[string]int{}, map[string]int{}, map[string]*Stack{}}
	}
	p.Trials++
	p.Lost += n.Lost
	for s := range n.All() {
		if s.N < 1 {
			continue
		}
		p.Samples += s.N
		p.roles[s.Role] += s.N
		if s.Role != arrivalskind.ProfileEngine {
			continue
		}
		p.Engine += s.N
		if len(s.Kernel) > 0 {
			p.Kernel += s.N
		}
		p.classes[n.Class(s)] += s.N
		st := Stack{Kernel: len(s.User)}
		for _, f := range slices.Concat(s.User, s.Kernel) {
			st.Frames = append(st.Frames, n.Name(f))
		}
		key := strings.Join(st.Frames, "\x00")
		if known := p.stacks[key]; known != nil {
			known.N += s.N
		} else if len(p.stacks) < mostStacks {
			st.N = s.N
			p.stacks[key] = &st
		}
	}
}

func (p *profile) finish() *Profile {
	if p.Profile == nil || p.Samples == 0 {
		return nil
	}
	for _, r := range arrivalskind.ProfileRoles {
		p.Roles = append(p.Roles, Share{Name: r, N: p.roles[r]})
	}
	inKernel := map[string]bool{arrivalskind.OtherWork(true): true}
	for _, c := range arrivalskind.ProfileClasses {
		inKernel[c.Name] = c.Kernel
	}
	for name, n := range p.classes {
		p.Classes = append(p.Classes, Share{name, inKernel[name], n})
	}
	slices.SortFunc(p.Classes, func(a, b Share) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name)) })
	for _, s := range p.stacks {
		p.Stacks = append(p.Stacks, *s)
	}
	slices.SortFunc(p.Stacks, func(a, b Stack) int { return slices.Compare(a.Frames, b.Frames) })
	return p.Profile
}

// Rates of a knee: an engine that answers fewer than kneeRate of the requests in the time in which they come, or whose p95 is more than kneeTail times that of the
// least rate, is beyond it.
const (
	kneeRate = 0.9
	kneeTail = 2
)

// KneeWhy says by what a rate is beyond the knee.
type KneeWhy int

// Reasons.
const (
	NoKnee   KneeWhy = iota // no rate was
	KneeRate                // it was not achieved
	KneeTail                // starts took more than twice as long as at the least rate
)

// Knee is the first of rows, which are of one engine at rising rates, that is beyond the engine's knee; len(rows): none is.
func Knee(rows []*Row, rate func(*Row) float64) (i int, why KneeWhy) {
	for i, r := range rows {
		if reached := r.Known(arrivalskind.RateReached.Name).Value; !(reached >= kneeRate*rate(r)) { // nor where none was
			return i, KneeRate
		}
		first, tail := rows[0].Known(arrivalskind.StartP95.Name).Value, r.Known(arrivalskind.StartP95.Name).Value
		if stats.Finite(first) && tail > kneeTail*first {
			return i, KneeTail
		}
	}
	return len(rows), NoKnee
}
