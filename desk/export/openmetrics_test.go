package export

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"tare/desk/data"
	"tare/desk/history"
	"tare/desk/show/kinds"
	"tare/desk/words"
	"tare/internal/require"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

var (
	metadata   = regexp.MustCompile(`^# (HELP|TYPE|UNIT) ([a-z_]+) (.+)$`)
	sampleLine = regexp.MustCompile(`^([a-z_]+)\{([a-z_]+="([^"\\\n]|\\[\\"n])*"(,[a-z_]+="([^"\\\n]|\\[\\"n])*")*)\} (\S+)$`)
)

// checkMetrics holds a text against the OpenMetrics text format, as far as Tare uses it, and against the parser of the older one, which
// node_exporter and the Pushgateway have. It returns the samples by their name with the labels.
func checkMetrics(t *testing.T, text string) map[string]float64 {
	t.Helper()
	body, ends := strings.CutSuffix(text, "# EOF\n")
	if !ends {
		t.Fatalf("does not end with # EOF:\n%s", text)
	}
	all, done, of := map[string]float64{}, map[string]bool{}, ""
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if m := metadata.FindStringSubmatch(line); m != nil {
			if m[2] != of && done[m[2]] {
				t.Errorf("%s has two blocks", m[2])
			}
			of, done[m[2]] = m[2], true
			if m[1] == "TYPE" && m[3] != "gauge" || m[1] == "UNIT" && !strings.HasSuffix(of, "_"+m[3]) {
				t.Errorf("%s", line)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != of {
			t.Fatalf("not a sample of %q: %q", of, line)
		}
		v, err := strconv.ParseFloat(m[6], 64)
		name := m[1] + "{" + m[2] + "}"
		if _, twice := all[name]; err != nil || twice {
			t.Errorf("%q: %v, twice %t", line, err, twice)
		}
		all[name] = v
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	n := 0
	for name, f := range parsed {
		n += len(f.GetMetric())
		if f.GetHelp() == "" || f.GetType().String() != "GAUGE" {
			t.Errorf("%s: help %q, type %s", name, f.GetHelp(), f.GetType())
		}
	}
	if n != len(all) {
		t.Errorf("%d samples are %d to the parser of the older format", len(all), n)
	}
	return all
}

// value finds the one sample of a family with these labels.
func value(t *testing.T, all map[string]float64, family string, labels ...string) (found float64) {
	t.Helper()
	n := 0
	for name, v := range all {
		if strings.HasPrefix(name, family+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(name, l) }) {
			n, found = n+1, v
		}
	}
	if n != 1 {
		t.Errorf("%d samples of %s with %q", n, family, labels)
	}
	return found
}

// nights are runs of a study on one host. Docker costs 5 % more since the run at. In the last run all of crun fails.
func nights(t *testing.T, n, at int, change func(*notebooktest.Folder)) (runs []*data.Summary) {
	t.Helper()
	for i := range n {
		f := notebooktest.Night(i)
		docker := 1.02 + 0.001*float64(i%3)
		if i >= at {
			docker *= 1.05
		}
		f.Add("bm large", 1).Add("bm aa large", 1).Add("cn docker vanilla large", docker).Add("cn crun vanilla large", 1.01)
		if i == n-1 {
			f.Trial = func(x *notebook.Trial) {
				if strings.Contains(x.Treatment, "crun") {
					x.Failure = notebook.TextMessage("killed")
				}
			}
		}
		if change != nil {
			change(f)
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	return runs
}

// metricsOf writes and checks the metrics of a history.
func metricsOf(t *testing.T, runs []*data.Summary) map[string]float64 {
	t.Helper()
	h, err := history.From(runs)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := HistoryMetrics(&b, h); err != nil {
		t.Fatal(err)
	}
	return checkMetrics(t, b.String())
}

// The metrics have the latest run, with intervals in base units, and what changed since when. A configuration that failed is there as well.
func TestHistoryMetrics(t *testing.T) {
	const n, at = 20, 15
	runs := nights(t, n, at, nil)
	all := metricsOf(t, runs)
	docker, crun, bare := `engine="docker"`, `engine="crun"`, `platform="bm"`
	last := runs[n-1]
	row := last.Rows[slices.IndexFunc(last.Rows, func(r *data.Row) bool { return r.Treatment.Engine == "docker" })]
	for _, c := range []struct {
		family, label string
		want          float64
	}{
		{"tare_last_run_time_seconds", `study="quick",host="bench"`, unix(last.Folders[0].Last)}, {"tare_runs", `study="quick"`, n},
		{"tare_cost_ratio", docker, row.Ratio}, {"tare_cost_low_ratio", docker, row.RatioLow}, {"tare_cost_high_ratio", docker, row.RatioHigh},
		{"tare_mean_seconds", docker, row.Mean}, {"tare_mean_low_seconds", docker, row.MeanLow}, {"tare_mean_high_seconds", docker, row.MeanHigh},
		{"tare_trials", crun, 4}, {"tare_trials_failed", crun, 4}, {"tare_trials_failed", docker, 0}, {"tare_trials_failed", bare, 0},
		{"tare_history_runs", crun, n - 1}, {"tare_history_runs", docker, n}, {"tare_history_examined", docker, 1},
		{"tare_history_changes", docker, 1}, {"tare_history_changes", crun, 0},
		{"tare_history_change_time_seconds", docker, unix(history.At(runs[at]))},
	} {
		if got := value(t, all, c.family, c.label); got != c.want {
			t.Errorf("%s of %s: %g, want %g", c.family, c.label, got, c.want)
		}
	}
	if got := value(t, all, "tare_verdict", docker, `verdict="slower"`, `reference="bm"`); got != 1 {
		t.Errorf("verdict %g", got)
	}
	if got := value(t, all, "tare_history_change_ratio", docker); got < 1.04 || got > 1.06 {
		t.Errorf("changed by %g", got)
	}
	for name := range all {
		if strings.Contains(name, "aa_") || strings.HasPrefix(name, "tare_cost_ratio") && strings.Contains(name, bare) {
			t.Error(name)
		}
	}
	if got := value(t, metricsOf(t, runs[:3]), "tare_history_examined", docker); got != 0 {
		t.Errorf("a history of three runs: examined %g", got)
	}
}

// The value of a unit with a base unit is in the base unit; another unit is a label.
func TestMetricsInBaseUnits(t *testing.T) {
	for unit, want := range map[string]string{"ms": "tare_mean_seconds", "MiB": "tare_mean_bytes", "1/s": "tare_mean", "1": "tare_mean"} {
		runs := nights(t, 1, 1, func(f *notebooktest.Folder) { f.Study.Metrics["ffmpeg"] = notebook.Metric{Name: "n", Unit: unit} })
		of := 1.0
		if u, has := baseUnits[unit]; has {
			of = u.of
		}
		all := metricsOf(t, runs)
		if got, mean := value(t, all, want, `engine="docker"`), runs[0].Rows[2].Mean*of; got != mean {
			t.Errorf("%s: %g, want %g", unit, got, mean)
		}
		if labelled := slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return strings.Contains(name, `unit="1/s"`) }); labelled != (unit == "1/s") {
			t.Errorf("%s: a label for the unit: %t", unit, labelled)
		}
	}
}

// Hosts with the same name, two of them in a history, do not have the same labels.
func TestMetricsOfTwoHosts(t *testing.T) {
	runs := append(nights(t, 2, 9, nil), nights(t, 2, 9, func(f *notebooktest.Folder) { f.Host.ID = "ccccccccdddd" })...)
	all := metricsOf(t, runs)
	for _, id := range []string{"aaaaaaaabbbb", "ccccccccdddd"} {
		value(t, all, "tare_cost_ratio", `engine="docker"`, `host_id="`+id+`"`)
		if got := value(t, all, "tare_runs", `host_id="`+id+`"`); got != 2 {
			t.Errorf("%g runs", got)
		}
	}
}

// Names from a hostile folder break no line and are no control characters.
func TestMetricsOfHostileNames(t *testing.T) {
	parts := []string{"\n", "\r", "\x00", "\x1b[2J", "\u2028", "\u202e", "\xff", "\\", "\\n", `"`, `",x="`, "} 1\n", "# EOF\n", "{", "é", "日本", " ", "x", strings.Repeat("y", 3000)}
	r := rand.New(rand.NewPCG(5, 6))
	name := func() string {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		return b.String()
	}
	for range 40 {
		s := nights(t, 1, 1, nil)[0]
		s.Folders[0].Study.Name, s.Hosts[0].Name = name(), name()
		for i, row := range s.Rows {
			row.Host, row.HostID, row.Metric = s.Hosts[0].Name, name(), notebook.Metric{Name: name(), Unit: name()}
			row.Treatment.ID, row.Treatment.Workload, row.Treatment.Engine = fmt.Sprint(name(), i), name(), name()
		}
		var b bytes.Buffer
		if err := SummaryMetrics(&b, s); err != nil {
			t.Fatal(err)
		}
		checkMetrics(t, b.String())
		if strings.ContainsAny(b.String(), "\r\x00\x1b\u2028\u202e") {
			t.Fatalf("%q", b.String())
		}
	}
}

// Every kind of study gives metrics. The parser of the Prometheus project for OpenMetrics accepts them.
func TestOpenMetricsAccepts(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "several")}
	dirs := samples(t)
	write := func(file string, dirs ...string) {
		s, err := data.Read(dirs, data.Options{Kinds: kinds.All})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := SummaryMetrics(&b, s); err != nil {
			t.Fatal(err)
		}
		if len(checkMetrics(t, b.String())) == 0 {
			t.Errorf("%s: nothing", dirs)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(files[0], dirs...)
	for i, d := range dirs {
		files = append(files, filepath.Join(dir, fmt.Sprint(i)))
		write(files[i+1], d)
	}
	require.Program(t, "python3")
	python := func(args ...string) ([]byte, error) {
		cmd := exec.Command("python3", args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH=/usr/lib/python3/dist-packages") // of Debian, whichever python3 comes first
		return cmd.CombinedOutput()
	}
	_, err := python("-c", "import prometheus_client")
	require.That(t, err == nil, "the Python module prometheus_client (apt-get install python3-prometheus-client)")
	const parse = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\nfor f in sys.argv[1:]: print(len(list(parse(open(f).read()))))"
	if said, err := python(append([]string{"-c", parse}, files...)...); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// docs/regular.md explains each metric and names no other, and each has a text of help.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/regular.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\btare_[a-z_]+`).FindAllString(string(text), -1)
	for _, f := range families {
		if !slices.Contains(named, f.name) || words.MetricHelp(f.name) == "" {
			t.Errorf("docs/regular.md does not explain %s, or it has no help", f.name)
		}
	}
	for _, name := range named {
		if !slices.ContainsFunc(families, func(f struct{ name, unit string }) bool { return f.name == name }) {
			t.Errorf("docs/regular.md names %s, which Tare does not write", name)
		}
	}
}
