package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strings"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// SummarySchema names the form of an Answer in JSON.
const SummarySchema = "tare.summary/1"

// Answer is what `tare summary --format json` prints. A number that is not known is null. Shares are fractions: 0.05 is 5 %.
type Answer struct {
	Schema     string       `json:"schema"`     // "tare.summary/1"; a change that breaks readers gets another number
	Confidence float64      `json:"confidence"` // of every interval and bound: 0.95
	Margin     float64      `json:"margin"`     // smallest change that matters, a share
	Resolution stats.Number `json:"resolution"` // smallest change that the run can resolve, by its A/A checks; null: not known
	Reference  string       `json:"reference"`  // environment to which ratios and changes are relative: bm, or what --against names
	Headline   []string     `json:"headline"`   // the finding, a sentence each, the most important one first
	Rows       []AnswerRow  `json:"rows"`       // one for each configuration, in the order of the tables
}

// AnswerRow is one configuration. A kind of study other than timing adds a key of its own.
type AnswerRow struct {
	subject
	CHR         stats.Number    `json:"chr"`              // container-to-host core ratio: CPUs of the size over host_cores
	Metric      string          `json:"metric"`           // what was measured
	Unit        string          `json:"unit"`             // of the metric; empty or 1: none
	Better      notebook.Better `json:"better,omitempty"` // which values of the metric are better: lower, higher or none; absent: lower
	Emulated    bool            `json:"emulated"`         // a VM without KVM: its times do not represent a VM's cost
	Rounds      int             `json:"rounds"`           // rounds with at least one successful run
	Guests      int             `json:"guests"`           // processes, containers or VMs that gave at least one run
	Trials      int             `json:"trials"`           // measured runs, without warm-ups and traced runs
	Failed      int             `json:"failed"`           // measured runs that failed
	Mean        stats.Number    `json:"mean"`             // of the metric, in its unit
	MeanLow     stats.Number    `json:"mean_low"`         // lower end of the mean's interval
	MeanHigh    stats.Number    `json:"mean_high"`        // upper end of the mean's interval
	Baseline    *string         `json:"baseline"`         // treatment of the row to which this one is relative; null: none
	Verdict     *stats.Verdict  `json:"verdict"`          // slower, faster, equivalent or inconclusive at the margin; null: not compared
	Change      stats.Number    `json:"change"`           // from the baseline, a share: ratio − 1
	ChangeLow   stats.Number    `json:"change_low"`       // lower end of the change's two-sided interval
	ChangeHigh  stats.Number    `json:"change_high"`      // upper end of the change's two-sided interval
	AtLeast     stats.Number    `json:"bound_low"`        // one-sided bound: the change is at least this
	AtMost      stats.Number    `json:"bound_high"`       // one-sided bound: the change is at most this
	DecidedAt   stats.Number    `json:"decided_at"`       // smallest margin at which the row is equivalent to its baseline, a share
	More        *int            `json:"more_rounds"`      // about how many rounds would decide an inconclusive row; null: decided, or not foreseeable
	Ratio       stats.Number    `json:"ratio"`            // mean over the baseline's mean, in the rounds of both
	RatioLow    stats.Number    `json:"ratio_low"`        // lower end of the ratio's interval
	RatioHigh   stats.Number    `json:"ratio_high"`       // upper end of the ratio's interval
	RatioRobust stats.Number    `json:"ratio_robust"`     // Hodges-Lehmann estimate, which a few slow rounds hardly move
	RatioRounds int             `json:"ratio_rounds"`     // rounds that count in the ratio
	Disturbed   int             `json:"rounds_disturbed"` // rounds in which other programs used more than 5 % of the host's CPUs
	Notes       []string        `json:"notes"`            // caveats, for people

	OfUsual   stats.Quotient    `json:"of_usual,omitzero"`           // of a VM with unusual options: its mean over the usual VM's
	Secondary []SecondaryMetric `json:"secondary_metrics,omitempty"` // of workloads that have some

	kind string // key of what its kind of study measured, and that; empty: none
	of   any
}

// SecondaryMetric is another metric of the same runs.
type SecondaryMetric struct {
	Name   string          `json:"name"`             // of the metric
	Unit   string          `json:"unit"`             // of the metric
	Mean   stats.Number    `json:"mean"`             // in its unit
	Low    stats.Number    `json:"low"`              // lower end of the mean's interval
	High   stats.Number    `json:"high"`             // upper end of the mean's interval
	Rounds int             `json:"rounds"`           // in which a run had it
	Better notebook.Better `json:"better,omitempty"` // which values are better; absent: not known
	Ratio  stats.Quotient  `json:"ratio,omitzero"`   // to the baseline; absent if better is
}

// MarshalJSON writes the row, and last what its kind of study measured.
func (r AnswerRow) MarshalJSON() ([]byte, error) {
	type plain AnswerRow // without this method
	own := map[string]any{}
	if r.kind != "" {
		own[r.kind] = r.of
	}
	return joined(plain(r), own)
}

// answerOf is the answer of the folders.
func answerOf(s *data.Summary) Answer {
	a := Answer{
		Schema: SummarySchema, Confidence: 1 - stats.Alpha, Margin: s.Margin(), Resolution: stats.Number(s.Resolution()), Reference: referenceOf(s),
		Headline: list(words.Headline(s)), Rows: []AnswerRow{},
	}
	for _, table := range s.Tables() {
		for _, r := range table {
			a.Rows = append(a.Rows, answerRow(s, r))
		}
	}
	return a
}

// referenceOf names the environment to which ratios are relative: bm, or what --against names.
func referenceOf(s *data.Summary) string {
	if len(s.Baseline) > 0 {
		return notebook.ReferenceText(s.Baseline)
	}
	return notebook.BM
}

func answerRow(s *data.Summary, r *data.Row) AnswerRow {
	n, q := func(v float64) stats.Number { return stats.Number(v) }, r.Quotient()
	j := AnswerRow{
		subject: subjectOf(r), CHR: n(r.CHR), Metric: words.Caption(r.Metric.Name), Unit: r.Metric.Unit, Better: r.Metric.Better, Emulated: !r.Representative,
		Rounds: r.Rounds, Guests: r.Guests, Trials: r.Trials, Failed: r.Failed, Mean: n(r.Mean), MeanLow: n(r.MeanLow), MeanHigh: n(r.MeanHigh),
		Baseline: word(r.Baseline), Change: n(q.Value - 1), ChangeLow: n(q.Low - 1), ChangeHigh: n(q.High - 1),
		Ratio: n(q.Value), RatioLow: n(q.Low), RatioHigh: n(q.High), RatioRobust: n(r.Robust), RatioRounds: r.RatioRounds, Disturbed: r.Disturbed,
		Notes: list(words.Doubts(r.Doubts)),
	}
	j.Name = words.EnvironmentOf(s, r)
	low, high := q.Bounds()
	j.AtLeast, j.AtMost, j.DecidedAt = n(low-1), n(high-1), n(r.Decided())
	if v := s.Finding(r); v != "" {
		j.Verdict = &v
		if more := s.Rounds(r) - r.RatioRounds; v == stats.Inconclusive && more > 0 && !r.Doubtful && !r.Unreliable() {
			j.More = &more
		}
	}
	if q, ok := s.OfUsual(r); ok {
		j.OfUsual = q
	}
	for _, a := range r.Secondary {
		it := SecondaryMetric{Name: words.Caption(a.Metric.Name), Unit: a.Metric.Unit, Mean: n(a.Mean), Low: n(a.Low), High: n(a.High), Rounds: a.Rounds, Better: a.Metric.Better}
		for _, f := range r.Figures {
			if f.Metric == a.Metric {
				it.Ratio = f.Quotient()
			}
		}
		j.Secondary = append(j.Secondary, it)
	}
	if k := show.Of(s, r); k != nil && k.JSON != "" && r.Of != nil {
		j.kind, j.of = k.JSON, r.Of
	}
	return j
}

// Summary writes the answer as `tare summary --format json` promises it.
func Summary(w io.Writer, s *data.Summary) error { return write(w, answerOf(s)) }

// inCells calls do with each of a row's fields that is one cell of a table.
func inCells(row reflect.Value, do func(name string, v reflect.Value)) {
	t := row.Type()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch v := row.Field(i); {
		case t.Field(i).Anonymous:
			inCells(v, do)
		case name == "" || v.Type() == reflect.TypeFor[stats.Quotient]() || v.Type() == reflect.TypeFor[[]SecondaryMetric]() || v.Type() == reflect.TypeFor[[]FleetResult]():
		default:
			do(name, v)
		}
	}
}

// SummaryTable writes the rows of the answer as CSV. The columns are the keys of the JSON that have one value. A secondary metric that is
// compared has lines of its own. For a terminal, each cell is fit to be shown.
func SummaryTable(w io.Writer, s *data.Summary, onTerminal bool) error {
	fit := asIs
	if onTerminal {
		fit = words.Plain
	}
	c := csv.NewWriter(w)
	var heads []string
	inCells(reflect.ValueOf(AnswerRow{}), func(name string, _ reflect.Value) { heads = append(heads, name) })
	lines := [][]string{append(heads, "secondary")}
	add := func(r *data.Row, secondary string) {
		var line []string
		inCells(reflect.ValueOf(answerRow(s, r)), func(_ string, v reflect.Value) { line = append(line, fit(cell(v))) })
		lines = append(lines, append(line, secondary))
	}
	for _, table := range s.Tables() {
		for _, r := range table {
			add(r, "false")
		}
		for _, of := range data.InFigures(table) {
			for _, r := range of {
				add(r, "true")
			}
		}
	}
	if err := c.WriteAll(lines); err != nil {
		return fmt.Errorf("writing the summary as CSV: %w", err)
	}
	return nil
}
