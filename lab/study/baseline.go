package study

import (
	"cmp"

	"tare/notebook"
)

// baselines are the treatments that others are compared with: bare metal of the same instance type with the same work.
type baselines struct {
	against map[string]notebook.Treatment // the baseline of each treatment; of a baseline itself
	shared  map[string]bool               // baselines of other treatments
}

// baselinesOf finds the baselines once, because every guest needs them.
func baselinesOf(treatments []notebook.Treatment) baselines {
	all := baselines{map[string]notebook.Treatment{}, map[string]bool{}}
	for _, t := range treatments {
		if b, ok := bareMetal(treatments, t); ok {
			all.against[t.ID] = b
			all.shared[b.ID] = all.shared[b.ID] || b.ID != t.ID
		}
	}
	return all
}

// bareMetal is the bare-metal treatment with the same instance type and the same work.
func bareMetal(treatments []notebook.Treatment, t notebook.Treatment) (notebook.Treatment, bool) {
	for _, b := range treatments {
		if b.Platform == notebook.BM && !b.AA && b.Instance.Name == t.Instance.Name && b.HostCores == t.HostCores && b.Label() == t.Label() {
			return b, true
		}
	}
	return notebook.Treatment{}, false
}

// baseline is the treatment that t is compared with; for bare metal it is t itself.
func (b baselines) baseline(t notebook.Treatment) (of notebook.Treatment, ok bool) {
	of, ok = b.against[t.ID]
	return of, ok
}

// group names the treatments whose guests do equally many trials in a round: all that are compared with one baseline. What changes
// from trial to trial in a guest's life then affects both sides of a ratio.
func (b baselines) group(id string) string { return cmp.Or(b.against[id].ID, id) }
