package study

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"

	"tare/notebook"
)

// batch is the part of a round whose guests are alive at the same time. They do their trials in random turns, so that a disturbance of some
// seconds affects all of them alike. Sources: Grambow et al., "Using Microbenchmark Suites to Detect Application Performance Changes",
// 2023; Abedi and Brecht, 2017.
type batch struct {
	stay []notebook.Treatment // alive throughout

	// shifts are alive one after the other, each next to the guests that stay, because their services need the same port of the host. The
	// guests that stay do an equal part of their trials in each shift.
	shifts []notebook.Treatment
}

// all are the batch's treatments.
func (b batch) all() []notebook.Treatment {
	return append(b.stay[:len(b.stay):len(b.stay)], b.shifts...)
}

// batches divides the treatments of a round, which are in the round's order, into batches in random order: each batch has the place of
// its first treatment.
func (p *Plan) batches(round []notebook.Treatment, groups baselines) (all []batch) {
	at := map[string]int{} // by group: its batch
	for _, t := range round {
		g := groups.group(t.ID)
		if p.together[g] == 0 || !p.joins(t) {
			all = append(all, batch{stay: []notebook.Treatment{t}})
			continue
		}
		i, begun := at[g]
		if !begun {
			i = len(all)
			at[g], all = i, append(all, batch{})
		}
		if p.onHostsPort(t) {
			all[i].shifts = append(all[i].shifts, t)
		} else {
			all[i].stay = append(all[i].stay, t)
		}
	}
	return all
}

// interleaved finds the groups whose guests live at the same time. In the others, one guest follows the other.
func (p *Plan) interleaved() {
	groups := baselinesOf(&p.Study)
	p.together = map[string]int{}
	memory, alone := map[string]int64{}, map[string]bool{}
	for _, t := range p.Study.Treatments {
		g := groups.group(t.ID)
		if t.HostCores > 0 || t.OthersOffline || t.MemoryWithheld {
			alone[g] = true // its guests change the size of the host
		}
		if p.joins(t) {
			p.together[g]++
			if p.staysResident(t) {
				memory[g] += t.Instance.Memory
			}
		}
	}
	maps.DeleteFunc(p.together, func(g string, n int) bool { return n < 2 || alone[g] || memory[g] > p.room-spareMemory })
}

// staysResident reports whether a guest has memory between its trials: a service's, or a virtual machine's.
func (p *Plan) staysResident(t notebook.Treatment) bool {
	return p.readyOf(t).Workload.Service != nil || notebook.HasMachine(t.Platform)
}

// onHostsPort reports whether the guest's service listens at its own port of the host, so that one guest at a time can have it.
func (p *Plan) onHostsPort(t notebook.Treatment) bool {
	return p.readyOf(t).Workload.Service != nil && cmp.Or(t.Network, p.engine(t).Connected(t.Isolation, true)) == notebook.NetHost
}

// joins reports whether a guest of the treatment may be alive next to others. Virtual machines and whole systems work all the time: their
// timers take CPU time from the guest whose turn it is. So virtual machines join only where the study asks for it, and emulated ones only
// where nothing else is measured. Busy neighbours take CPU time, too. A trial that begins with a cold cache must not
// follow another guest's trial. A service with its load on another machine needs the host's port for itself. A kind of study has its own
// guests in a trial, unless its trials are made in parts.
func (p *Plan) joins(t notebook.Treatment) bool {
	switch {
	case p.Study.Design.Order == notebook.OrderSequential, p.config != nil && !p.rules.Turns:
		return false
	case p.Study.LoadFrom != "" && p.readyOf(t).Workload.Service != nil:
		return false // the load reaches each guest at the host's port
	case len(p.kinds(t)) > 0, notebook.FactorCache.Of(t) != "", p.readyOf(t).Workload.System:
		return false
	case notebook.HasMachine(t.Platform):
		return p.Study.Design.Order == notebook.OrderInterleaved && (t.Representative() || !slices.ContainsFunc(p.Study.Treatments, notebook.Treatment.Representative))
	}
	return true
}

// turns is the order in which n guests of a batch have their pass-th turns: random, and the same for the same seed.
func turns(seed uint64, round, pass int, first string, n int) []int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", round, pass, first) // writing to a hash cannot fail
	return rand.New(rand.NewPCG(seed, h.Sum64())).Perm(n)
}
