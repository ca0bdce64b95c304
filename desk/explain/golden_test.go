package explain_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/export"
	"tare/desk/terminal"
	"tare/internal/golden"
	"tare/notebook"
)

// scenes are folders whose account a golden file holds.
var scenes = []struct {
	name  string
	width int
	json  bool
	lab   func() *lab
}{
	{"quick", 80, false, quick},
	{"coarse", 0, false, func() *lab {
		l := quick()
		l.edit = func(x *notebook.Trial) {
			if x.Traced {
				x.Trace.Wall, x.Trace.Spread, x.Trace.Looked = nil, nil, []string{notebook.TracerBandwidth, notebook.TracerCPU}
				x.Trace.Missing = map[string]*notebook.Message{notebook.TracerScheduler: notebook.TextMessage("no BPF: the kernel answers \"operation not permitted\""), notebook.TracerHypervisor: notebook.TextMessage("no tracepoint kvm:kvm_exit")}
			}
		}
		return l
	}},
	{"troubled", 60, false, func() *lab {
		l := newLab().add("bm", one, wall{notebook.WallUser: 2}).add("Docker with --cpus at", one, wall{notebook.WallUser: 2, notebook.WallCore: 0.6}).
			add("cn crun pinned", one, wall{notebook.WallUser: 2.2}).add("cn crun vanilla", large, wall{notebook.WallUser: 2}).add("cn runc pinned", one, wall{notebook.WallUser: 2})
		l.unseen = 0.3
		l.edit = func(x *notebook.Trial) {
			if strings.HasPrefix(x.Treatment, "cn docker") && x.Traced && x.Round < 2 {
				x.Failure = notebook.TextMessage("killed for memory\x1b[2J")
			}
			if strings.HasPrefix(x.Treatment, "cn runc") && x.Traced {
				x.Failure = notebook.TextMessage("the output is wrong")
			}
			if strings.HasPrefix(x.Treatment, "cn crun pinned") && x.Traced {
				x.Trace.Lost = 17
			}
		}
		return l
	}},
	{"service", 0, true, func() *lab {
		l := newLab().add("bm", one, wall{notebook.WallUser: 1, notebook.WallNetwork: 4}).add("Docker with --cpus at", one, wall{notebook.WallUser: 1.3, notebook.WallNetwork: 3.7})
		l.study.Metrics["cpu"] = notebook.Metric{Name: "response time", Unit: "s"}
		l.edit = func(x *notebook.Trial) {
			x.Value, x.Figures = 0.01, map[string]float64{"requests": 400}
			if x.Trace != nil {
				x.Trace.Figures["reads"], x.Trace.Figures["writes"] = 3, 121+float64(x.Round)
			}
			if strings.HasPrefix(x.Treatment, "cn") {
				x.Value = 0.013 * (1 + float64(x.Round)/1000)
			}
		}
		return l
	}},
	{"requests", 0, false, asked},
	{"one-round", 80, false, func() *lab { l := quick(); l.rounds = 1; return l }},
	{"no-bm", 80, false, func() *lab {
		return newLab().add("Docker with --cpus at", one, wall{notebook.WallUser: 2, notebook.WallThrottled: 0.5}).add("cn docker pinned", one, wall{notebook.WallUser: 2})
	}},
}

// asked is a service whose requests were divided.
func asked() *lab {
	l := newLab().add("bm", one, wall{notebook.WallUser: 1, notebook.WallNetwork: 4}).add("Docker with --cpus at", one, wall{notebook.WallUser: 1.3, notebook.WallNetwork: 3.7})
	l.study.Metrics["cpu"], l.study.Explain = notebook.Metric{Name: "response time", Unit: "s"}, notebook.DeepTracers
	l.study.Also = map[string][]notebook.Metric{"cpu": {{Name: "p99", Unit: "s"}}}
	l.edit = requests
	return l
}

// requests makes a trial one of a service whose requests were divided, in ms.
func requests(x *notebook.Trial) {
	guest := 1 + float64(x.Round%5)/500
	mean := map[string]float64{notebook.WallUser: 2, notebook.WallCore: 1, notebook.RequestQueued: 0.5, notebook.RequestLoad: 0.4}
	tail := map[string]float64{notebook.WallUser: 3, notebook.WallCore: 9, notebook.RequestQueued: 4, notebook.RequestLoad: 0.6, notebook.WallBlock: 1}
	if !strings.HasPrefix(x.Treatment, "bm") {
		mean[notebook.WallThrottled], tail[notebook.WallThrottled] = 0.8, 20
		guest *= 1 + float64((7*x.Round+3*x.Index)%4)/100
	}
	all := func(of map[string]float64) (sum float64) {
		for _, k := range notebook.RequestWalls {
			if of[k] > 0 {
				of[k] *= guest / 1000
				sum += of[k]
			}
		}
		return sum
	}
	x.Value, x.Figures = all(mean), map[string]float64{"p99": 0.98 * all(tail)}
	if x.Trace != nil {
		median := map[string]float64{notebook.WallUser: guest * 0.002, notebook.WallCore: guest * 0.0005}
		x.Trace.Requests = &notebook.Requests{Of: notebook.RequestsTimed, N: 5000, Mean: mean, P50: median, P99: tail, ByAll: true}
		for k := range x.Trace.Figures {
			if k != "periods" && k != "throttled_periods" && k != "elapsed_s" {
				delete(x.Trace.Figures, k)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			a := read(t, c.lab().write(t))
			var text, js bytes.Buffer
			if err := terminal.Accounts(&text, a, terminal.Screen{Width: c.width}); err != nil {
				t.Fatal(err)
			}
			if err := export.Accounts(&js, a); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, c.name+".txt", text.Bytes())
			if c.json {
				golden.Check(t, c.name+".json", js.Bytes())
			}
			for i, l := range strings.Split(text.String(), "\n") {
				if n := len([]rune(l)); c.width > 0 && n > c.width {
					t.Errorf("line %d has %d columns of %d: %s", i+1, n, c.width, l)
				}
			}
		})
	}
}

// The JSON of an account of requests says what they are, and what slow ones waited for.
func TestRequestsInJSON(t *testing.T) {
	var js bytes.Buffer
	if err := export.Accounts(&js, read(t, asked().write(t))); err != nil {
		t.Fatal(err)
	}
	var all struct {
		Accounts []struct {
			Of       string
			Requests struct {
				Of    string
				N     int64
				ByAll int `json:"by_all_trials"`
			}
			Slow *struct {
				Seconds struct{ Value float64 }
				Parts   []struct{ Key string }
			}
		}
	}
	if err := json.Unmarshal(js.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Accounts) != 4 {
		t.Fatalf("%d accounts", len(all.Accounts))
	}
	for i, a := range all.Accounts {
		if of := []string{"mean", "p99"}[i%2]; a.Of != of || a.Requests.Of != notebook.RequestsTimed || a.Requests.N != 80000 || a.Requests.ByAll != 16 {
			t.Errorf("%s: %+v", of, a)
		}
		if slow := a.Of == "p99"; slow != (a.Slow != nil) || slow && (a.Slow.Seconds.Value < 0.01 || len(a.Slow.Parts) != len(notebook.RequestWalls)) {
			t.Errorf("%s: slow %+v", a.Of, a.Slow)
		}
	}
}

// The example of docs/explain.md is what comes out.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "quick.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(block, "Docker with --cpus at") {
			found = true
			if want := "    " + strings.ReplaceAll(block, "\n", "\n    ") + "\n"; !strings.Contains(string(doc), want) {
				t.Errorf("docs/explain.md does not have the example as it comes out now:\n%s", want)
			}
		}
	}
	if !found {
		t.Error("no example")
	}
}

// What a narrow terminal has no room for is not missed in silence.
func TestANarrowTerminalSaysWhatItLacks(t *testing.T) {
	a := read(t, quick().write(t))
	for _, c := range []struct {
		width int
		said  bool
	}{{45, true}, {80, false}, {0, false}} {
		var text bytes.Buffer
		if err := terminal.Accounts(&text, a, terminal.Screen{Width: c.width}); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(strings.Fields(text.String()), " ")
		if got := strings.Contains(said, "This terminal is too narrow for the intervals of the shares: a wider one, or --format json, shows them."); got != c.said {
			t.Errorf("%d columns: said %v:\n%s", c.width, got, text.String())
		}
	}
}
