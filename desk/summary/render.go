package summary

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
		Representative bool              `json:"representative"`
		Notes          []string          `json:"notes"`
	}{
		r.Treatment.ID, r.Host, r.Treatment.Workload, params, r.Treatment.Platform, word(r.Treatment.Engine), word(r.Treatment.Accelerator),
		word(r.Treatment.Provisioning), r.Treatment.Instance.Name, word(r.Treatment.Network), r.HostCores, number(r.CHR), r.Treatment.AA, r.Metric.Name, r.Metric.Unit, r.Guests, r.Trials, r.Failed,
		number(r.Mean), number(r.MeanLow), number(r.MeanHigh), number(r.Ratio), number(r.RatioLow), number(r.RatioHigh), r.Representative, notes,
	})
}

// JSON writes the rows as a JSON array, in the table's order.
func (s *Summary) JSON(w io.Writer) error {
	rows := s.Rows
	if rows == nil {
		rows = []Row{}
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
	}
	t.footnotes()
	var lines []string
	for _, a := range s.AA {
		lines = append(lines, a.String())
	}
	t.list("A/A check, bare metal against itself", lines)
	lines = nil
	for _, r := range s.Ruler {
		where := notebook.Treatment{Platform: r.Platform, Engine: r.Engine, Accelerator: r.Accelerator}
		l := fmt.Sprintf("%s: %s for an empty process (%s to %s over %s), round trip %s", treatment(where), seconds(r.Median), seconds(r.Low), seconds(r.High), count(r.Guests, "guest"), seconds(r.RoundTrip))
		if len(s.Hosts) > 1 {
			l = r.Host + ", " + l
		}
		lines = append(lines, l)
	}
	t.list("The ruler's own cost", lines)
	lines = nil
	for _, l := range s.LeftOut {
		lines = append(lines, fmt.Sprintf("%s %s at %s on %s: %s", l.Treatment.Workload, treatment(l.Treatment), l.Treatment.Instance.Name, l.Host, l.Reason))
	}
	t.list("Left out", lines)
	lines = nil
	for _, x := range s.Warnings {
		lines = append(lines, fmt.Sprintf("%s (%s of %s)", x.Text, count(x.Count, "trial"), count(len(x.Treatments), "treatment")))
	}
	t.list("Warnings", lines)
	t.list("Notes", s.Notes)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// String is the check in words.
func (a AACheck) String() string {
	where := a.Workload
	if p := sortedParams(a.Params); p != "" {
		where += " (" + p + ")"
	}
	where += " at " + a.Instance.Name + " on " + a.Host + ": "
	switch a.Verdict {
	case Holds:
		return where + interval(a.Ratio, a.Low, a.High) + ", holds 1"
	case Misses:
		return where + interval(a.Ratio, a.Low, a.High) + ", misses 1: the host was too unsteady, or this is the one run in 20 that misses by chance; " + count(len(a.Untrusted), "treatment") + " not to be trusted"
	}
	return where + "not known: too few rounds, or too unsteady ones, for an interval"
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

// treatment writes platform, engine, provisioning and accelerator, each where it says something.
func treatment(t notebook.Treatment) string {
	parts := []string{t.Platform, t.Engine, t.Provisioning, t.Accelerator}
	if t.Platform == notebook.VM && t.Engine == "qemu" {
		parts[1] = "" // there is no other
	}
	if t.AA {
		parts = append(parts, "again (A/A)")
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// tables are the rows that share a heading: host, workload, parameters, metric, image.
func (s *Summary) tables() [][]Row {
	var all [][]Row
	same := func(a, b *Row) bool {
		return a.HostID == b.HostID && a.Treatment.Workload == b.Treatment.Workload && sortedParams(a.Treatment.Params) == sortedParams(b.Treatment.Params) && a.Metric == b.Metric && a.Image == b.Image
	}
	for i := range s.Rows {
		if i == 0 || !same(&s.Rows[i-1], &s.Rows[i]) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], s.Rows[i])
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

// printable makes what a results folder says safe for a terminal: a guest may have had a part in it.
func printable(s string) string {
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
		word = printable(word)
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
	head += " on " + r.Host + ": " + r.Metric.Name
	if r.Metric.Unit != "" {
		head += " in " + r.Metric.Unit
	}
	for i := range s.Rows {
		if o := &s.Rows[i]; o.HostID == r.HostID && o.Treatment.Workload == r.Treatment.Workload && o.Image != r.Image {
			head += ", image " + short(r.Image.Digest)
			if r.Image.Input != "" {
				head += ", input " + short(r.Image.Input)
			}
			break
		}
	}
	t.wrap("", head)

	type column struct {
		head  string
		right bool
		gap   int // before it
		cells []string
	}
	cols := []column{
		{head: "instance"}, {head: "platform", gap: 2}, {head: "mean", gap: 2, right: true}, {head: "95 %", gap: 1},
		{head: "ratio", gap: 2, right: true}, {head: "95 %", gap: 1}, {head: "trials", gap: 2, right: true}, {gap: 2},
	}
	plain := make([]bool, len(rows))
	for i := range rows {
		r := &rows[i]
		plain[i] = r.Representative && !r.Doubtful
		mean, meanOf := meanFigure(r)
		ratio, ratioOf := ratioFigure(r)
		instance := r.Treatment.Instance.Name
		if i > 0 && rows[i-1].Treatment.Instance.Name == instance {
			instance = ""
		}
		trials := fmt.Sprint(r.Trials)
		if r.Failed > 0 {
			trials = fmt.Sprintf("%d, %d failed", r.Trials, r.Failed)
		}
		for c, cell := range []string{instance, treatment(r.Treatment), mean, meanOf, ratio, ratioOf, trials, t.mark(r.Notes)} {
			cols[c].cells = append(cols[c].cells, printable(cell))
		}
	}
	wide := func(c column) int {
		n := utf8.RuneCountInString(c.head)
		for _, cell := range c.cells {
			n = max(n, utf8.RuneCountInString(cell))
		}
		return n
	}
	total := func() int {
		sum := 0
		for _, c := range cols {
			sum += c.gap + wide(c)
		}
		return sum
	}
	// Too narrow: the mean goes first, with its interval (the ratio is what is asked for), then the count of trials.
	if t.width > 0 && total() > t.width {
		cols = slices.Delete(cols, 2, 4)
	}
	if t.width > 0 && total() > t.width {
		cols = slices.Delete(cols, 4, 5)
	}
	line := func(cell func(column) string) string {
		var b strings.Builder
		for _, c := range cols {
			b.WriteString(strings.Repeat(" ", c.gap))
			pad := strings.Repeat(" ", wide(c)-utf8.RuneCountInString(cell(c)))
			if c.right {
				b.WriteString(pad + cell(c))
			} else {
				b.WriteString(cell(c) + pad)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	t.line(t.paint(bold, line(func(c column) string { return c.head })))
	for i := range rows {
		l := line(func(c column) string { return c.cells[i] })
		if !plain[i] {
			l = t.paint(dim, l)
		}
		t.line(l)
	}
}

func short(digest string) string {
	d := strings.TrimPrefix(digest, "sha256:")
	return d[:min(len(d), 12)]
}

// meanFigure writes a row's mean and the half width of its interval, which lies evenly about it.
func meanFigure(r *Row) (mean, half string) {
	switch {
	case math.IsNaN(r.Mean):
		return "-", ""
	case !finite(r.MeanLow) || !finite(r.MeanHigh):
		return fmt.Sprintf("%.4g", r.Mean), "none"
	case r.MeanHigh == r.MeanLow:
		return fmt.Sprintf("%.4g", r.Mean), "±0"
	}
	// Two digits of the half width.
	h := (r.MeanHigh - r.MeanLow) / 2
	d := min(max(1-int(math.Floor(math.Log10(h))), 0), 9)
	return fmt.Sprintf("%.*f", d, r.Mean), fmt.Sprintf("±%.*f", d, h)
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
