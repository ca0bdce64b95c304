package notebook

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The metrics of a kind of study, and of neighbours, have their keys in a folder of format 1, also in trials that this version added. A name
// that a workload's author chose stays, even if it is one of those.
func TestMetricsOfFormat1(t *testing.T) {
	defer func(before map[string]MetricNames) { earlierNames = before }(maps.Clone(earlierNames))
	Renames("orbits", MetricNames{"apogee, %s": "apogee_%s", "time (%s at %s)": "time(%s,%s)", "speed": "speed_mean"})
	const study = `{"version":1,"tare":"0","name":"s","source":"","hash":"","seed":1,"created":"2026-01-01T00:00:00Z","design":{},%s
		"metrics":{"w":{"name":"apogee, high","unit":"km"}},"also":{"w":[{"name":"speed","unit":"1"},{"name":"own share","unit":"1"},{"name":"fairness","unit":"1"}]},
		"figures":[{"name":"f","title":"t","workload":"w","metric":"speed","by":"instance"}],
		"treatments":[{"id":"a","workload":"w","params":{%s},"platform":"bm","provisioning":"pinned","instance":{"name":"l","cores":1,"memory":1}}],"images":{}}`
	const old, new = `{"apogee, high":1,"time (p99 at 2ms)":2,"speed":3,"own share":4}`, `{"apogee_high":1,"time(p99,2ms)":2,"speed_mean":3,"own_share":4}`
	const beside = `"neighbours":"cpu:1"`
	for name, c := range map[string]struct {
		kind, params string
		metrics      []string // of the study
		figure       string
		figures      string // of a trial with the old names
	}{
		"of a kind":              {`"kind":"orbits","orbits":{},`, "", []string{"apogee_high", "speed_mean", "own share", "fairness"}, "speed_mean", `{"apogee_high":1,"own share":4,"speed_mean":3,"time(p99,2ms)":2}`},
		"of a kind, neighbours":  {`"kind":"orbits","orbits":{},`, beside, []string{"apogee_high", "speed_mean", "own_share", "fairness"}, "speed_mean", `{"apogee_high":1,"own_share":4,"speed_mean":3,"time(p99,2ms)":2}`},
		"of no kind":             {"", "", []string{"apogee, high", "speed", "own share", "fairness"}, "speed", `{"apogee, high":1,"own share":4,"speed":3,"time (p99 at 2ms)":2}`},
		"of no kind, neighbours": {"", beside, []string{"apogee, high", "speed", "own_share", "fairness"}, "speed", `{"apogee, high":1,"own_share":4,"speed":3,"time (p99 at 2ms)":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(file, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(studyFile, strings.Replace(strings.Replace(study, "%s", c.kind, 1), "%s", c.params, 1))
			write(hostFile, "{}")
			write(guestsFile, "")
			write(sessionsFile, "")
			trial := `{"treatment":"a","round":0,"guest":"","trial":0,"start":"2026-01-01T00:00:00Z","value":1,"elapsed_s":1,"host_s":1,"exit":0,"usage":{},"figures":`
			write(trialsFile, trial+old+"}\n"+trial+new+"}\n")
			for range 2 { // the second time as a folder that went on
				f, err := Read(dir)
				if err != nil {
					t.Fatal(err)
				}
				got := []string{f.Study.Metrics["w"].Name}
				for _, m := range f.Study.Also["w"] {
					got = append(got, m.Name)
				}
				if !slices.Equal(got, c.metrics) || f.Study.Figures[0].Metric != c.figure {
					t.Errorf("metrics %q, the figure's %q, want %q and %q", got, f.Study.Figures[0].Metric, c.metrics, c.figure)
				}
				for i, want := range []string{c.figures, `{"apogee_high":1,"own_share":4,"speed_mean":3,"time(p99,2ms)":2}`} {
					n := 0
					if err := f.Trials(func(x *Trial) error {
						if got, _ := json.Marshal(x.Figures); n == i && string(got) != want {
							t.Errorf("trial %d: %s, want %s", i, got, want)
						}
						n++
						return nil
					}); err != nil {
						t.Fatal(err)
					}
				}
				w, err := Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// An author may give a metric the name that one of neighbours had: in a folder of this format it stays.
func TestAnAuthorsMetricKeepsItsName(t *testing.T) {
	s := Study{
		Metrics: map[string]Metric{"w": {Name: "time"}}, Also: map[string][]Metric{"w": {{Name: "own share"}, OwnShare, Fairness}},
		Treatments: []Treatment{{ID: "a", Workload: "w", Factors: map[string]string{FactorNeighbours.Name: "cpu:1"}}},
	}
	x := Trial{Figures: map[string]float64{"own share": 1, OwnShare.Name: 2}}
	if x.rename(s.metrics()["a"]); x.Figures["own share"] != 1 || x.Figures[OwnShare.Name] != 2 {
		t.Errorf("%v", x.Figures)
	}
}
