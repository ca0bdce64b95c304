package studyfile

import (
	"strings"
	"testing"

	"tare/notebook"
	"tare/workloads"
)

// A command of the user's own has the metrics that its study gives it. A workload has its own metrics.
func TestMetricsOfAStudy(t *testing.T) {
	const commands = `name: mine
workloads:
- {name: command, command: [/stream], METRICS}
platforms: [{platform: bm}]
instances: [1/1GB]
design: {rounds: {floor: 2, cap: 2}, timeout: 1m}
`
	for metrics, want := range map[string]string{
		"metrics: [{name: copy, unit: GB/s, better: higher, match: 'Copy: ([0-9.]+)'}, {name: time, unit: s}]": "",
		"metrics: [{name: copy, unit: GB/s, match: Copy}]":                                                     `s.yaml:3: metrics: metric: match: "Copy": must have a group in parentheses`,
		"metrics: [{name: copy}]": "s.yaml:3: metrics: metric: must have a name and a unit: {name: …, unit: …}",
		"image: x, service: 80, load: /, metrics: [{name: copy, unit: GB/s}]":   "s.yaml:3: metrics: needs a command that prints them, but load: is a page",
		"metrics: [{name: copy, unit: GB/s, better: higher, matches: '(x)'}]":   "s.yaml:3: ",
		"metrics: [{name: copy, unit: GB/s, better: best, match: '([0-9.]+)'}]": `s.yaml:3: metrics: metric: better: "best": must be higher, lower or none`,
	} {
		s, err := Parse("s.yaml", []byte(strings.Replace(commands, "METRICS", metrics, 1)), ".", known)
		if want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", metrics, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		us, err := s.works(workloads.FS)
		if err != nil {
			t.Fatal(err)
		}
		w := us[0].Workload
		if m := w.Primary(); m != (notebook.Metric{Name: "copy", Unit: "GB/s", Better: notebook.Higher}) || len(w.Secondary()) != 1 || w.Also[0].Name != "time" {
			t.Errorf("%+v, %+v", m, w.Also)
		}
		// A search for how many guests fit needs a metric that has to stay low.
		u, err := ParseLimit("p95 < 1.5x", known.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Ask(workloads.FS, Choices{Until: u})
		if err == nil || !strings.Contains(err.Error(), "--limit 'p95 < 1.5x': workload command has a copy where higher is better, but the search for how many guests fit needs a metric where lower is better") {
			t.Errorf("--limit 'p95 < 1.5x': %v", err)
		}
	}
	if _, err := Parse("s.yaml", []byte(strings.Replace(commands, "name: command, command: [/stream], METRICS", "name: cpu, metrics: [{name: x, unit: s}]", 1)), ".", known); err == nil || !strings.Contains(err.Error(), "a workload has its metrics in its own file") {
		t.Error(err)
	}
}

// A load that is a command prints the metrics of a service. The command's own words set its rate and its length, or the study's rate does.
func TestMetricsOfAService(t *testing.T) {
	const metrics = ", metrics: [{name: latency, unit: ms, match: 'latency: ([0-9.]+)'}, {name: tps, unit: 1/s, better: higher, match: 'tps: ([0-9.]+)'}]}]"
	for _, c := range []struct{ use, key, command, err string }{
		{"load: [ask, '{address}', '-T', '2']", "", "ask {address} -T 2", ""},
		{"load: [ask, '{rate}', '{seconds}'], rate: 100", "", "ask 100 2", ""},
		{"load: [ask, '{rate}']", "", "", "load: {rate}, {seconds} and {requests} stand for a rate"},
		{"load: [ask]", "capacity: {objective: p99=50ms}", "", "metrics: reads what the load prints, but the study measures capacity: leave out one of them"},
	} {
		s, err := Parse("s.yaml", []byte("name: mine\nworkloads: [{name: db, image: x, service: 80, "+c.use+metrics+"\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\n"+c.key), ".", known)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.use, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		us, err := s.works(workloads.FS)
		if err != nil {
			t.Fatal(err)
		}
		w := us[0].Workload
		if got := strings.Join(w.Load.Command, " "); got != c.command || w.Metric.Name != "latency" || len(w.Also) != 1 || w.Also[0].Name != "tps" || len(w.Load.Ready) == 0 {
			t.Errorf("%s: %q, %+v, %+v", c.use, got, w.Metric, w.Also)
		}
	}
}
