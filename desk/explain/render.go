package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// intervalJSON is a figure with its interval as JSON has it; null where unknown.
type intervalJSON struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	N     int      `json:"n"` // rounds
}

func number(f float64) *float64 {
	if !finite(f) {
		return nil
	}
	return &f
}

func estimateJSON(e stats.Estimate) intervalJSON {
	return intervalJSON{number(e.Value), number(e.Low), number(e.High), e.N}
}

func quotientJSON(q stats.Quotient) intervalJSON {
	return intervalJSON{number(q.Value), number(q.Low), number(q.High), q.N}
}

type partJSON struct {
	Key     string        `json:"key"`
	Label   string        `json:"name"`
	Seconds intervalJSON  `json:"seconds"`
	Share   *intervalJSON `json:"share,omitempty"` // of the gap; parts have it
}

type figureJSON struct {
	Name     string        `json:"name"`
	Unit     string        `json:"unit"`
	Help     string        `json:"help"`
	Mean     intervalJSON  `json:"mean"` // of a trial
	Total    *float64      `json:"total"`
	Baseline *intervalJSON `json:"baseline"`
	More     *intervalJSON `json:"more"` // than the baseline
}

type accountJSON struct {
	Treatment    string                  `json:"treatment"`
	Label        string                  `json:"name"`
	Host         string                  `json:"host"`
	Workload     string                  `json:"workload"`
	Params       map[string]string       `json:"params"`
	Platform     string                  `json:"platform"`
	Engine       *string                 `json:"engine"`
	Accelerator  *string                 `json:"accelerator"`
	Provisioning *string                 `json:"provisioning"`
	Instance     string                  `json:"instance"`
	Network      *string                 `json:"network"`
	Isolation    *string                 `json:"isolation"`
	HostCores    int                     `json:"host_cores"`
	AA           bool                    `json:"aa"`
	Emulated     bool                    `json:"emulated"`
	Coarse       bool                    `json:"coarse"`
	Doubtful     bool                    `json:"doubtful"`
	Baseline     *string                 `json:"baseline"`
	Against      *string                 `json:"against"`
	Rounds       int                     `json:"rounds"`
	Explained    int                     `json:"explained_trials"`
	Failed       int                     `json:"failed"`
	Elapsed      intervalJSON            `json:"elapsed_s"`
	Times        intervalJSON            `json:"times"`
	Gap          intervalJSON            `json:"gap_s"`
	HasGap       bool                    `json:"has_gap"`
	Parts        []partJSON              `json:"parts"`
	Fine         []partJSON              `json:"fine"`
	Spent        []partJSON              `json:"spent"`
	ProbeCost    intervalJSON            `json:"probe_cost"`
	Missing      map[string]string       `json:"missing"`
	Lost         int64                   `json:"lost_events"`
	Figures      []figureJSON            `json:"figures"`
	Spread       []notebook.Distribution `json:"spread"`
	Inside       []notebook.Distribution `json:"inside"`
	Stacks       []notebook.Stack        `json:"stacks"`
	Sentence     string                  `json:"sentence"`
	Notes        []string                `json:"notes"`
}

func word(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// list is never null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func partsJSON(parts []Part) []partJSON {
	all := []partJSON{}
	for _, p := range parts {
		share := quotientJSON(p.Share)
		all = append(all, partJSON{p.Key, p.Label, estimateJSON(p.Seconds), &share})
	}
	return all
}

// MarshalJSON writes the account as `tare explain --format json` promises it. What is not known is null.
func (a Account) MarshalJSON() ([]byte, error) {
	t := a.Row.Treatment
	out := accountJSON{
		Treatment: t.ID, Label: a.Label, Host: a.Row.Host, Workload: t.Workload, Params: t.Params, Platform: t.Platform, Engine: word(t.Engine), Accelerator: word(t.Accelerator),
		Provisioning: word(t.Provisioning), Instance: t.Instance.Name, Network: word(t.Network), Isolation: word(t.Isolation), HostCores: a.Row.HostCores, AA: t.AA,
		Emulated: a.Emulated, Coarse: a.Coarse, Doubtful: a.Doubtful, Against: word(a.Against), Rounds: a.Rounds, Explained: a.Explained, Failed: a.Failed,
		Elapsed: estimateJSON(a.Elapsed), Times: quotientJSON(a.Times), Gap: estimateJSON(a.Gap), HasGap: a.HasGap(), Parts: partsJSON(a.Parts), Fine: partsJSON(a.Fine),
		Spent: []partJSON{}, ProbeCost: quotientJSON(a.ProbeCost), Missing: a.Missing, Lost: a.Lost, Figures: []figureJSON{},
		Spread: list(a.Spread), Inside: list(a.Inside), Stacks: list(a.Stacks), Sentence: a.Sentence, Notes: list(a.Notes),
	}
	if out.Params == nil {
		out.Params = map[string]string{}
	}
	if a.Baseline != nil {
		out.Baseline = &a.Baseline.Treatment.ID
	}
	for _, s := range a.Spent {
		out.Spent = append(out.Spent, partJSON{Key: s.Key, Label: s.Label, Seconds: estimateJSON(s.Seconds)})
	}
	for _, f := range a.Figures {
		j := figureJSON{Name: f.Name, Unit: f.Unit, Help: f.Help, Mean: estimateJSON(f.Mean), Total: number(f.Total)}
		if f.Before.N > 0 {
			before, more := estimateJSON(f.Before), estimateJSON(f.More)
			j.Baseline, j.More = &before, &more
		}
		out.Figures = append(out.Figures, j)
	}
	return json.Marshal(out)
}

// JSON writes all that is known as one object.
func (as *Accounts) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Accounts []Account `json:"accounts"`
		Versus   []Account `json:"versus"`
		Notes    []string  `json:"notes"`
	}{list(as.Accounts), list(as.Versus), list(as.Notes)})
}

// Colours of a terminal. Nothing is said by colour alone.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// page is a text for a terminal in the making.
type page struct {
	b      strings.Builder
	width  int
	colour bool
	notes  []string // of the accounts, each once
	partly []string // what is to be known of the probes' figures, each once
}

func (p *page) line(s string) { p.b.WriteString(strings.TrimRight(s, " ") + "\n") }

func (p *page) paint(how, s string) string {
	if !p.colour {
		return s
	}
	return how + s + reset
}

// wrap writes text in the width, its lines after the first under the end of head.
func (p *page) wrap(head, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	line, n := head, 0
	for w := range strings.FieldsSeq(text) {
		w = data.Printable(w)
		if n > 0 && p.width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > p.width {
			p.line(line)
			line, n = indent, 0
		}
		if n > 0 {
			line += " "
		}
		line += w
		n++
	}
	p.line(line)
}

// Table writes the accounts for a terminal of so many columns (0: as many as it takes): for each treatment its sentence,
// the table of its parts, which sums to the gap, what the probes cost, and every doubt. With colour, headings are bold
// and parts that cannot be told from nothing are dim; their intervals say the same.
func (as *Accounts) Table(w io.Writer, width int, colour bool) error {
	p := &page{width: width, colour: colour}
	place := ""
	for i := range as.Accounts {
		a := &as.Accounts[i]
		if i > 0 {
			p.line("")
		}
		if a.Place != place {
			place = a.Place
			p.line(p.paint(bold, place))
			p.line("")
		}
		p.account(a)
	}
	if len(as.Versus) > 0 {
		p.line("")
		p.line(p.paint(bold, "Vanilla against pinned"))
		for i := range as.Versus {
			a := &as.Versus[i]
			p.line("")
			p.wrap("", a.Sentence)
			p.parts(a)
		}
	}
	if len(p.notes) > 0 {
		p.line("")
	}
	for i, n := range p.notes {
		p.wrap(fmt.Sprintf("[%d] ", i+1), n)
	}
	if len(p.partly) > 0 {
		p.line("")
		p.line(p.paint(bold, "Of the probes' figures, which --format json has"))
		for _, n := range p.partly {
			p.wrap("  ", n)
		}
	}
	if len(as.Notes) > 0 {
		p.line("")
		p.line(p.paint(bold, "Notes"))
		for _, n := range as.Notes {
			p.wrap("  ", n)
		}
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) account(a *Account) {
	p.wrap("", a.Sentence)
	if a.Baseline != nil && len(a.Parts) > 0 {
		p.parts(a)
	} else {
		p.spent(a)
	}
	line := a.probes()
	var marks []int
	for _, n := range a.Notes {
		if probe, what, is := strings.Cut(n, inPart); is && probe != "the probe "+notebook.ProbeScheduler {
			// Of figures that this table does not have, and the same for nearly every account.
			if s := strings.TrimPrefix(probe, "the probe ") + ": " + what; !slices.Contains(p.partly, s) {
				p.partly = append(p.partly, s)
			}
			continue
		}
		if strings.HasPrefix(n, ofLost) {
			continue // said in the line
		}
		i := slices.Index(p.notes, n)
		if i < 0 {
			i = len(p.notes)
			p.notes = append(p.notes, n)
		}
		marks = append(marks, i+1)
	}
	if slices.Sort(marks); len(marks) > 0 {
		line += " " + strings.ReplaceAll(fmt.Sprint(marks), " ", ",")
	}
	p.wrap("  ", line)
}

// probes says what the probes cost, and what they saw it in.
func (a *Account) probes() string {
	if a.Explained == a.Failed {
		return data.Count(a.Explained, "explained trial") + ", all failed"
	}
	s := fmt.Sprintf("%s, %s", data.Count(a.Explained-a.Failed, "explained trial"), data.Count(a.Rounds, "round"))
	if a.Lost > 0 {
		s += ", " + data.Count(int(min(a.Lost, math.MaxInt32)), "event") + " lost"
	}
	if a.ProbeCost.HasInterval() {
		s += "; with the probes it took " + times(a.ProbeCost, "as long")
		if a.ProbeCost.High < 1 {
			s += ", which is chance: probes make nothing faster"
		}
		return s
	}
	return s + "; what the probes cost is not known"
}

// row is a line of a table of parts.
type row struct {
	label, seconds, half, share, of string
	size                            float64 // seconds, of its bar
	dim                             bool
}

// parts writes the account's table: each part with its interval, and the gap that they sum to.
func (p *page) parts(a *Account) {
	decimals, by, name := digits(a)
	var rows []row
	for _, x := range a.Parts {
		r := row{label: x.Label, size: x.Seconds.Value, dim: !x.Told()}
		r.seconds, r.half = amount(x.Seconds, decimals, by)
		if finite(x.Share.Value) {
			r.share = percent(x.Share.Value)
			if x.Share.HasInterval() {
				r.of = hundredths(x.Share.Low) + " to " + hundredths(x.Share.High)
			}
		}
		rows = append(rows, r)
	}
	gap := row{label: "gap to " + a.Against, size: a.Gap.Value}
	gap.seconds, gap.half = amount(a.Gap, decimals, by)
	if a.HasGap() {
		gap.share = percent(1)
	}
	p.grid([]string{name, "95 %", "of the gap", "95 %"}, append(rows, gap))
}

// spent writes what a treatment's own time went on, where there is nothing to compare with.
func (p *page) spent(a *Account) {
	all := 0.0
	for _, s := range a.Spent {
		all += s.Seconds.Value
	}
	if !(all > 0) {
		return
	}
	decimals, by, name := digits(a)
	var rows []row
	for _, s := range a.Spent {
		if s.Seconds.Value == 0 {
			continue
		}
		r := row{label: s.Label, share: percent(s.Seconds.Value / all), size: s.Seconds.Value}
		r.seconds, r.half = amount(s.Seconds, decimals, by)
		rows = append(rows, r)
	}
	p.grid([]string{name, "95 %", "of the time", ""}, rows)
}

// digits is how an account's seconds are written: with so many decimals, in that unit, which has so many in a second. The
// widest interval deserves two digits, so that all lines have as many and their sum can be checked.
func digits(a *Account) (decimals int, by float64, name string) {
	all := []stats.Estimate{a.Gap}
	for _, p := range a.Parts {
		all = append(all, p.Seconds)
	}
	if len(a.Parts) == 0 {
		for _, s := range a.Spent {
			all = append(all, s.Seconds)
		}
	}
	size, half := 0.0, 0.0
	for _, e := range all {
		if finite(e.Value) {
			size = max(size, math.Abs(e.Value))
		}
		if e.HasInterval() {
			half = max(half, (e.High-e.Low)/2)
		}
	}
	name, by = scale(max(size, half))
	least := half * by
	if !(least > 0) {
		least = max(size*by/100, 1e-9)
	}
	return min(max(1-int(math.Floor(math.Log10(least))), 0), 6), by, name
}

// amount writes a time and the half width of its interval.
func amount(e stats.Estimate, decimals int, by float64) (value, half string) {
	if !finite(e.Value) {
		return "-", ""
	}
	value = unsigned(fmt.Sprintf("%.*f", decimals, e.Value*by))
	if !e.HasInterval() {
		return value, "none"
	}
	return value, fmt.Sprintf("±%.*f", decimals, (e.High-e.Low)/2*by)
}

// Widths of the bars that stand beside the parts where the terminal is wide enough.
const (
	leastBar = 10
	mostBar  = 30
)

// grid writes the rows: a column for each heading, and bars in what is left of the width.
func (p *page) grid(heads []string, rows []row) {
	cells := [][]string{append([]string{""}, heads...)}
	for _, r := range rows {
		cells = append(cells, []string{r.label, r.seconds, r.half, r.share, r.of})
	}
	var widths [5]int
	for _, c := range cells {
		for i := range c {
			widths[i] = max(widths[i], utf8.RuneCountInString(c[i]))
		}
	}
	gaps := [5]int{2, 2, 1, 2, 1}
	n := len(widths)
	total := func() (t int) {
		for i := range n {
			t += gaps[i] + widths[i]
		}
		return t
	}
	if p.width > 0 && total() > p.width {
		n-- // the shares' intervals go first
	}
	bar := mostBar
	if p.width > 0 {
		bar = min(p.width-total()-2, mostBar)
	}
	for i, c := range cells {
		var b strings.Builder
		for j := range n {
			b.WriteString(strings.Repeat(" ", gaps[j]))
			pad := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(c[j]))
			if j == 1 || j == 3 {
				b.WriteString(pad + c[j])
			} else {
				b.WriteString(c[j] + pad)
			}
		}
		if i > 0 && bar >= leastBar {
			b.WriteString("  " + rows[i-1].bar(rows, bar))
		}
		l := strings.TrimRight(b.String(), " ")
		switch {
		case i == 0:
			l = p.paint(bold, l)
		case rows[i-1].dim:
			l = p.paint(dim, l)
		}
		p.line(l)
	}
}

// bar draws a row's size in so many columns, from a zero that all rows share: = to the right of it, - to the left.
func (r row) bar(rows []row, width int) string {
	low, high := 0.0, 0.0
	for _, o := range rows {
		if finite(o.size) {
			low, high = min(low, o.size), max(high, o.size)
		}
	}
	if !(high-low > 0) || !finite(r.size) {
		return ""
	}
	at := func(v float64) int { return int(math.Round((v - low) / (high - low) * float64(width-1))) }
	zero := at(0)
	if r.size < 0 {
		return strings.Repeat(" ", at(r.size)) + strings.Repeat("-", zero-at(r.size)) + "|"
	}
	return strings.Repeat(" ", zero) + "|" + strings.Repeat("=", at(r.size)-zero)
}
