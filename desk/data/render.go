package data

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/notebook"
)

// alsoJSON is a further figure as JSON has it.
type alsoJSON struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Mean   *float64 `json:"mean"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	Rounds int      `json:"rounds"`
}

// MarshalJSON writes the row as `tare summary --format json` promises it. What is not known is null.
func (r Row) MarshalJSON() ([]byte, error) {
	number := func(f float64) *float64 {
		if !finite(f) {
			return nil
		}
		return &f
	}
	word := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	var also []alsoJSON
	for _, a := range r.Also {
		also = append(also, alsoJSON{a.Metric.Name, a.Metric.Unit, number(a.Mean), number(a.Low), number(a.High), a.Rounds})
	}
	params, notes := r.Treatment.Params, r.Notes
	if params == nil {
		params = map[string]string{}
	}
	if notes == nil {
		notes = []string{}
	}
	return json.Marshal(struct {
		Treatment      string            `json:"treatment"`
		Host           string            `json:"host"`
		Workload       string            `json:"workload"`
		Params         map[string]string `json:"params"`
		Platform       string            `json:"platform"`
		Engine         *string           `json:"engine"`
		Accelerator    *string           `json:"accelerator"`
		Provisioning   *string           `json:"provisioning"`
		Instance       string            `json:"instance"`
		Network        *string           `json:"network"`
		Isolation      *string           `json:"isolation"`
		HostCores      int               `json:"host_cores"`
		CHR            *float64          `json:"chr"`
		AA             bool              `json:"aa"`
		Metric         string            `json:"metric"`
		Unit           string            `json:"unit"`
		Guests         int               `json:"guests"`
		Trials         int               `json:"trials"`
		Failed         int               `json:"failed"`
		Mean           *float64          `json:"mean"`
		MeanLow        *float64          `json:"mean_low"`
		MeanHigh       *float64          `json:"mean_high"`
		Ratio          *float64          `json:"ratio"`
		RatioLow       *float64          `json:"ratio_low"`
		RatioHigh      *float64          `json:"ratio_high"`
		Also           []alsoJSON        `json:"also,omitempty"` // workloads with further figures have it
		Representative bool              `json:"representative"`
		Notes          []string          `json:"notes"`
	}{
		r.Treatment.ID, r.Host, r.Treatment.Workload, params, r.Treatment.Platform, word(r.Treatment.Engine), word(r.Treatment.Accelerator),
		word(r.Treatment.Provisioning), r.Treatment.Instance.Name, word(r.Treatment.Network), word(r.Treatment.Isolation), r.HostCores, number(r.CHR), r.Treatment.AA, r.Metric.Name, r.Metric.Unit, r.Guests, r.Trials, r.Failed,
		number(r.Mean), number(r.MeanLow), number(r.MeanHigh), number(r.Ratio), number(r.RatioLow), number(r.RatioHigh), also, r.Representative, notes,
	})
}

// JSON writes the rows as a JSON array, in the table's order.
func (s *Summary) JSON(w io.Writer) error {
	rows := []Row{}
	for _, t := range s.tables() {
		rows = append(rows, t...)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

// Colours of a terminal. Nothing is said by colour alone.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// Table writes the summary for a terminal of so many columns (0: as many as it takes): the answer, the table, and
// beneath it every doubt. With colour, headings are bold and what is not ranked is dim.
func (s *Summary) Table(w io.Writer, width int, colour bool) error {
	t := &table{width: width, colour: colour}
	t.wrap("", s.Sentence)
	for _, g := range s.tables() {
		t.line("")
		t.rows(g, s)
		t.also(g, s)
	}
	t.footnotes()
	var lines []string
	for _, a := range s.AA {
		lines = append(lines, a.words(s.OnlineIn(a)))
	}
	t.list("A/A check, bare metal against itself", lines)
	lines = nil
	for _, r := range s.Ruler {
		where := notebook.Treatment{Platform: r.Platform, Engine: r.Engine, Accelerator: r.Accelerator}
		l := fmt.Sprintf("%s: %s for an empty process (%s to %s over %s), round trip %s", treatment(where), seconds(r.Median), seconds(r.Low), seconds(r.High), Count(r.Guests, "guest"), seconds(r.RoundTrip))
		if len(s.Hosts) > 1 {
			l = r.Host + ", " + l
		}
		lines = append(lines, l)
	}
	t.list("The ruler's own cost", lines)
	lines = nil
	for _, o := range s.Omissions() {
		what := s.leftOut(o.Of[0])
		if more := len(o.Of) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, what+": "+o.Reason)
	}
	t.list("Left out", lines)
	lines = nil
	for _, x := range s.Warnings {
		lines = append(lines, fmt.Sprintf("%s (%s of %s)", x.Text, Count(x.Count, "trial"), Count(len(x.Treatments), "treatment")))
	}
	t.list("Warnings", lines)
	t.list("Notes", s.Notes)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// Omission is a reason why treatments were left out, and which.
type Omission struct {
	Reason string
	Of     []LeftOut
}

// Omissions are what was left out, by reason, in the order in which the reasons came.
func (s *Summary) Omissions() []Omission {
	var all []Omission
	at := map[string]int{}
	for _, l := range s.LeftOut {
		i, known := at[l.Reason]
		if !known {
			i = len(all)
			at[l.Reason] = i
			all = append(all, Omission{Reason: l.Reason})
		}
		all[i].Of = append(all[i].Of, l)
	}
	return all
}

// leftOut is what was left out, in words.
func (s *Summary) leftOut(l LeftOut) string {
	what := l.Treatment.Workload + " " + treatment(l.Treatment) + " at " + l.Treatment.Instance.Name + " on " + l.Host
	if n := l.Treatment.HostCores; n > 0 {
		what += " with " + Count(n, "CPU")
	}
	if n := l.Treatment.Network; n != "" && s.Networks(l.Treatment.Workload) {
		what += ", network " + n
	}
	return what
}

// String is the check in words.
func (a AACheck) String() string { return a.words("") }

// words is the check in words, with how many of the host's CPUs were online where that is to be said.
func (a AACheck) words(online string) string {
	where := a.Workload
	if p := sortedParams(a.Params); p != "" {
		where += " (" + p + ")"
	}
	where += " at " + a.Instance.Name + " on " + a.Host
	if online != "" {
		where += " " + online
	}
	where += ": "
	switch a.Verdict {
	case Holds:
		return where + interval(a.Ratio, a.Low, a.High) + ", holds 1" + a.Unseen()
	case Misses:
		return where + interval(a.Ratio, a.Low, a.High) + ", misses 1: the host was too unsteady, or this is the one run in 20 that misses by chance; " + Count(len(a.Untrusted), "treatment") + " not to be trusted"
	}
	return where + "not known: too few rounds, or too unsteady ones, for an interval"
}

// Unseen says of a check that holds which differences are too small for it to see, to follow what is said of it: those
// of less than half of its interval's width. A wide interval holds 1 easily.
func (a AACheck) Unseen() string {
	half := 100 * (a.High - a.Low) / 2
	if a.Verdict != Holds || !finite(half) || half == 0 {
		return ""
	}
	decimals := 0
	if half < 10 {
		decimals = digits(half/10, 1)
	}
	return fmt.Sprintf("; it could not have seen less than ± %.*f %%", decimals, half)
}

// seconds writes a time in a unit that suits it.
func seconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// treatment writes platform, engine, provisioning, accelerator and isolation, each where it says something.
func treatment(t notebook.Treatment) string {
	parts := []string{t.Platform, t.Engine, t.Provisioning, t.Accelerator, Rung(t.Isolation)}
	if t.Platform == notebook.VM && t.Engine == "qemu" {
		parts[1] = "" // there is no other
	}
	if t.AA {
		parts = append(parts, "again (A/A)")
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// tables are the rows that share a heading: host, its CPUs online, workload, parameters, metric, image.
func (s *Summary) tables() [][]Row {
	var all [][]Row
	same := func(a, b *Row) bool {
		return a.HostID == b.HostID && a.HostCores == b.HostCores && a.Treatment.Workload == b.Treatment.Workload && sortedParams(a.Treatment.Params) == sortedParams(b.Treatment.Params) && a.Metric == b.Metric && a.Image == b.Image
	}
	for i := range s.Rows {
		at := slices.IndexFunc(all, func(t []Row) bool { return same(&t[0], &s.Rows[i]) })
		if at < 0 {
			at = len(all)
			all = append(all, nil)
		}
		all[at] = append(all[at], s.Rows[i])
	}
	return all
}

type table struct {
	b      strings.Builder
	width  int
	colour bool
	notes  []string // footnotes, each once
}

func (t *table) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// Printable makes what a results folder says safe for a terminal: a guest may have had a part in it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != ' ' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func (t *table) paint(how, s string) string {
	if !t.colour {
		return s
	}
	return how + s + reset
}

// wrap writes text in the width, its lines after the first under the end of head.
func (t *table) wrap(head, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	line, n := head, 0
	for _, word := range strings.Fields(text) {
		word = Printable(word)
		if n > 0 && t.width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > t.width {
			t.line(line)
			line, n = indent, 0
		}
		if n > 0 {
			line += " "
		}
		line += word
		n++
	}
	t.line(line)
}

func (t *table) list(head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.line("")
	t.line(t.paint(bold, head))
	for _, l := range lines {
		t.wrap("  ", l)
	}
}

// mark gives the footnote numbers of a row's notes.
func (t *table) mark(notes []string) string {
	var marks []string
	for _, n := range notes {
		i := slices.Index(t.notes, n)
		if i < 0 {
			i = len(t.notes)
			t.notes = append(t.notes, n)
		}
		marks = append(marks, fmt.Sprint(i+1))
	}
	if marks == nil {
		return ""
	}
	return "[" + strings.Join(marks, ",") + "]"
}

func (t *table) footnotes() {
	if len(t.notes) > 0 {
		t.line("")
	}
	for i, n := range t.notes {
		t.wrap(fmt.Sprintf("[%d] ", i+1), n)
	}
}

func (t *table) rows(rows []Row, s *Summary) {
	r := &rows[0]
	head := r.Treatment.Workload
	if p := sortedParams(r.Treatment.Params); p != "" {
		head += " (" + p + ")"
	}
	head += " on " + r.Host
	if on := s.Online(r.HostID, r.Treatment.Workload, r.HostCores); on != "" {
		head += " " + on
	}
	head += ": " + r.Metric.Name
	if r.Metric.Unit != "" {
		head += " in " + r.Metric.Unit
	}
	for i := range s.Rows {
		if o := &s.Rows[i]; o.HostID == r.HostID && o.Treatment.Workload == r.Treatment.Workload && o.Image != r.Image {
			head += ", " + r.Image.Words()
			break
		}
	}
	t.wrap("", head)

	cols := s.names(rows)
	n := len(cols)
	cols = append(cols, column{head: "mean", gap: 2, right: true}, column{head: "95 %", gap: 1},
		column{head: "ratio", gap: 2, right: true}, column{head: "95 %", gap: 1}, column{head: "trials", gap: 2, right: true}, column{gap: 2})
	for i := range rows {
		r := &rows[i]
		mean, meanOf := meanFigure(r.Mean, r.MeanLow, r.MeanHigh)
		ratio, ratioOf := ratioFigure(r)
		trials := fmt.Sprint(r.Trials)
		if r.Failed > 0 {
			trials = fmt.Sprintf("%d, %d failed", r.Trials, r.Failed)
		}
		for c, cell := range []string{mean, meanOf, ratio, ratioOf, trials, t.mark(r.Notes)} {
			cols[n+c].cells = append(cols[n+c].cells, Printable(cell))
		}
	}
	// Too narrow: the mean goes first, with its interval (the ratio is what is asked for), then the count of trials.
	if t.width > 0 && total(cols) > t.width {
		cols = slices.Delete(cols, n, n+2)
	}
	if t.width > 0 && total(cols) > t.width {
		cols = slices.Delete(cols, n+2, n+3)
	}
	t.grid(cols, rows)
}

// also writes the further figures of the rows, where their workload has such: as many beside each other as fit, the
// others beneath. What is the same in every row is said once.
func (t *table) also(rows []Row, s *Summary) {
	var figures []notebook.Metric
	for i := range rows {
		for _, a := range rows[i].Also {
			if !slices.Contains(figures, a.Metric) {
				figures = append(figures, a.Metric)
			}
		}
	}
	names := s.names(rows)
	var cols []column
	var constant []string
	for _, m := range figures {
		head := Printable(m.Name)
		if m.Unit != "" && m.Unit != "1" {
			head += ", " + Printable(m.Unit)
		}
		mean, half := column{right: true}, column{}
		same := true
		var first *Also
		for i := range rows {
			at := slices.IndexFunc(rows[i].Also, func(a Also) bool { return a.Metric == m })
			if at < 0 {
				mean.cells, half.cells = append(mean.cells, "-"), append(half.cells, "")
				continue
			}
			a := &rows[i].Also[at]
			if first == nil {
				first = a
			}
			// Of one round there is no interval, but there may be nothing to know of it either.
			same = same && a.Mean == first.Mean && !(a.Low < a.High)
			v, of := meanFigure(a.Mean, a.Low, a.High)
			mean.cells, half.cells = append(mean.cells, v), append(half.cells, of)
		}
		if same && len(rows) > 1 && finite(first.Mean) {
			constant = append(constant, fmt.Sprintf("%s %.4g", head, first.Mean))
			continue
		}
		// A name stands over the value and its interval together.
		both := column{head: head, gap: 2}
		for i := range rows {
			both.cells = append(both.cells, line([]column{mean, {gap: 1, cells: half.cells}}, func(c column) string { return c.cells[i] }))
		}
		cols = append(cols, both)
	}
	for len(cols) > 0 {
		n := 1
		for n < len(cols) && (t.width == 0 || total(append(slices.Clone(names), cols[:n+1]...)) <= t.width) {
			n++
		}
		t.line("")
		t.grid(append(slices.Clone(names), cols[:n]...), rows)
		cols = cols[n:]
	}
	if len(constant) > 0 {
		t.wrap("", "In each of them: "+strings.Join(constant, "; ")+".")
	}
}

// column is one of a table of rows.
type column struct {
	head  string
	right bool
	gap   int // before it
	cells []string
}

func (c column) width() int {
	n := utf8.RuneCountInString(c.head)
	for _, cell := range c.cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

func total(cols []column) int {
	sum := 0
	for _, c := range cols {
		sum += c.gap + c.width()
	}
	return sum
}

// names are the columns that say which row it is.
func (s *Summary) names(rows []Row) []column {
	instance, platform, network := column{head: "instance"}, column{head: "platform", gap: 2}, column{head: "network", gap: 2}
	for i := range rows {
		name := rows[i].Treatment.Instance.Name
		if i > 0 && rows[i-1].Treatment.Instance.Name == name {
			name = ""
		}
		instance.cells = append(instance.cells, Printable(name))
		platform.cells = append(platform.cells, Printable(treatment(rows[i].Treatment)))
		network.cells = append(network.cells, Printable(rows[i].Treatment.Network))
	}
	if s.Networks(rows[0].Treatment.Workload) {
		return []column{instance, platform, network}
	}
	return []column{instance, platform}
}

// line is a line of the columns, without spaces at its end.
func line(cols []column, cell func(column) string) string {
	var b strings.Builder
	for _, c := range cols {
		b.WriteString(strings.Repeat(" ", c.gap))
		pad := strings.Repeat(" ", c.width()-utf8.RuneCountInString(cell(c)))
		if c.right {
			b.WriteString(pad + cell(c))
		} else {
			b.WriteString(cell(c) + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// grid writes the columns' heads, and a line for each row: dim where it is not ranked.
func (t *table) grid(cols []column, rows []Row) {
	t.line(t.paint(bold, line(cols, func(c column) string { return c.head })))
	for i := range rows {
		l := line(cols, func(c column) string { return c.cells[i] })
		if !rows[i].Representative || rows[i].Doubtful {
			l = t.paint(dim, l)
		}
		t.line(l)
	}
}

// meanFigure writes a mean and the half width of its interval, which lies evenly about it.
func meanFigure(mean, low, high float64) (value, half string) {
	switch {
	case math.IsNaN(mean):
		return "-", ""
	case !finite(low) || !finite(high):
		return fmt.Sprintf("%.4g", mean), "none"
	case high == low:
		return fmt.Sprintf("%.4g", mean), "±0"
	}
	// Two digits of the half width.
	h := (high - low) / 2
	d := min(max(1-int(math.Floor(math.Log10(h))), 0), 9)
	return fmt.Sprintf("%.*f", d, mean), fmt.Sprintf("±%.*f", d, h)
}

// ratioFigure writes a row's ratio and its interval.
func ratioFigure(r *Row) (ratio, of string) {
	switch {
	case math.IsNaN(r.Ratio):
		return "-", ""
	case r.IsBaseline():
		return "1", "baseline"
	case !finite(r.RatioLow) || !finite(r.RatioHigh):
		return fmt.Sprintf("%.2f", r.Ratio), "none"
	}
	d, to := digits(r.RatioHigh-r.RatioLow, 2), "–"
	if r.RatioLow < 0 {
		to = " to "
	}
	return fmt.Sprintf("%.*f", d, r.Ratio), fmt.Sprintf("%.*f%s%.*f", d, r.RatioLow, to, d, r.RatioHigh)
}
