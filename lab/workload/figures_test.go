package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"tare/lab/image"
	"tare/lab/ruler"
	"tare/notebook"
	"tare/workloads"
)

// JavaScript, the language of k6's loads, prints NaN as null.
func TestANumberThatIsNull(t *testing.T) {
	w := &Workload{Metric: Metric{From: "mean"}, Also: []Metric{{Metric: notebook.Metric{Name: "p99"}}}}
	for out, want := range map[string]string{
		`{"mean":null,"p99":1,"errors":0}`: `no-figure key=mean line={"mean":null,"p99":1,"errors":0}`,
		`{"mean":1,"p99":null}`:            `no-figure key=p99 line={"mean":1,"p99":null}`,
		`{"mean":1,"p99":1,"errors":null}`: `no-figure key=errors line=null`,
		`{"mean":1,"p99":1e61}`:            `no-figure key=p99 line={"mean":1,"p99":1e61}`,
		`{"mean":1e-61,"p99":1}`:           `no-figure key=mean line={"mean":1e-61,"p99":1}`,
		`{"mean":1,"p99":1e60}`:            "",
		`{"mean":1,"p99":0}`:               "",
	} {
		if _, _, cause := w.Figures(ruler.Result{Stdout: []byte(out)}); cause.String() != want {
			t.Errorf("%s:\ngot  %s\nwant %s", out, cause, want)
		}
	}
}

// An optional figure is left out of a trial that does not print it. Other figures must be printed.
func TestAFigureThatSomeTrialsHave(t *testing.T) {
	w := metricsOf(t, "metric: {name: time, unit: s, from: time}\nalso:\n  - {name: rate, unit: 1/s, optional: true}\n  - {name: calls, unit: s, warn: it called}\n")
	if got := fmt.Sprint(w.Warnings(map[string]float64{"calls": 2, "rate": 1}), w.Warnings(map[string]float64{"calls": 0}), w.Warnings(nil)); got != "[metric-warns metric=calls value=2 warning=it called] [] []" {
		t.Errorf("warnings: %s", got)
	}
	for out, want := range map[string]string{
		`{"time":1,"rate":2,"calls":3}`: "map[calls:3 rate:2] ",
		`{"time":1,"calls":3}`:          "map[calls:3] ",
		`{"time":1,"rate":2}`:           `map[calls:0 rate:2] no-figure key=calls line={"time":1,"rate":2}`,
		`{"calls":3}`:                   `map[calls:3] no-figure key=time line={"calls":3}`,
	} {
		if _, also, cause := w.Figures(ruler.Result{Stdout: []byte(out)}); fmt.Sprint(also, " ", cause) != want {
			t.Errorf("%s:\ngot  %v %s\nwant %s", out, also, cause, want)
		}
	}
	if _, err := described("metric: {name: time, unit: s, from: time, optional: true}\n"); err == nil || !strings.Contains(err.Error(), "optional") {
		t.Errorf("a metric that may be missing: %v", err)
	}
}

func FuzzFigures(f *testing.F) {
	for _, s := range []string{`{"mean":0.1,"p99":0.2,"errors":0}`, `{"mean":-1}`, `{"mean":null,"p99":1}`, `{"mean":1,"p99":1,"errors":null}`, "noise\n{}", `{"mean":1e999}`, ""} {
		f.Add([]byte(s), []byte("said\n"))
	}
	w := &Workload{Metric: Metric{From: "mean"}, Also: []Metric{{Metric: notebook.Metric{Name: "p99"}}}}
	f.Fuzz(func(t *testing.T, out, said []byte) {
		v, also, cause := w.Figures(ruler.Result{Stdout: out, Stderr: said})
		if strings.Contains(cause.String(), "\n") {
			t.Errorf("more than a line: %q", cause)
		}
		if cause == nil && (v < 0 || math.IsNaN(v) || math.IsInf(v, 0) || len(also) != 1 || also["p99"] < 0) {
			t.Errorf("%q: %v %v and no failure", out, v, also)
		}
	})
}

// described reads a workload with these metrics.
func described(metrics string) (*Workload, error) {
	const rest = "name: mine\nimage: {suite: trixie}\ncommand: [true]\n"
	return Read(fstest.MapFS{File: {Data: []byte(rest + metrics)}}, "mine")
}

func metricsOf(t testing.TB, metrics string) *Workload {
	t.Helper()
	w, err := described(metrics)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Each format of an output, with the figures that Tare reads from it, or the message if a figure is missing.
func TestFiguresOfAnOutput(t *testing.T) {
	for _, c := range []struct {
		metrics, out string
		value        float64
		also         map[string]float64
		cause        string // the beginning of the message
	}{
		{"metric: {name: copy, unit: GB/s, better: higher, from: StarSTREAM_Copy}\noutput: values\nalso: [{name: latency, unit: us, better: lower, from: AvgPingPongLatency_usec}, {name: HPL_N, unit: '1'}]",
			"Begin\nHPL_N=1000\nHPL_NB=80\nStarSTREAM_Copy=3.5\nStarSTREAM_Copy_x=9\nAvgPingPongLatency_usec=1.2e-01\n", 3.5, map[string]float64{"latency": 0.12, "HPL_N": 1000}, ""},
		{"metric: {name: ops, unit: 1/s, from: bogo ops}\noutput: values", "  bogo ops:   12.5 ops/s\nbogo ops are counted\n", 12.5, nil, ""},
		{"metric: {name: n, unit: '1', from: n}\noutput: values", "n 1\nn\t2\nn = 3\n", 3, nil, ""}, // the last
		{"metric: {name: n, unit: '1', from: n}\noutput: values", "n=3\nn=nan\n", 0, nil, `no-number key=n line=n=nan`},
		{"metric: {name: n, unit: '1', from: n}\noutput: values", "n 3\nn -1\n", 0, nil, `no-number key=n line=n -1`},
		{"metric: {name: n, unit: '1', from: n}\noutput: values", "nn=3\nthe end\n", 0, nil, "no-line key=n there=printed-last line=the end"},
		{"metric: {name: n, unit: '1', from: n}\noutput: values", "", 0, nil, "no-line key=n there=printed-nothing"},

		{"metric: {name: iops, unit: 1/s, better: higher, from: jobs.0.read.iops}\noutput: json\nalso: [{name: p95, unit: ns, from: jobs.0.read.percentile.95.000000}]",
			`{"jobs": [{"read": {"iops": 1.5e3, "percentile": {"95.000000": 17}}}]}` + "\n", 1500, map[string]float64{"p95": 17}, ""},
		{"metric: {name: iops, unit: 1/s, from: jobs.1.read}\noutput: json", `{"jobs": [{"read": 1}]}`, 0, nil, "no-number-at key=jobs.1.read there=json-list items=1 where=jobs"},
		{"metric: {name: iops, unit: 1/s, from: jobs.0.write}\noutput: json", `{"jobs": [{"read": 1, "name": "x"}]}`, 0, nil, "no-number-at key=jobs.0.write there=json-object names=name, read where=jobs.0"},
		{"metric: {name: iops, unit: 1/s, from: a.b}\noutput: json", `{"a": {"b": "fast"}}`, 0, nil, "no-number-at key=a.b there=json-value value=fast where=a.b"},
		{"metric: {name: iops, unit: 1/s, from: a}\noutput: json", `{"a": -1}`, 0, nil, "no-number-at key=a there=json-value value=-1 where=a"},
		{"metric: {name: iops, unit: 1/s, from: a}\noutput: json", `{"a": 1} and more`, 0, nil, `no-json error=something follows the document there=printed-last line={"a": 1} and more`},
		{"metric: {name: iops, unit: 1/s, from: a}\noutput: json", `{"a": `, 0, nil, `no-json error=unexpected EOF there=printed-last line={"a":`},

		{"metric: {name: rate, unit: 1/s, from: rate}\noutput: csv\nalso: [{name: p99, unit: ms}]", "time,rate,p99\n1,5,2\n2, 6,\"3\"\n", 6, map[string]float64{"p99": 3}, ""},
		{"metric: {name: rate, unit: 1/s, from: speed}\noutput: csv", "time,rate\n1,5\n", 0, nil, "no-column columns=time,rate key=speed"},
		{"metric: {name: rate, unit: 1/s, from: rate}\noutput: csv", "time,rate\n", 0, nil, "no-csv-rows there=printed-last line=time,rate"},
		{"metric: {name: rate, unit: 1/s, from: rate}\noutput: csv", "time,rate\n1,slow\n", 0, nil, "no-number-in-column key=rate text=slow"},
		{"metric: {name: rate, unit: 1/s, from: rate}\noutput: csv", "time,rate\n1\n", 0, nil, "no-csv error=record on line 2: wrong number of fields there=printed-last line=1"},

		{"metric: {name: rating, unit: MIPS, better: higher, match: '^Tot:.* ([0-9]+) *$'}", "Tot: 1 2\nTot:  3 4  \nTotal 5\n", 4, nil, ""},
		{"metric: {name: x, unit: s, match: 'a=(\\S+)|b=\\S+'}", "a=1\nb=2\n", 0, nil, `no-number-matches expression=a=(\S+)|b=\S+ metric=x text=`},
		{"metric: {name: x, unit: s, match: 'a=(\\S+)'}", "a=-2\n", 0, nil, `no-number-matches expression=a=(\S+) metric=x text=-2`},
		{"metric: {name: x, unit: s, match: 'a=(\\S+)'}", "b=2\nfailed: no memory\n", 0, nil, `nothing-matches expression=a=(\S+) metric=x there=printed-last line=failed: no memory`},
		// A time with further figures, and a last line with an expression.
		{"metric: {name: execution time, unit: s}\nalso: [{name: x, unit: '1', match: 'x=([0-9]+)'}]", "x=7\nbye\n", 2, map[string]float64{"x": 7}, ""},
		{"metric: {name: mean, unit: s, from: mean}\nalso: [{name: x, unit: '1', match: 'x=([0-9]+)'}]", "x=7\n{\"mean\": 0.5, \"errors\": 0}\n", 0.5, map[string]float64{"x": 7}, ""},
		{"metric: {name: mean, unit: s, from: mean}\nalso: [{name: x, unit: '1', match: 'x=([0-9]+)'}]", "x=7\n{\"mean\": 0.5, \"errors\": 2}\n", 0, nil, "requests-failed requests=2 said="},
	} {
		w := metricsOf(t, c.metrics)
		v, also, cause := w.Figures(ruler.Result{Stdout: []byte(c.out), Elapsed: 2e9})
		if c.cause != "" {
			if !strings.HasPrefix(cause.String(), c.cause) {
				t.Errorf("%s\nof %q: %s\nwant %s", c.metrics, c.out, cause, c.cause)
			}
			continue
		}
		if cause != nil || v != c.value || fmt.Sprint(also) != fmt.Sprint(orNone(c.also)) {
			t.Errorf("%s\nof %q: %v, %v, %s; want %v, %v", c.metrics, c.out, v, also, cause, c.value, c.also)
		}
	}
}

func orNone(m map[string]float64) map[string]float64 {
	if m == nil {
		return map[string]float64{}
	}
	return m
}

func TestErrorsInMetrics(t *testing.T) {
	for metrics, want := range map[string]string{
		"metric: {name: x}":                                                          "metric: must have a name and a unit: {name: …, unit: …}",
		"metric: {name: x, unit: s, better: more}":                                   `mine/workload.yaml:4: metric: better: "more": must be higher, lower or none`,
		"metric: {name: x, unit: s, from: a, match: (b)}":                            "metric: x: from and match: leave out one of the two",
		"metric: {name: x, unit: s, match: '(b'}":                                    "metric: match: error parsing regexp: missing closing ): `(b`",
		"metric: {name: x, unit: s, match: 'b'}":                                     `metric: match: "b": must have a group in parentheses around the number`,
		"metric: {name: x, unit: s}\noutput: xml":                                    `mine/workload.yaml:5: output: "xml": must be json, values or csv`,
		"metric: {name: x, unit: s}\nalso: [{name: y, unit: s}, {name: y, unit: s}]": `mine/workload.yaml:5: also: - name: "y" is used twice`,
		"metric: {name: x, unit: s}\nalso: [{name: y}]":                              "also: - must have a name and a unit: {name: …, unit: …}",
		"metric: {name: x, unit: s, form: a}":                                        "unknown key form",
	} {
		if _, err := described(metrics); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", metrics, err, want)
		}
	}
}

// An output that was cut off may lack the figure, but not if only the last line is needed.
func TestAnOutputThatWasCutOff(t *testing.T) {
	out := []byte(strings.Repeat("x=7\n", ruler.MaxOutput/4))
	w := metricsOf(t, "metric: {name: x, unit: s, match: 'x=([0-9]+)'}")
	const cause = "output-cut kib=1024"
	if _, _, said := w.Figures(ruler.Result{Stdout: out, Truncated: true}); said.String() != cause {
		t.Error(said)
	}
	if v, _, said := w.Figures(ruler.Result{Stdout: out[:8], Stderr: out, Truncated: true}); said != nil || v != 7 {
		t.Errorf("only its standard error was cut off: %v, %s", v, said)
	}
	if o := w.Order(w.Command, nil, &image.Image{}, Seat{}); o.OutputLimit != ruler.MaxOutput {
		t.Errorf("%d bytes of output are read", o.OutputLimit)
	}
	w = metricsOf(t, "metric: {name: x, unit: s, from: x}")
	if o := w.Order(w.Command, nil, &image.Image{}, Seat{}); o.OutputLimit != outputLimit {
		t.Errorf("%d bytes of output are read", o.OutputLimit)
	}
	if v, _, said := w.Figures(ruler.Result{Stdout: []byte("…\n{\"x\": 1}\n"), Truncated: true}); said != nil || v != 1 {
		t.Errorf("%v, %s", v, said)
	}
	if n := len(Tail(ruler.Result{Stdout: out, Stderr: out})); n != 2*outputLimit {
		t.Errorf("a record has %d bytes of output", n)
	}
}

// A workload without directions and expressions has the same part in a study's hash as before they existed.
func TestTheIdentityOfAWorkload(t *testing.T) {
	type metric struct{ Name, Unit, From string }
	for _, name := range []string{"wordpress", "ladder-fault", "cpu"} {
		w, err := Find(workloads.FS, name, ".")
		if err != nil {
			t.Fatal(err)
		}
		var also []struct { // as notebook.Metric was then
			Name string `json:"name"`
			Unit string `json:"unit"`
		}
		for _, m := range w.Also {
			also = append(also, struct {
				Name string `json:"name"`
				Unit string `json:"unit"`
			}{m.Name, m.Unit})
		}
		want, err := json.Marshal([]any{w.Command, w.Check, w.Service, w.Load, metric{w.Metric.Name, w.Metric.Unit, w.Metric.From}, also})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(w.Identity()); err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, want)
		}
	}
	seen := map[string]string{}
	for _, m := range []string{"from: a", "better: higher", "match: (a)", "match: (b)", "from: a}\noutput: values\nmore: {", "from: a}\nalso: [{name: y, unit: s}]\nmore: {", "from: a}\nalso: [{name: y, unit: s, from: z}]\nmore: {"} {
		text, _, _ := strings.Cut("metric: {name: x, unit: s, "+m+"}", "\nmore")
		b, err := json.Marshal(metricsOf(t, text).Identity())
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[string(b)]; other != "" {
			t.Errorf("%s and %s have the same identity", other, text)
		}
		seen[string(b)] = text
	}
}

func TestParseMetric(t *testing.T) {
	m, err := ParseMetric(`triad=^Triad: +([0-9]{1,9}) MB=,MB/s, higher`)
	if want := (Metric{Metric: notebook.Metric{Name: "triad", Unit: "MB/s", Better: notebook.Higher}, Match: "^Triad: +([0-9]{1,9}) MB="}); err != nil || m != want {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = ParseMetric("cpus=^cpus ([0-9]+),cpus,none")
	w := Workload{Metric: m, Also: []Metric{m}}
	if err != nil || m.Directed() || w.Primary().Better != notebook.Neither || w.Secondary()[0].Better != "" {
		t.Errorf("%+v, %v; primary %+v, secondary %+v", m, err, w.Primary(), w.Secondary())
	}
	for text, want := range map[string]string{
		"":                   `"": must begin with a name and an equals sign, as in NAME=EXPRESSION,UNIT,higher`,
		"=(x),s,lower":       `"=(x),s,lower": must begin with a name and an equals sign`,
		"triad":              `"triad": must begin with a name and an equals sign`,
		"triad=(x)":          `"triad=(x)": an expression, a unit, and higher, lower or none must follow "triad="`,
		"triad=(x),s":        `"triad=(x),s": an expression, a unit, and higher, lower or none must follow "triad="`,
		"triad=(x),s,hihger": `"triad=(x),s,hihger": "hihger": must end in higher or lower, whichever is better, or none where neither is`,
		"triad=(x),,higher":  `"triad=(x),,higher": its unit is missing before ",higher"`,
		"triad=,s,higher":    `"triad=,s,higher": the expression is missing after "triad="`,
		"triad=(x,s,higher":  "\"triad=(x,s,higher\": match: error parsing regexp: missing closing ): `(x`",
		"triad=x,s,higher":   `"triad=x,s,higher": match: "x": must have a group in parentheses around the number`,
	} {
		if _, err := ParseMetric(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

func FuzzParseMetric(f *testing.F) {
	f.Add("triad=^Triad: ([0-9]{1,2}),MB/s,higher")
	f.Add("=,,lower")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetric(text)
		if err != nil {
			return
		}
		w := &Workload{Metric: m}
		if err := w.CheckMetrics(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		w.Figures(ruler.Result{Stdout: []byte(text)})
	})
}

// Any output in each format gives a finite figure of zero or more, or a message of one line with limited length.
func FuzzOutputs(f *testing.F) {
	for _, s := range []string{
		"x=1\ny: 2e3\n", "x nan", `{"x": {"y": [1, {"z": 2}]}, "x.y": 1, "y": 1e400}`, "x,y\n1,2\n", "x,y\n\"1\n", "x=1 y=2 x=3", "{}{}", "\xff\xfe=", strings.Repeat("[", 100), "x=\t", "x==1", "",
	} {
		f.Add([]byte(s), "x.y.1.z", false)
	}
	var all []*Workload
	for _, output := range []string{OutputLine, OutputJSON, OutputValues, OutputCSV} {
		all = append(all, &Workload{Output: output, Metric: Metric{From: "x"}, Also: []Metric{{Metric: notebook.Metric{Name: "y"}}}})
	}
	all = append(all, &Workload{Metric: Metric{Match: `x=(\S*)`}, Also: []Metric{{Metric: notebook.Metric{Name: "y"}, Match: `^y(.*)$`}}})
	f.Fuzz(func(t *testing.T, out []byte, key string, truncated bool) {
		for _, w := range all {
			of := *w
			if of.Metric.From != "" && key != "" {
				of.Metric.From = key
			}
			v, also, cause := of.Figures(ruler.Result{Stdout: out, Truncated: truncated})
			if strings.Contains(cause.String(), "\n") || len(cause.String()) > 4*1000+10*len(key) {
				t.Errorf("%q: a cause of %d bytes: %q", of.Output, len(cause.String()), cause)
			}
			if cause == nil && (!possible(v) || len(also) != 1 || !possible(also["y"])) {
				t.Errorf("%q: %v %v and no failure", of.Output, v, also)
			}
		}
	})
}

// The shipped workloads read the output of the real programs, recorded with sysbench 1.0.20, stress-ng 0.19.02 and 7-Zip 25.01.
func TestFiguresOfRealPrograms(t *testing.T) {
	for _, c := range []struct {
		workload, output string
		value            float64
		also             map[string]float64
	}{
		{"sysbench", "sysbench-cpu", 6763.01, map[string]float64{"latency (95 %)": 0.34, "events": 6771}},
		{"sysbench", "sysbench-memory", 23756.66, map[string]float64{"latency (95 %)": 0.15, "events": 23784}},
		{"stress-ng", "stress-ng", 284188.782798, map[string]float64{"bogo operations per second of CPU time": 145172.053403, "user time": 0.165343, "system time": 1.793264}},
		{"sevenzip", "sevenzip", 8732, map[string]float64{"compressing": 7043, "decompressing": 10420}},
	} {
		w, err := Find(workloads.FS, c.workload, ".")
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.ReadFile("testdata/" + c.output + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		v, also, cause := w.Figures(ruler.Result{Stdout: out})
		if cause != nil || v != c.value || !maps.Equal(also, c.also) || !w.Primary().MoreIsBetter() {
			t.Errorf("%s: %v, %v, %s; want %v, %v", c.output, v, also, cause, c.value, c.also)
		}
		// An output that is cut off before its figures fails the trial.
		if _, _, cause := w.Figures(ruler.Result{Stdout: out[:len(out)/3]}); cause == nil {
			t.Errorf("%s: all figures were found in a third of it", c.output)
		}
	}
}
