package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/desk/data"
	"tare/desk/history"
	"tare/desk/words"
	"tare/stats"
)

// families are the metrics in their order. A unit ends the name, as OpenMetrics asks. All are gauges: the older text format, which node_exporter's
// textfile collector and the Pushgateway read, has other names for samples of other types.
var families = []struct{ name, unit string }{
	{"tare_last_run_time_seconds", "seconds"}, {"tare_runs", ""},
	{"tare_cost_ratio", "ratio"}, {"tare_cost_low_ratio", "ratio"}, {"tare_cost_high_ratio", "ratio"}, {"tare_verdict", ""},
	{"tare_mean_seconds", "seconds"}, {"tare_mean_low_seconds", "seconds"}, {"tare_mean_high_seconds", "seconds"},
	{"tare_mean_bytes", "bytes"}, {"tare_mean_low_bytes", "bytes"}, {"tare_mean_high_bytes", "bytes"},
	{"tare_mean", ""}, {"tare_mean_low", ""}, {"tare_mean_high", ""},
	{"tare_trials", ""}, {"tare_trials_failed", ""},
	{"tare_history_runs", ""}, {"tare_history_examined", ""}, {"tare_history_spread_ratio", "ratio"},
	{"tare_history_changes", ""}, {"tare_history_change_time_seconds", "seconds"}, {"tare_history_change_ratio", "ratio"},
}

// baseUnits are the units that have a base unit, and how much of it they are.
var baseUnits = map[string]struct {
	base string
	of   float64
}{
	"s": {"seconds", 1}, "ms": {"seconds", 1e-3}, "us": {"seconds", 1e-6}, "µs": {"seconds", 1e-6}, "min": {"seconds", 60},
	"B": {"bytes", 1}, "bytes": {"bytes", 1}, "kB": {"bytes", 1e3}, "MB": {"bytes", 1e6}, "GB": {"bytes", 1e9},
	"KiB": {"bytes", 1 << 10}, "MiB": {"bytes", 1 << 20}, "GiB": {"bytes", 1 << 30},
}

// exposition is the lines of each family.
type exposition struct {
	lines map[string][]string
	seen  map[string]bool // a family with labels
}

// labels are names and values in turn. An empty value stands for a label that is not there.
type labels []string

// add adds a sample unless the value is not a number. Labels say once what a value is: of two samples with the same ones, the first stays.
func (s *exposition) add(family string, l labels, value float64) {
	if value != value {
		return
	}
	var pairs []string
	for i := 0; i < len(l); i += 2 {
		if text := words.Plain(strings.ToValidUTF8(l[i+1], "\uFFFD")); text != "" {
			pairs = append(pairs, l[i]+`="`+escaped.Replace(text)+`"`)
		}
	}
	name := family + "{" + strings.Join(pairs, ",") + "}"
	if s.seen[name] {
		return
	}
	s.seen[name] = true
	s.lines[family] = append(s.lines[family], name+" "+strconv.FormatFloat(value, 'g', -1, 64))
}

// escaped escapes the value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// runs adds what is known of the runs of each study on each host.
func (s *exposition) runs(all []*data.Summary) {
	type key struct{ study, host string }
	var order []key
	names, times, last := map[key]string{}, map[key]int{}, map[key]time.Time{}
	for _, run := range all {
		for _, f := range run.Folders {
			k := key{f.Study.Name, f.Host}
			if f.Last.IsZero() {
				continue
			}
			if times[k]++; times[k] == 1 {
				order = append(order, k)
			}
			if i := slices.IndexFunc(run.Hosts, func(h data.Host) bool { return h.ID == f.Host }); i >= 0 {
				names[k] = run.Hosts[i].Name
			}
			if f.Last.After(last[k]) {
				last[k] = f.Last
			}
		}
	}
	for _, k := range order {
		l := labels{"study", k.study, "host", names[k], "host_id", k.host}
		s.add("tare_last_run_time_seconds", l, unix(last[k]))
		s.add("tare_runs", l, float64(times[k]))
	}
}

// unix is a moment in seconds since 1970.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

// row adds what a summary says of one of its rows, and its history where it has one.
func (s *exposition) row(of history.Result) {
	r, t := of.Row, of.Row.Treatment
	l := labels{"study", of.Run.Folders[latest(r)].Study.Name, "host", r.Host, "host_id", r.HostID, "treatment", t.ID, "workload", t.Label(), "platform", t.Platform,
		"engine", t.Engine, "accelerator", t.Accelerator, "provisioning", t.Provisioning, "size", t.Instance.Name, "metric", words.Caption(r.Metric.Name)}
	with := func(more ...string) labels { return append(slices.Clip(l), more...) }
	reference := with("reference", referenceOf(of.Run))
	if q := r.Cost(); r.Baseline != "" && !r.IsBaseline() && stats.Finite(r.Ratio) && q.HasInterval() {
		s.add("tare_cost_ratio", reference, q.Value)
		s.add("tare_cost_low_ratio", reference, q.Low)
		s.add("tare_cost_high_ratio", reference, q.High)
	}
	if v := of.Run.Finding(r); v != "" {
		s.add("tare_verdict", append(slices.Clip(reference), "verdict", string(v)), 1)
	}
	unit, means := baseUnits[r.Metric.Unit], l
	suffix := "_" + unit.base
	if unit.base == "" {
		unit.of, suffix = 1, ""
		if r.Metric.Unit != "1" { // which is not a unit
			means = with("unit", r.Metric.Unit)
		}
	}
	s.add("tare_mean"+suffix, means, r.Mean*unit.of)
	s.add("tare_mean_low"+suffix, means, r.MeanLow*unit.of)
	s.add("tare_mean_high"+suffix, means, r.MeanHigh*unit.of)
	s.add("tare_trials", l, float64(r.Trials))
	s.add("tare_trials_failed", l, float64(r.Failed))
	if of.Track != nil {
		s.track(l, of.Track)
	}
}

// latest is the last folder that has something of a row.
func latest(r *data.Row) int {
	if len(r.Cells) == 0 {
		return 0
	}
	return r.Cells[len(r.Cells)-1].Folder
}

// track adds what a history says of one configuration.
func (s *exposition) track(l labels, t *history.Track) {
	examined := 0.0
	if t.Examined() {
		examined = 1
	}
	s.add("tare_history_runs", l, float64(len(t.Points)))
	s.add("tare_history_examined", l, examined)
	s.add("tare_history_spread_ratio", l, t.Spread)
	s.add("tare_history_changes", l, float64(len(t.Changes)))
	if n := len(t.Changes); n > 0 {
		last := t.Changes[n-1]
		s.add("tare_history_change_time_seconds", l, unix(history.At(last.First.Run)))
		s.add("tare_history_change_ratio", l, last.By())
	}
}

// HistoryMetrics writes the latest run of each host, and what the history says of its configurations, in the OpenMetrics text format.
func HistoryMetrics(w io.Writer, h *history.History) error { return metrics(w, h.Runs, h.Latest) }

// SummaryMetrics writes what folders say in the OpenMetrics text format. Of two configurations with the same labels it writes the newer one.
func SummaryMetrics(w io.Writer, s *data.Summary) error {
	var of []history.Result
	for _, r := range s.Rows {
		if !r.Treatment.AA {
			of = append(of, history.Result{Run: s, Row: r})
		}
	}
	at := func(r history.Result) time.Time { return s.Folders[latest(r.Row)].Last }
	slices.SortStableFunc(of, func(a, b history.Result) int { return at(b).Compare(at(a)) })
	return metrics(w, []*data.Summary{s}, of)
}

// metrics writes the OpenMetrics text format, which is also valid in the older text format of Prometheus (0.0.4): it has no timestamps.
func metrics(w io.Writer, runs []*data.Summary, of []history.Result) error {
	s := &exposition{map[string][]string{}, map[string]bool{}}
	s.runs(runs)
	for _, r := range of {
		s.row(r)
	}
	b := bufio.NewWriter(w)
	for _, f := range families {
		if len(s.lines[f.name]) == 0 {
			continue
		}
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %[1]s gauge\n", f.name, words.MetricHelp(f.name))
		if f.unit != "" {
			fmt.Fprintf(b, "# UNIT %s %s\n", f.name, f.unit)
		}
		for _, line := range s.lines[f.name] {
			fmt.Fprintln(b, line)
		}
	}
	fmt.Fprintln(b, "# EOF")
	return b.Flush()
}
