package ladder

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// most is how many of the rungs that cost something a sentence names.
const most = 3

// sentence says by rules what costs most. It names as a cost only what is told from none.
func (c *Staircase) sentence() string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	var ranked, dear, cheap []*Rung
	doubtful, failing, emulated := 0, 0, 0
	for i := range c.Rungs {
		r := &c.Rungs[i]
		switch {
		case r.Kind == BareMetal || r.Kind == Again || !r.Measured():
			continue
		case r.Emulated:
			emulated++
		case r.Failing:
			failing++
		case r.Doubtful:
			doubtful++
		}
		if !r.Ranked || r.Kind == VM || r.Kind == ContainerInVM {
			continue
		}
		ranked = append(ranked, r)
		switch {
		case r.Told && r.Own.Value > 1:
			dear = append(dear, r)
		case r.Told:
			cheap = append(cheap, r)
		}
	}
	slices.SortStableFunc(dear, func(a, b *Rung) int {
		if a.Own.Value > b.Own.Value {
			return -1
		}
		return 1
	})
	switch {
	case len(ranked) == 0:
		say("of no rung can a cost of its own be told: none has an interval that may be trusted")
	case len(dear) == 0:
		widest := slices.MaxFunc(ranked, func(a, b *Rung) int {
			switch {
			case a.Own.High > b.Own.High:
				return 1
			case a.Own.High < b.Own.High:
				return -1
			}
			return 0
		})
		say("no rung of %d has a cost of its own that can be told from none when all are judged at once (more rounds tell more); the most that an interval leaves room for is %s times the rung below, at %s", len(ranked), number(widest.Own.High, 2), widest.Together())
	default:
		say("%s", c.dearest(dear, len(ranked)))
	}
	for _, r := range cheap {
		say("%s is faster than the rung below: %s", r.Together(), c.times(r.Own))
	}
	if t := c.Top(); t >= 0 && c.Rungs[t].Ratio.HasInterval() && !c.Rungs[t].shaky {
		r := &c.Rungs[t]
		what := "all layers together"
		if r.Name != notebook.Layers[len(notebook.Layers)-1] {
			what = "all layers up to " + r.Name
		}
		switch {
		case r.Ratio.Contains(1):
			say("%s have no cost that can be told from none: %s times bare metal", what, c.times(r.Ratio))
		default:
			say("%s cost %s times bare metal", what, c.times(r.Ratio))
		}
	}
	for i := range c.Rungs {
		r := &c.Rungs[i]
		if !r.Ranked || r.Kind != VM && r.Kind != ContainerInVM {
			continue
		}
		what, than := "a VM", "bare metal"
		if r.Kind == ContainerInVM {
			what, than = "a container in a VM", "the VM"
		}
		if r.Told {
			say("%s costs %s times %s", what, c.times(r.Own), than)
		} else {
			say("%s has no cost over %s that can be told from none: %s", what, than, c.times(r.Own))
		}
	}
	if emulated > 0 {
		say("what was emulated says nothing of a VM’s cost and is not ranked")
	}
	if doubtful > 0 {
		say("%s left aside, because bare metal differed from itself by as much", rungs(doubtful, "is", "are"))
	}
	if failing > 0 {
		say("%s left aside, because too many trials failed", rungs(failing, "is", "are"))
	}
	return c.where() + ": " + strings.Join(parts, "; ") + "."
}

func rungs(n int, one, many string) string {
	if n == 1 {
		return "1 rung " + one
	}
	return fmt.Sprintf("%d rungs %s", n, many)
}

// dearest names the rungs that cost most, the dearest first.
func (c *Staircase) dearest(dear []*Rung, of int) string {
	// Those whose intervals reach into the first's cannot be told from it.
	tied := 1
	for tied < len(dear) && dear[tied].Own.High >= dear[0].Own.Low {
		tied++
	}
	names := func(list []*Rung) string {
		var n []string
		for _, r := range list {
			n = append(n, r.Together())
		}
		if len(n) == 1 {
			return n[0]
		}
		return strings.Join(n[:len(n)-1], ", ") + " and " + n[len(n)-1]
	}
	figures := func(list []*Rung) string {
		var n []string
		for _, r := range list {
			n = append(n, c.times(r.Own))
		}
		return strings.Join(n, ", ")
	}
	var b strings.Builder
	switch {
	case of == 1:
		fmt.Fprintf(&b, "%s costs %s times the rung below", names(dear), figures(dear))
	case tied == 1:
		fmt.Fprintf(&b, "of %d rungs %s costs most, %s times the rung below", of, names(dear[:1]), figures(dear[:1]))
	case tied <= most:
		fmt.Fprintf(&b, "of %d rungs %s cost most and cannot be told apart: %s times the rung below", of, names(dear[:tied]), figures(dear[:tied]))
	default:
		fmt.Fprintf(&b, "of %d rungs %d cost most and cannot be told apart, among them %s: %s times the rung below", of, tied, names(dear[:most]), figures(dear[:most]))
	}
	rest := dear[tied:]
	switch {
	case len(rest) == 0 && tied == of:
	case len(rest) == 0:
		b.WriteString("; no other’s cost can be told from none")
	case len(rest) <= most:
		fmt.Fprintf(&b, "; then %s, %s", names(rest), figures(rest))
	default:
		fmt.Fprintf(&b, "; then %s, %s, and %d more that cost less", names(rest[:1]), figures(rest[:1]), len(rest)-1)
	}
	return b.String()
}

// where says which staircase it is.
func (c *Staircase) where() string {
	w := c.Workload
	if len(c.Params) > 0 {
		var p []string
		for _, k := range slices.Sorted(maps.Keys(c.Params)) {
			p = append(p, k+" "+c.Params[k])
		}
		w += " (" + strings.Join(p, ", ") + ")"
	}
	w += " at " + c.Instance.Name
	if c.Made != "" {
		w += ", " + c.Made
	}
	return w
}

// times writes a quotient with its interval: "1.20 (1.15 to 1.25)".
func (c *Staircase) times(q stats.Quotient) string {
	low := data.Floor(c.Metric, q.Low)
	d := 2
	if half := (q.High - low) / 2; half > 0 && half < 0.01 {
		d = min(4, int(math.Ceil(-math.Log10(half))))
	}
	return number(q.Value, d) + " (" + number(low, d) + " to " + number(q.High, d) + ")"
}

func number(v float64, d int) string { return strconv.FormatFloat(v, 'f', d, 64) }

// CSV writes the staircase as a table: a line for each rung, gaps included. What is not known is empty.
func (c *Staircase) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	f := func(v float64) string {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	lines := [][]string{{"workload", "params", "instance", "host", "rung", "treatment", "rounds", "mean", "mean_low", "mean_high", "unit",
		"ratio", "ratio_low", "ratio_high", "rung_below", "own_rounds", "own", "own_low", "own_high", "own_with", "emulated", "doubtful", "told", "missing"}}
	for i := range c.Rungs {
		r := &c.Rungs[i]
		mean, low, high, id, n := math.NaN(), math.NaN(), math.NaN(), r.Treatment.ID, 0
		if r.Row != nil {
			mean, low, high, n = r.Row.Mean, r.Row.MeanLow, r.Row.MeanHigh, r.Row.Rounds
		}
		below := ""
		if r.Below >= 0 {
			below = c.Rungs[r.Below].Name
		}
		lines = append(lines, []string{c.Workload, notebook.Label("", c.Params), c.Instance.Name, c.Host, r.Name, id, strconv.Itoa(n), f(mean), f(low), f(high), c.Metric.Unit,
			f(r.Ratio.Value), f(r.Ratio.Low), f(r.Ratio.High), below, strconv.Itoa(r.Own.N), f(r.Own.Value), f(r.Own.Low), f(r.Own.High), strings.Join(r.With, " "),
			strconv.FormatBool(r.Emulated), strconv.FormatBool(r.Doubtful), strconv.FormatBool(r.Told), r.Missing})
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("writing a staircase as CSV: %w", err)
	}
	return nil
}
