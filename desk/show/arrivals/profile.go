package arrivals

import (
	"cmp"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/arrivals"
)

// Profile is what the host's CPUs did while a row's containers were started, in all its trials together.
type Profile struct {
	Trials  int
	Samples int // with a known stack
	Lost    int64
	Roles   []Share // of Samples, in the order of kind.ProfileRoles
	Engine  int     // samples of the engine
	Kernel  int     // of these, samples in the kernel
	Classes []Share // of Engine, the largest first
	Stacks  []Stack // of the engine, in the order of their frames
}

// Share is a part of the samples.
type Share struct {
	Name   string
	Kernel bool
	N      int
}

// Stack is the samples of the engine with one stack.
type Stack struct {
	Frames []string // a program and its functions, outermost first
	Kernel int      // index of the first kernel frame; len(Frames): none
	N      int
}

// mostStacks limits the different stacks that a row keeps, because a folder is not trusted to have few.
const mostStacks = 100_000

type profile struct {
	*Profile
	roles, classes map[string]int
	stacks         map[string]*Stack
}

// Trial adds the samples of a measured trial.
func (p *profile) Trial(_ data.Block, t *notebook.Trial) error {
	seen, err := notebook.SeenOf[kind.Seen](t)
	if seen.Profile != nil && t.Measured() && t.Failure == nil {
		p.add(seen.Profile)
	}
	return err
}

func (p *profile) add(n *kind.Profile) {
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
		if s.Role != kind.ProfileEngine {
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

// Finish computes the profile.
func (p *profile) Finish(*data.Summary) (any, []data.Doubt) {
	if p.Profile == nil || p.Samples == 0 {
		return nil, nil
	}
	for _, r := range kind.ProfileRoles {
		p.Roles = append(p.Roles, Share{Name: r, N: p.roles[r]})
	}
	inKernel := map[string]bool{kind.OtherWork(true): true}
	for _, c := range kind.ProfileClasses {
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
	return p.Profile, nil
}
