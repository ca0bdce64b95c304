package claims

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// isInstance says whether a size has that name: a name of an instance type means its size however a study writes it.
func isInstance(name string, i notebook.Instance) bool {
	if i.Name == name {
		return true
	}
	named, err := notebook.ParseInstance(name)
	return err == nil && named.SameSize(i)
}

func oneOf(want Values, has string) bool { return len(want) == 0 || slices.Contains(want, has) }

// has says whether the selector chooses the treatment, on a host with so many cores and with that CHR.
func (s Selector) has(t notebook.Treatment, hostCores int, chr float64) bool {
	if t.AA || !oneOf(s.Workload, t.Workload) {
		return false
	}
	for _, c := range s.choices() {
		if !c.has(t) {
			return false
		}
	}
	assigned := t.Assigned()
	for k, values := range s.Params {
		if has, there := assigned[k]; there && !slices.ContainsFunc(values, func(v string) bool { return isValue(v, has) }) {
			return false
		}
	}
	return s.Cores.has(t.Instance.Cores) && s.HostCores.has(float64(hostCores)) && s.CHR.has(chr)
}

// has says whether the treatment has one of the values.
func (c choice) has(t notebook.Treatment) bool {
	want := *c.Values
	switch c.of.Name {
	case notebook.FactorIsolation.Name:
		return hasRung(want, t.Isolation)
	case notebook.FactorMachine.Name:
		return hasMachine(want, t)
	case notebook.FactorInstance.Name:
		return len(want) == 0 || slices.ContainsFunc(want, func(n string) bool { return isInstance(n, t.Instance) })
	}
	has := c.of.Of(t)
	return oneOf(want, has) || c.of.Number && slices.ContainsFunc(want, func(v string) bool { return isValue(v, has) })
}

// orMore stands behind the least value that a selector chooses of a parameter that is a number.
const orMore = " or more"

// isValue says whether a parameter's value is what a selector wants.
func isValue(want, has string) bool {
	text, ok := strings.CutSuffix(want, orMore)
	if !ok {
		return has == want
	}
	least, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err) // it was read when the file was
	}
	n, err := strconv.ParseFloat(has, 64)
	return err == nil && n >= least
}

// hasRung says whether a rung of the isolation ladder is chosen: a paper's container is none of them.
func hasRung(want Values, name string) bool {
	if len(want) == 0 {
		return name == ""
	}
	return slices.Contains(want, name)
}

// hasMachine reports whether a selector chooses the treatment's machine. A selector without a machine chooses the usual one. It chooses all
// treatments without VMs, because they have no machine.
func hasMachine(want Values, t notebook.Treatment) bool {
	if len(want) == 0 || !notebook.HasMachine(t.Platform) {
		return t.Machine == ""
	}
	return slices.ContainsFunc(want, func(as string) bool {
		m, err := notebook.ParseMachine(as)
		if err != nil {
			panic(err) // it was read when the file was
		}
		return m.Text() == t.Machine
	})
}

func (s Selector) hasRow(r *data.Row) bool { return s.has(r.Treatment, r.HostCores, r.CHR) }

// pair is a row and the row that it is compared with; nil where there is none.
type pair struct{ x, y *data.Row }

// fits says whether y is x's counterpart in all that `to` does not name.
func (to Selector) fits(x, y *data.Row) bool {
	a, b := x.Treatment, y.Treatment
	either := func(named Values, a, b string) bool { return len(named) > 0 || a == b || a == "" || b == "" }
	samePlatform := a.Platform == b.Platform
	if x == y || !data.SameMeasure(x, y) || len(to.Platform) == 0 && !samePlatform ||
		len(to.Engine) == 0 && samePlatform && a.Engine != b.Engine ||
		len(to.Accelerator) == 0 && samePlatform && a.Accelerator != b.Accelerator ||
		len(to.Kernel) == 0 && samePlatform && a.Kernel != b.Kernel ||
		len(to.Isolation) == 0 && samePlatform && a.Isolation != b.Isolation ||
		len(to.Machine) == 0 && samePlatform && a.Machine != b.Machine ||
		!either(to.Provisioning, a.Provisioning, b.Provisioning) || !either(to.Network, a.Network, b.Network) {
		return false
	}
	if len(to.Workload) == 0 {
		if a.Workload != b.Workload || x.Metric != y.Metric {
			return false
		}
		// What `to` names, a counterpart has already; the rest must be alike.
		mine, other := maps.Clone(a.Assigned()), maps.Clone(b.Assigned())
		for k := range to.Named() {
			delete(mine, k)
			delete(other, k)
		}
		if !maps.Equal(mine, other) {
			return false
		}
		if len(to.Params) == 0 && x.Image != y.Image {
			return false
		}
	}
	sameSize := a.Instance.Cores == b.Instance.Cores && a.Instance.Memory == b.Instance.Memory
	if !sameSize && len(to.Instance) == 0 && to.Cores == nil && to.CHR == nil {
		return false
	}
	return x.HostID == y.HostID && (x.HostCores == y.HostCores || to.HostCores != nil || to.CHR != nil)
}

// pairs gives every row that `of` chooses with every counterpart that `to` chooses. It includes rows that must not decide
// anything, because the results must not choose a claim's comparisons.
func (j *judge) pairs(of, to Selector) (all []pair) {
	for _, x := range j.rows(of) {
		for _, y := range j.rows(to) {
			if to.fits(x, y) {
				all = append(all, pair{x, y})
			}
		}
	}
	return withoutEmulated(all)
}

// withoutEmulated drops emulated pairs where any pair was not emulated. If all were, it keeps them: the verdict names emulation
// as its reason, and a guest's own memory is decided all the same.
func withoutEmulated(all []pair) []pair {
	emulated := func(p pair) bool { return !p.x.Representative || p.y != nil && !p.y.Representative }
	if slices.ContainsFunc(all, func(p pair) bool { return !emulated(p) }) {
		all = slices.DeleteFunc(all, emulated)
	}
	return all
}

func (j *judge) rows(s Selector) (all []*data.Row) {
	for _, r := range j.sum.Rows {
		if s.hasRow(r) && j.excluded(r.Treatment, r.HostCores, r.CHR) == "" {
			all = append(all, r)
		}
	}
	return all
}

// excluded is why the paper leaves a treatment out; empty where it does not. An exclusion by parameters applies only to workloads that have
// them.
func (j *judge) excluded(t notebook.Treatment, hostCores int, chr float64) string {
	assigned := t.Assigned()
	for _, e := range j.without {
		there := true
		for k := range e.Params {
			_, has := assigned[k]
			there = there && has
		}
		if there && e.has(t, hostCores, chr) {
			return e.Why
		}
	}
	return ""
}

func bySize(a, b notebook.Instance) int {
	return cmp.Or(cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.Memory, b.Memory))
}

// position is where a row stands on an axis; false where it does not.
func position(over string, r *data.Row) (float64, bool) {
	switch over {
	case OverInstance:
		return r.Treatment.Instance.Cores, true
	case OverHostCores:
		return float64(r.HostCores), r.HostCores > 0
	}
	v, err := strconv.ParseFloat(r.Treatment.Assigned()[over], 64)
	return v, err == nil
}

// representative says whether a row's values stand for those on hardware. An accelerator changes times and the emulator, not what is the guest's own.
func representative(r *data.Row, what data.Quantity) bool {
	return r.Representative || r.Treatment.Platform == notebook.VM && what.AllOf(r.Kind, r.Traits().Alike)
}

// unfit is why a row must not decide anything about a quantity; nil where it may.
func unfit(r *data.Row, what data.Quantity) data.Doubt {
	switch {
	case !representative(r, what):
		return OnlyEmulated{r.Treatment.Platform}
	case r.Trials == 0:
		return Unmeasured{r.Treatment}
	case r.Rounds == 0:
		return EveryTrialFailed{r.Treatment}
	case r.LoadShared:
		return NoValue{r.Treatment, data.SharedLoad{}}
	case r.Doubtful && what.Own():
		return WithinUnsteadiness{r.Treatment}
	}
	return nil
}

func (j *judge) term(by By, p pair) Term {
	t := Term{By: by, Of: p.x.Treatment, At: j.place(p.x)}
	if p.y != nil {
		t.To = p.y.Treatment
	}
	return t
}

// place is a row's workload, size and host, each as far as the studies have more than one.
func (j *judge) place(r *data.Row) Place {
	p := Place{Workload: r.Treatment.Workload, Params: map[string]string{}, Instance: r.Treatment.Instance.Name}
	for k, v := range r.Treatment.Assigned() {
		if j.varies[parameter{r.Treatment.Workload, k}] {
			p.Params[k] = v
		}
	}
	if r.Treatment.HostCores > 0 {
		p.HostCores = r.HostCores
	}
	if len(j.sum.Hosts) > 1 {
		p.Host = r.Host
	}
	return p
}

// variable finds the parameters that have several values.
func (j *judge) variable() {
	j.varies = map[parameter]bool{}
	first := map[parameter]string{}
	for _, r := range j.sum.Rows {
		for k, v := range r.Treatment.Assigned() {
			key := parameter{r.Treatment.Workload, k}
			if known, there := first[key]; !there {
				first[key] = v
			} else if known != v {
				j.varies[key] = true
			}
		}
	}
}

// known is the selector with those parameters that its workloads are known to have: of several workloads each chooses by its
// own, and which they are only what was measured, or left out, says. It chooses the same rows.
func (j *judge) known(s Selector) Selector {
	has := func(k string) bool {
		of := func(t notebook.Treatment) bool {
			_, there := t.Assigned()[k]
			return there && oneOf(s.Workload, t.Workload)
		}
		return slices.ContainsFunc(j.sum.Rows, func(r *data.Row) bool { return of(r.Treatment) }) ||
			slices.ContainsFunc(j.sum.LeftOut, func(l data.LeftOut) bool { return of(l.Treatment) })
	}
	params := map[string]Values{}
	for k, v := range s.Params {
		if has(k) {
			params[k] = v
		}
	}
	s.Params = params
	return s
}

// absence is why no comparison of the treatments that s chooses could be made.
func (j *judge) absence(s Selector, what data.Quantity) []Gap {
	// What no folder can have because of its host comes first: nothing else would help.
	if s.HostCores != nil {
		here := j.hostCores()
		if !slices.ContainsFunc(here, func(n int) bool { return s.HostCores.has(float64(n)) }) {
			return []Gap{lacks(NeedsHostCores{*s.HostCores, here})}
		}
	}
	if s.CHR != nil {
		bare := s
		bare.CHR = nil
		here := data.Distinct(j.rows(bare), func(r *data.Row) float64 { return r.CHR })
		if len(here) > 0 && !slices.ContainsFunc(here, s.CHR.has) {
			return []Gap{lacks(NeedsCHR{bare, *s.CHR, here})}
		}
	}
	if rows := j.rows(s); len(rows) > 0 {
		// Measured in earnest somewhere, though not where it could be compared.
		if slices.ContainsFunc(rows, func(r *data.Row) bool { return unfit(r, what) == nil }) {
			return nil
		}
		var why []Gap
		for _, r := range rows {
			why = add(why, lacks(unfit(r, what)))
		}
		return why
	}
	if why := j.leavesOut(s); why != "" {
		return []Gap{lacks(PaperLeavesOut{s, why})}
	}
	var why []Gap
	for _, l := range j.sum.LeftOut {
		h := j.sum.HostNamed(l.Host)
		cores, chr := h.Cores(l.Treatment), h.CHR(l.Treatment)
		if s.has(l.Treatment, cores, chr) && j.excluded(l.Treatment, cores, chr) == "" {
			why = add(why, Gap{&l.Treatment, data.Omitted{Reason: l.Reason}})
		}
	}
	if why != nil {
		return why
	}
	if s.Cores != nil || len(s.Instance) > 0 {
		free := s
		free.Cores, free.Instance, free.CHR = nil, nil, nil
		has := data.Distinct(j.rows(free), func(r *data.Row) string { return r.Treatment.Instance.Name })
		if len(has) > 0 {
			return []Gap{lacks(NeedsSize{s, has})}
		}
	}
	return []Gap{lacks(NotStudied{s})}
}

// leavesOut is why the paper leaves out all that was measured of what s chooses; empty where it does not, or where
// nothing was.
func (j *judge) leavesOut(s Selector) (why string) {
	if len(j.rows(s)) > 0 {
		return ""
	}
	for _, r := range j.sum.Rows {
		if s.hasRow(r) {
			why = j.excluded(r.Treatment, r.HostCores, r.CHR)
		}
	}
	return why
}

// hostCores are the numbers of cores that hosts had online.
func (j *judge) hostCores() []int {
	var all []int
	for _, r := range j.sum.Rows {
		all = append(all, r.HostCores)
	}
	for _, h := range j.sum.Hosts {
		all = append(all, len(h.CPUs))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(n int) bool { return n == 0 })
}
