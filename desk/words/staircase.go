package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/notebook"
	"tare/stats"
)

// layers are the ladder's rungs in words.
var layers = map[string]string{
	notebook.BM: "bare metal", "cgroup": "control group", "quota": "CPU quota", "cpuset": "CPU set", "memory": "memory limit",
	"uts": "UTS namespace", "ipc": "IPC namespace", "pid": "PID namespace", "mount": "mount namespace", "network": "network namespace",
	"seccomp": "seccomp filter", "capabilities": "capabilities dropped", "overlay": "overlay root", "bridge": "bridge network",
	notebook.VM: "VM", notebook.VMCN: "container in VM",
}

// Layer names a layer of isolation, bare metal, or a VM in words: "control group".
func Layer(name string) string { return cmp.Or(layers[name], name) }

// LadderRung names a rung in words: "control group", "docker container".
func LadderRung(r *ladder.Rung) string {
	name := strings.TrimSuffix(r.Name, strings.Join(append([]string{""}, r.Apart...), " "))
	switch r.Kind {
	case ladder.Again:
		name = "bare metal again (A/A)"
	case ladder.Engine:
		name += " container"
	default:
		name = Layer(name)
	}
	return strings.Join(append([]string{name}, r.Apart...), ", ")
}

// Together names the layers that a rung's own cost is of: "network namespace" or "network to bridge".
func Together(r *ladder.Rung) string {
	if len(r.With) == 0 {
		return LadderRung(r)
	}
	if r.Kind == ladder.Layer && len(r.With) > 1 {
		return fmt.Sprintf("%s to %s together (%d layers)", r.With[0], r.Name, len(r.With)+1)
	}
	return LadderRung(r) + " with " + strings.Join(r.With, ", ")
}

// mostRungs is how many of the rungs that cost something a sentence names.
const mostRungs = 3

// Staircase says by rules what costs most. It names as a cost only what is significant.
func Staircase(c *ladder.Staircase) string {
	parts := slices.Concat(layerCosts(c), wholeCost(c), singleLayers(c.Model), sumsOfLayers(c.Model), machineCosts(c), notTrusted(c))
	place := Work(c.Work()) + " at " + c.Instance.Name
	if c.OtherImages {
		place += ", " + Digests(c.Image)
	}
	if c.Metric.MoreIsBetter() {
		place += ", " + CostOf(c.Metric)
	}
	return place + ": " + strings.Join(parts, "; ") + "."
}

// ofVM says whether a rung is a VM, or in one.
func ofVM(r *ladder.Rung) bool { return r.Kind == ladder.VM || r.Kind == ladder.ContainerInVM }

// layerCosts say what rungs of containers cost over the rung below: those that cost most, and those that make the work faster.
func layerCosts(c *ladder.Staircase) (parts []string) {
	var ranked, expensive, cheap []*ladder.Rung
	for _, r := range c.Rungs {
		if r.Kind == ladder.BareMetal || r.Kind == ladder.Again || !r.Measured() || !r.Ranked || ofVM(r) {
			continue
		}
		ranked = append(ranked, r)
		switch {
		case r.Significant && r.Own.Value > 1:
			expensive = append(expensive, r)
		case r.Significant:
			cheap = append(cheap, r)
		}
	}
	slices.SortStableFunc(expensive, func(a, b *ladder.Rung) int { return cmp.Compare(b.Own.Value, a.Own.Value) })
	switch {
	case len(ranked) == 0:
		parts = append(parts, "no rung has an interval that can be trusted, so no rung is shown to cost anything")
	case len(expensive) == 0:
		widest := slices.MaxFunc(ranked, func(a, b *ladder.Rung) int { return cmp.Compare(a.Own.High, b.Own.High) })
		parts = append(parts, fmt.Sprintf("none of %d rungs is distinguishable from the rung below it, corrected for testing all of them; the upper limit of any is %s times the rung below, at %s", len(ranked), Number(widest.Own.High, 2), Together(widest)))
	default:
		parts = append(parts, costliest(c, expensive, len(ranked)))
	}
	better := "faster"
	if c.Metric.MoreIsBetter() {
		better = "better"
	}
	for _, r := range cheap {
		parts = append(parts, fmt.Sprintf("%s is %s than the rung below: %s", Together(r), better, rungTimes(c, r.Own)))
	}
	return parts
}

// wholeCost says what all layers cost together, where that can be said.
func wholeCost(c *ladder.Staircase) []string {
	t := c.Top()
	if t < 0 || !c.Rungs[t].Ratio.HasInterval() || c.Rungs[t].Shaky {
		return nil
	}
	r := c.Rungs[t]
	what := "all layers together"
	if r.Name != notebook.Layers[len(notebook.Layers)-1] {
		what = "all layers up to " + r.Name
	}
	if r.Ratio.Contains(1) {
		return []string{what + " are not distinguishable from bare metal: " + rungTimes(c, r.Ratio) + " times it"}
	}
	return []string{what + " cost " + rungTimes(c, r.Ratio) + " times bare metal"}
}

// singleLayers say what layers cost or save when a container has only the one, by the model: those that surely change the time, and most of them.
func singleLayers(m *ladder.Additive) []string {
	if m == nil {
		return nil
	}
	const sure = 0.95
	var changing []ladder.LayerCost
	for _, c := range m.Costs {
		if c.Probability > sure {
			changing = append(changing, c)
		}
	}
	if len(changing) == 0 {
		return []string{"no single layer is shown to change the time"}
	}
	slices.SortStableFunc(changing, func(a, b ladder.LayerCost) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	said := make([]string, 0, mostRungs)
	for _, c := range changing[:min(mostRungs, len(changing))] {
		does := "costs"
		v, low, high, saves := unsigned(100*c.Value, 100*c.Low, 100*c.High)
		if saves {
			does = "saves"
		}
		said = append(said, fmt.Sprintf("%s %s %s", Layer(c.Layer), does, Measured(v, low, high, "%")))
	}
	if more := len(changing) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more less than these", more))
	}
	return []string{"over only a control group, by the model of single layers, " + strings.Join(said, ", ")}
}

// sumsOfLayers say how well the costs of single layers predict the rungs, and where layers cost more or less together than each by itself.
func sumsOfLayers(m *ladder.Additive) []string {
	if m == nil || len(m.Sums) == 0 {
		return nil
	}
	inside := 0
	first := -1
	for i, s := range m.Sums {
		if s.Inside() {
			inside++
		}
		if first < 0 && s.Interacts {
			first = i
		}
	}
	said := fmt.Sprintf("the costs of single layers add up to what %d of %s cost", inside, Count(len(m.Sums), "rung"))
	if first < 0 {
		return []string{said}
	}
	s := m.Sums[first]
	than := "more"
	v, low, high, less := unsigned(100*s.Excess, 100*s.ExcessLow, 100*s.ExcessHigh)
	if less {
		than = "less"
	}
	return []string{said, fmt.Sprintf("from %s on, layers cost %s %s together than the sum of their own costs", LadderRung(s.Rung), Measured(v, low, high, "%"), than)}
}

// machineCosts say what VMs cost over bare metal, and containers in them over the VM.
func machineCosts(c *ladder.Staircase) (parts []string) {
	for _, r := range c.Rungs {
		if !r.Ranked || !ofVM(r) {
			continue
		}
		what, than := "a VM", "bare metal"
		if r.Kind == ladder.ContainerInVM {
			what, than = "a container in a VM", "the VM"
		}
		if r.Significant {
			parts = append(parts, what+" costs "+rungTimes(c, r.Own)+" times "+than)
		} else {
			parts = append(parts, what+" is not distinguishable from "+than+": "+rungTimes(c, r.Own)+" times it")
		}
	}
	return parts
}

// notTrusted say which rungs are not ranked, and why.
func notTrusted(c *ladder.Staircase) (parts []string) {
	doubtful, failing, emulated := 0, 0, 0
	for _, r := range c.Rungs {
		switch {
		case r.Kind == ladder.BareMetal || r.Kind == ladder.Again || !r.Measured():
		case r.Emulated:
			emulated++
		case r.Failing:
			failing++
		case r.Doubtful:
			doubtful++
		}
	}
	if emulated > 0 {
		parts = append(parts, "emulated VMs do not represent a VM’s cost and are not ranked")
	}
	if doubtful > 0 {
		parts = append(parts, was(doubtful, "rung")+" not ranked: the difference is within the A/A noise")
	}
	if failing > 0 {
		parts = append(parts, was(failing, "rung")+" not ranked: too many runs failed")
	}
	return parts
}

// costliest names the rungs that cost most, the most expensive first.
func costliest(c *ladder.Staircase, expensive []*ladder.Rung, of int) string {
	// Those whose intervals reach into the first's are not distinguishable from it.
	tied := 1
	for tied < len(expensive) && expensive[tied].Own.High >= expensive[0].Own.Low {
		tied++
	}
	named := func(rungs []*ladder.Rung) (string, string) {
		var names, figures []string
		for _, r := range rungs {
			names, figures = append(names, Together(r)), append(figures, rungTimes(c, r.Own))
		}
		return List(names), strings.Join(figures, ", ")
	}
	most, times := named(expensive[:min(tied, mostRungs)])
	said := ""
	switch {
	case of == 1:
		return fmt.Sprintf("%s costs %s times the rung below", most, times)
	case tied == 1:
		said = fmt.Sprintf("of %d rungs, %s costs most, %s times the rung below", of, most, times)
	case tied <= mostRungs:
		said = fmt.Sprintf("of %d rungs, %s cost most and are not distinguishable from each other: %s times the rung below", of, most, times)
	default:
		said = fmt.Sprintf("of %d rungs, %d cost most and are not distinguishable from each other, among them %s: %s times the rung below", of, tied, most, times)
	}
	rest := expensive[tied:]
	switch {
	case len(rest) == 0 && tied == of:
	case len(rest) == 0:
		said += "; no other is distinguishable from the rung below it"
	case len(rest) <= mostRungs:
		then, times := named(rest)
		said += fmt.Sprintf("; then %s, %s", then, times)
	default:
		then, times := named(rest[:1])
		said += fmt.Sprintf("; then %s, %s, and %d more that cost less", then, times, len(rest)-1)
	}
	return said
}

// rungTimes writes a rung's quotient with its interval: "1.20 (1.15 to 1.25)".
func rungTimes(c *ladder.Staircase, q stats.Quotient) string {
	return Interval(q.Value, data.Floor(c.Metric, q.Low), q.High)
}
