// Package ladder puts the treatments of an isolation ladder in order and says what each of its rungs costs. The ladder
// leads from bare metal over one layer of isolation after the other to engines' whole containers; the VM is a separate rung. The
// paper "pinning" announces this study as "overhead by isolation level" (section VI). The package is a pure function of a summary.
//
// What a rung's own cost is relative to, its rung below:
//
//   - a layer (engine "layers"): the topmost layer under it that was measured, bare metal under the first. Layers are
//     cumulative, so the quotient is the layer's own. Where layers between the two were not measured, it is theirs too: Rung.With
//     names them.
//   - an engine's whole container (isolation "full"): the topmost layer that was measured, for each engine alike. An engine does
//     not stand on another one, so none is the rung below another.
//   - a VM: bare metal; it has none of the layers. A container in a VM: the VM.
//
// Own costs are ratios over the rounds that both rungs have, with intervals as the summary makes them (Summary.Ratio): of 95 %,
// in spite of the stopping rule.
//
// Which rung costs most is picked from many, and the largest of many is often large by luck. So a layer or an engine is called
// expensive or cheap only where its interval excludes 1 at a level that is corrected for all that could have been picked (Bonferroni:
// the share of misses, stats.Alpha, is split among them). The VM and the container in it are not picked from anything: for them
// the interval itself decides. What is emulated, doubtful or has mostly failed is never picked.
package ladder

import (
	"cmp"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Kind says which part of the ladder a rung is of.
type Kind int

const (
	BareMetal     Kind = iota // the floor
	Again                     // bare metal measured again, the A/A check: what noise looks like here
	Layer                     // one of notebook.Layers
	Single                    // a guest with one of notebook.Layers and none below it
	Engine                    // an engine's whole container
	VM                        // a virtual machine
	ContainerInVM             // a container in it
)

// Rung is one treatment of a ladder.
type Rung struct {
	Name      string   // as a study names it: "bm", "cgroup", "docker", "vm"; with Apart behind it
	Apart     []string // what tells it from others of that name: an engine, an accelerator, a network
	Kind      Kind
	Treatment notebook.Treatment

	// Row is what was measured; nil where nothing was. Missing then says why.
	Row     *data.Row
	Missing data.Doubt

	Ratio stats.Quotient // the mean over bare metal's, as a cost (data.Cost)
	Own   stats.Quotient // the mean over the mean of the rung below, as a cost

	Below *Rung    // that Own is relative to; nil: none
	With  []string // names of the layers between the two that were not measured: Own is theirs too
	Shaky bool     // Ratio is not to be trusted

	Emulated    bool // under software emulation: drawn, marked, never picked
	Doubtful    bool // bare metal differed from itself by as much as Own differs from 1: never picked
	Failing     bool // so much of it, or of the rung below, failed that it is never picked
	Ranked      bool // it may be picked
	Significant bool // Own excludes 1; for a layer or an engine at the level corrected for all that may be picked
}

// Measured says whether the rung has a value.
func (r *Rung) Measured() bool { return r.Row != nil && r.Row.Rounds > 0 }

// Staircase is the ladder of one workload with its parameters, at one instance type on one host.
type Staircase struct {
	Workload    string
	Params      map[string]string
	Factors     map[string]string // notebook.Treatment.Factors
	Instance    notebook.Instance
	Host        string // Host.Name
	HostID      string
	HostCores   int
	Metric      notebook.Metric
	Image       notebook.Image
	OtherImages bool // another staircase differs only in its image, so its name has to include the image

	Rungs   []*Rung   // bare metal first, then from the lowest up
	Singles []*Rung   // the guests with one layer each, without ratios; the one with only a control group is a rung
	Model   *Additive // nil: it cannot be fitted
	Level   float64   // at which Rung.Significant was decided, without the share of the stopping rule: 1 − Alpha over the number of ranked layers and engines
}

// Top is the index of the topmost layer that was measured, which engines stand on; −1 where there is none.
func (s *Staircase) Top() int {
	for i := len(s.Rungs) - 1; i >= 0; i-- {
		if s.Rungs[i].Kind == Layer && s.Rungs[i].Measured() {
			return i
		}
	}
	return -1
}

// engines are those whose order on the ladder is known; others follow by name.
var engines = []string{"runc", "crun", "containerd", "docker", "podman", "lxc", "gvisor"}

// Has says whether a treatment can belong to a ladder: a layer, an engine's whole container, or a treatment that these are compared
// with. The last kind belongs to a ladder only if the study has one of the others too.
func Has(t notebook.Treatment) bool {
	_, ok := kindOf(t)
	return ok
}

func kindOf(t notebook.Treatment) (Kind, bool) {
	switch {
	case t.AA:
		return Again, true
	case t.Platform == notebook.BM:
		return BareMetal, true
	case t.Engine == notebook.LayersEngine && strings.HasPrefix(t.Isolation, notebook.OnlyLayer):
		return Single, len(notebook.LayersOf(t.Isolation)) > 0
	case t.Engine == notebook.LayersEngine:
		return Layer, slices.Contains(notebook.Layers, t.Isolation)
	case t.Platform == notebook.CN:
		return Engine, t.Isolation == notebook.IsolationFull
	case t.Platform == notebook.VM:
		return VM, t.Provisioning == notebook.Pinned
	case t.Platform == notebook.VMCN:
		return ContainerInVM, t.Provisioning == notebook.Pinned
	}
	return 0, false
}

// name is the rung's, and place its order among those of its kind.
func name(k Kind, t notebook.Treatment) (name string, place int) {
	switch k {
	case Again:
		return "bm again", 0
	case Layer:
		return t.Isolation, slices.Index(notebook.Layers, t.Isolation)
	case Engine:
		return t.Engine, data.Place(engines, t.Engine)
	}
	return t.Platform, 0
}

// Of gives the staircases of a summary, in the order of its rows: those of which at least one layer was asked for and something was
// measured.
func Of(s *data.Summary) []*Staircase {
	var all []*Staircase
	byKey := map[data.Identity]*Staircase{}
	for _, r := range s.Rows {
		k, ok := kindOf(r.Treatment)
		if !ok {
			continue
		}
		// What runs in another image is other work.
		id := place(r.Treatment, r.HostID, r.HostCores)
		id.Digest, id.Input, id.Metric = r.Image.Digest, r.Image.Input, r.Metric
		c := byKey[id]
		if c == nil {
			c = &Staircase{Workload: r.Treatment.Workload, Params: r.Treatment.Params, Factors: r.Treatment.Factors, Instance: r.Treatment.Instance, Host: r.Host, HostID: r.HostID, HostCores: r.HostCores, Metric: r.Metric, Image: r.Image}
			byKey[id] = c
			all = append(all, c)
		}
		g := &Rung{Kind: k, Treatment: r.Treatment, Row: r, Emulated: !r.Representative}
		switch {
		case r.Trials == 0:
			g.Missing = data.NotMeasured{}
		case r.Rounds == 0:
			g.Missing = data.TrialsFailed{Failed: r.Failed, Trials: r.Trials}
			if f, known := r.Failures(); known {
				g.Missing = f
			}
		}
		c.Rungs = append(c.Rungs, g)
	}
	for _, l := range s.LeftOut {
		k, ok := kindOf(l.Treatment)
		if !ok {
			continue
		}
		h := s.HostNamed(l.Host)
		for _, c := range all {
			if c.place() == place(l.Treatment, h.ID, h.Cores(l.Treatment)) {
				c.Rungs = append(c.Rungs, &Rung{Kind: k, Treatment: l.Treatment, Missing: data.Omitted{Reason: l.Reason}, Emulated: !l.Treatment.Representative()})
			}
		}
	}
	all = slices.DeleteFunc(all, func(c *Staircase) bool {
		layer := slices.ContainsFunc(c.Rungs, func(r *Rung) bool { return r.Kind == Layer })
		return !layer || !slices.ContainsFunc(c.Rungs, (*Rung).Measured)
	})
	for _, c := range all {
		c.OtherImages = slices.ContainsFunc(all, func(o *Staircase) bool {
			return o.place() == c.place() && (o.Image.Digest != c.Image.Digest || o.Image.Input != c.Image.Input)
		})
		c.Singles = slices.DeleteFunc(slices.Clone(c.Rungs), func(r *Rung) bool { return r.Kind != Single })
		c.Rungs = slices.DeleteFunc(c.Rungs, func(r *Rung) bool { return r.Kind == Single })
		c.order()
		c.compare(s)
		c.Model = c.additive()
	}
	return all
}

// place is what a staircase's treatments share, whatever image they ran and in whatever metric.
func place(t notebook.Treatment, hostID string, hostCores int) data.Identity {
	return data.Identity{Workload: t.Workload, Assigned: data.Assigned(t), Size: data.SizeOf(t.Instance), HostID: hostID, HostCores: hostCores}
}

// Work returns what the staircase's treatments share as a treatment: workload, parameters, factors that are written like them, and instance.
func (c *Staircase) Work() notebook.Treatment {
	return notebook.Treatment{Workload: c.Workload, Params: c.Params, Factors: c.Factors, Instance: c.Instance}
}

func (c *Staircase) place() data.Identity { return place(c.Work(), c.HostID, c.HostCores) }

// order sorts the rungs from the lowest up and names them.
func (c *Staircase) order() {
	slices.SortStableFunc(c.Rungs, func(a, b *Rung) int {
		an, ap := name(a.Kind, a.Treatment)
		bn, bp := name(b.Kind, b.Treatment)
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(ap, bp), cmp.Compare(an, bn), cmp.Compare(a.Treatment.Accelerator, b.Treatment.Accelerator), cmp.Compare(a.Treatment.Kernel, b.Treatment.Kernel))
	})
	// A treatment that an earlier folder left out and a later one measured is not a gap.
	c.Rungs = slices.DeleteFunc(c.Rungs, func(r *Rung) bool {
		return r.Row == nil && slices.ContainsFunc(c.Rungs, func(o *Rung) bool { return o.Row != nil && same(o.Treatment, r.Treatment) })
	})
	c.Rungs = slices.CompactFunc(c.Rungs, func(a, b *Rung) bool { return a.Row == nil && b.Row == nil && same(a.Treatment, b.Treatment) })
	n := map[string]int{}
	for _, r := range c.Rungs {
		r.Name, _ = name(r.Kind, r.Treatment)
		n[r.Name]++
	}
	// Several at one place differ in something that the ladder does not order by.
	for _, r := range c.Rungs {
		if n[r.Name] > 1 {
			name := r.Name
			for _, w := range []string{r.Treatment.Engine, r.Treatment.Accelerator, r.Treatment.Kernel, r.Treatment.Network} {
				if w != "" && w != name && w != notebook.LayersEngine {
					r.Apart = append(r.Apart, w)
					r.Name += " " + w
				}
			}
		}
	}
}

func same(a, b notebook.Treatment) bool {
	return a.Variant() == b.Variant() && a.AA == b.AA && a.SameWork(b)
}

// below finds what a rung's own cost is relative to; nil where there is nothing.
func (c *Staircase) below(i int) *Rung {
	r := c.Rungs[i]
	lower := func(ok func(o *Rung) bool) *Rung {
		for _, o := range slices.Backward(c.Rungs[:i]) {
			if o.Measured() && ok(o) {
				return o
			}
		}
		return nil
	}
	floor := func(o *Rung) bool { return o.Kind == BareMetal }
	switch r.Kind {
	case BareMetal:
		return nil
	case Layer:
		_, place := name(r.Kind, r.Treatment)
		if o := lower(func(o *Rung) bool {
			_, p := name(o.Kind, o.Treatment)
			return o.Kind == Layer && p < place
		}); o != nil {
			return o
		}
	case Engine:
		if o := lower(func(o *Rung) bool { return o.Kind == Layer }); o != nil {
			return o
		}
	case ContainerInVM:
		// Of the VM under the same accelerator: an emulated one says nothing of one that is not.
		return lower(func(o *Rung) bool {
			return o.Kind == VM && o.Treatment.Accelerator == r.Treatment.Accelerator && o.Treatment.Kernel == r.Treatment.Kernel
		})
	}
	return lower(floor)
}

// compare gives the rungs their ratios and own costs.
func (c *Staircase) compare(s *data.Summary) {
	var ranked []*Rung
	for i, r := range c.Rungs {
		r.Below, r.Ratio, r.Own = c.below(i), stats.NoRatio, stats.NoRatio
		if !r.Measured() {
			continue
		}
		if r.Kind == BareMetal {
			r.Ratio = stats.Quotient{Value: 1, Low: 1, High: 1, N: r.Row.Rounds} // by definition, whatever its noise
			continue
		}
		if floor := slices.IndexFunc(c.Rungs, func(o *Rung) bool { return o.Kind == BareMetal && o.Measured() }); floor >= 0 {
			b := c.Rungs[floor].Row
			r.Ratio = data.Cost(c.Metric, s.Ratio(r.Row, b, stats.Alpha))
			r.Shaky = r.Row.Unreliable() || b.Unreliable() || s.Within(r.Row, r.Ratio)
		}
		b := r.Below
		if b == nil {
			continue
		}
		r.Own = data.Cost(c.Metric, s.Ratio(r.Row, b.Row, stats.Alpha))
		r.With = c.between(r, b)
		r.Failing = r.Row.Unreliable() || b.Row.Unreliable()
		r.Doubtful = s.Within(r.Row, r.Own)
		r.Ranked = r.Kind != Again && !r.Emulated && !b.Emulated && !r.Doubtful && !r.Failing && r.Own.HasInterval()
		switch {
		case !r.Ranked:
		case r.Kind == Layer, r.Kind == Engine:
			ranked = append(ranked, r)
		default:
			r.Significant = !r.Own.Contains(1)
		}
	}
	alpha := stats.Alpha / float64(max(1, len(ranked)))
	c.Level = 1 - alpha
	for _, r := range ranked {
		q := s.Ratio(r.Row, r.Below.Row, alpha)
		r.Significant = q.HasInterval() && !q.Contains(1)
	}
}

// between names the layers that a rung has and the one below it has not, without its own.
func (c *Staircase) between(r, b *Rung) []string {
	if r.Kind != Layer && r.Kind != Engine {
		return nil
	}
	from, to := 0, len(notebook.Layers)
	if b.Kind == Layer {
		_, p := name(b.Kind, b.Treatment)
		from = p + 1
	}
	if r.Kind == Layer {
		_, to = name(r.Kind, r.Treatment)
	}
	// Only a study of the time when there was a rung for the CPU set lacks it: else the rung below has one too.
	had := slices.ContainsFunc(c.Rungs, func(o *Rung) bool { return o.Treatment.Isolation == notebook.LayerCPUSet })
	return slices.DeleteFunc(slices.Clone(notebook.Layers[from:max(from, to)]), func(l string) bool { return l == notebook.LayerCPUSet && !had })
}
