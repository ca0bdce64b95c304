package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tare/desk/advise"
	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

var (
	half  = notebook.Instance{Name: "0.5/1GB", Cores: 0.5, Memory: 1e9}
	one   = notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1e9}
	large = notebook.Instance{Name: "large", Cores: 2, Memory: 8e9}
	at    = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
)

// lab is a folder of results in the making, with made-up trials.
// folders is how many were written: the guests of each began at another time.
var folders int

type lab struct {
	study  notebook.Study
	host   notebook.Host
	rounds int
	cost   map[string]float64 // of treatments, by id; seconds
	noise  float64            // of guests, as a share
	fail   func(treatment string, round, trial int) string
	warn   func(treatment string, round, trial int) string
	ended  string
	also   func(treatment string, value float64) map[string]float64
	stall  func(treatment string, round int) (slower float64, b *notebook.Beside)
	quiet  []notebook.Setting
}

func treatmentOf(platform, engine, accelerator, provisioning string, i notebook.Instance) notebook.Treatment {
	t := notebook.Treatment{
		Workload: "ffmpeg", Params: map[string]string{"segments": "1"}, Platform: platform, Engine: engine, Accelerator: accelerator,
		Provisioning: provisioning, Instance: i,
	}
	t.ID = strings.Join(slices.DeleteFunc([]string{platform, engine, accelerator, provisioning, i.Name}, func(s string) bool { return s == "" }), "/")
	return t
}

func newLab() *lab {
	return &lab{
		study: notebook.Study{
			Tare: "test", Name: "quick", Hash: "h", Seed: 1, Created: at,
			Design:  notebook.Design{Floor: 5, Cap: 20, Precision: 0.05, Trials: 3, Warmups: 1, TimeoutS: 60},
			Metrics: map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}},
			Images:  map[string]notebook.Image{"ffmpeg": {Reference: "debian", Digest: "sha256:1111111111112222", Input: "sha256:3333"}},
		},
		host:   notebook.Host{ID: "aaaaaaaabbbb", Hostname: "bench", Kernel: "6.18", CPUs: []notebook.CPU{{ID: 0}, {ID: 1}}},
		rounds: 5, cost: map[string]float64{}, noise: 0.01, ended: "precise enough",
	}
}

func (l *lab) add(t notebook.Treatment, cost float64) *lab {
	l.study.Treatments = append(l.study.Treatments, t)
	l.cost[t.ID] = cost
	return l
}

func (l *lab) aa(i notebook.Instance, cost float64) *lab {
	t := treatmentOf("bm", "", "", "", i)
	t.AA, t.ID = true, "aa/"+i.Name
	return l.add(t, cost)
}

func (l *lab) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R")
	w, err := notebook.Create(dir, l.study, l.host)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Session(notebook.Session{Time: at, Event: "start", Quiet: l.quiet}))
	if l.ended != "" {
		must(w.Session(notebook.Session{Time: at, Event: "end", Reason: notebook.TextMessage(l.ended)}))
	}
	must(w.Close())
	// A synced line for each trial would take the tests' time.
	var guests, trials bytes.Buffer
	folders++
	g := rand.New(rand.NewPCG(7, uint64(len(l.study.Treatments))))
	for round := range l.rounds {
		for _, tr := range l.study.Treatments {
			if tr.Rounds > 0 && round >= tr.Rounds {
				continue
			}
			guest := notebook.Guest{
				ID: fmt.Sprintf("r%d-%s", round, tr.ID), Treatment: tr.ID, Round: round, Start: at.Add(time.Duration(folders) * time.Hour), Kernel: "6.18",
				RulerCostS: 420e-6 + 1e-6*float64(round), RulerCostN: 20, RoundTripS: 80e-6,
			}
			if tr.Platform == notebook.VM || tr.Platform == notebook.VMCN {
				guest.Kernel, guest.KernelSource = "6.12", "Debian linux-image-cloud-amd64"
				guest.Notes = []*notebook.Message{notebook.TextMessage(fmt.Sprintf("%d of the host's CPU flags are not there", 40+round))}
			}
			must(json.NewEncoder(&guests).Encode(guest))
			level := l.cost[tr.ID] * (1 + l.noise*g.NormFloat64())
			for i := -l.study.Design.Warmups; i < l.study.Design.Trials; i++ {
				x := notebook.Trial{Treatment: tr.ID, Round: round, Guest: guest.ID, Index: max(i, 0), Warmup: i < 0, Start: at}
				x.Value = level * (1 + l.noise/3*g.NormFloat64())
				if l.stall != nil {
					slower, b := l.stall(tr.ID, round)
					x.Value, x.Beside = x.Value*slower, b
				}
				x.ElapsedS, x.HostS = x.Value, x.Value
				if l.also != nil {
					x.Figures = l.also(tr.ID, x.Value)
				}
				if l.fail != nil && i >= 0 {
					x.Failure = notebook.TextMessage(l.fail(tr.ID, round, i))
				}
				if l.warn != nil && i >= 0 {
					if s := l.warn(tr.ID, round, i); s != "" {
						x.Warnings = []*notebook.Message{notebook.TextMessage(s)}
					}
				}
				must(json.NewEncoder(&trials).Encode(x))
			}
		}
	}
	must(os.WriteFile(filepath.Join(dir, "guests.jsonl"), guests.Bytes(), 0o644))
	must(os.WriteFile(filepath.Join(dir, "trials.jsonl"), trials.Bytes(), 0o644))
	return dir
}

func read(t testing.TB, opt data.Options, dirs ...string) *data.Summary {
	t.Helper()
	s, err := data.Read(dirs, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Folders { // a test's folder has another name each time
		s.Folders[i].Dir = fmt.Sprintf("R%d", i+1)
	}
	return s
}

func row(t *testing.T, s *data.Summary, id string) *data.Row {
	t.Helper()
	for i := range s.Rows {
		if s.Rows[i].Treatment.ID == id {
			return s.Rows[i]
		}
	}
	t.Fatalf("no row %q", id)
	return nil
}

func quick() *lab {
	l := newLab()
	for _, i := range []notebook.Instance{one, large} {
		c := 8.0 / i.Cores
		l.add(treatmentOf("bm", "", "", "", i), c).aa(i, c)
		l.add(treatmentOf("cn", "docker", "", "vanilla", i), 1.31*c).add(treatmentOf("cn", "docker", "", "pinned", i), 1.02*c)
		l.add(treatmentOf("cn", "crun", "", "vanilla", i), 1.29*c)
		l.add(treatmentOf("vm", "qemu", "tcg", "vanilla", i), 14*c).add(treatmentOf("vmcn", "crun", "tcg", "pinned", i), 14.5*c)
	}
	l.study.LeftOut = []notebook.LeftOut{{Treatment: treatmentOf("bm", "", "", "", notebook.Instance{Name: "xlarge", Cores: 4, Memory: 16e9}), Reason: notebook.TextMessage("needs 4 cores, this host has 2")}}
	l.warn = func(id string, round, trial int) string {
		if strings.HasPrefix(id, "vm") && round == 2 {
			return fmt.Sprintf("the guest's clock and the host's disagree by 1.%d %%", trial)
		}
		return ""
	}
	l.host.Virtualization = "kvm"
	return l
}

// service has a workload with secondary metrics, at two networks and on a host made smaller.
func service() *lab {
	l := newLab()
	l.study.Metrics["wordpress"] = notebook.Metric{Name: "response time", Unit: "s"}
	l.study.Also = map[string][]notebook.Metric{"wordpress": {{Name: "p50", Unit: "s"}, {Name: "p99", Unit: "s"}, {Name: "requests_per_second", Unit: "1/s"}, {Name: "errors", Unit: "1"}, {Name: "requests", Unit: "1"}}}
	for _, cores := range []int{0, 1} {
		for _, c := range []struct {
			platform, engine, accelerator, provisioning, network string
			cost                                                 float64
		}{
			{"bm", "", "", "", "", 0.04}, {"cn", "docker", "", "vanilla", "bridge", 0.09}, {"cn", "docker", "", "vanilla", "host", 0.08},
			{"cn", "docker", "", "pinned", "bridge", 0.044}, {"vmcn", "docker", "tcg", "vanilla", "bridge", 0.9},
		} {
			t := treatmentOf(c.platform, c.engine, c.accelerator, c.provisioning, one)
			t.Workload, t.Params, t.Network, t.HostCores = "wordpress", nil, c.network, cores
			t.ID += fmt.Sprint(c.network, cores)
			l.add(t, c.cost*(1+0.2*float64(cores)))
		}
	}
	out := treatmentOf("vm", "qemu", "kvm", "pinned", one)
	out.Workload, out.Network, out.HostCores = "wordpress", "bridge", 1
	l.study.LeftOut = []notebook.LeftOut{{Treatment: out, Reason: notebook.TextMessage("this host has no KVM")}}
	l.also = func(_ string, v float64) map[string]float64 {
		return map[string]float64{"p50": 0.8 * v, "p99": 3 * v, "requests_per_second": 4 / v, "errors": 0, "requests": 1000}
	}
	return l
}

// scene is a summary that a golden file holds.
type scene struct {
	name  string
	opt   data.Options
	width int
	labs  func() []*lab
}

// read summarises the scene's folders under the names R0, R1, …: the lines of a text depend on their length.
func (c scene) read(t *testing.T) *data.Summary {
	t.Helper()
	var dirs, names []string
	for i, l := range c.labs() {
		dirs = append(dirs, l.write(t))
		names = append(names, dirs[i], fmt.Sprintf("R%d", i))
	}
	s := read(t, c.opt, dirs...)
	short := strings.NewReplacer(names...).Replace
	for i, d := range s.Doubts {
		switch d := d.(type) {
		case data.FewRounds:
			d.Dir = short(d.Dir)
			s.Doubts[i] = d
		case data.Stalled:
			d.Dir = short(d.Dir)
			s.Doubts[i] = d
		case data.QuietDiffers:
			d.Dir = short(d.Dir)
			s.Doubts[i] = d
		case data.KernelChanged:
			d.Dir = short(d.Dir)
			s.Doubts[i] = d
		}
	}
	return s
}

var scenes = []scene{
	{"quick", data.Options{}, 80, func() []*lab { return []*lab{quick()} }},
	{"kvm", data.Options{}, 0, func() []*lab {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).aa(large, 4)
		l.add(treatmentOf("cn", "runc", "", "pinned", large), 4.1).add(treatmentOf("vm", "qemu", "kvm", "pinned", large), 4.9)
		return []*lab{l.add(treatmentOf("vmcn", "runc", "kvm", "pinned", large), 4.95)}
	}},
	{"ties", data.Options{}, 80, func() []*lab {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).aa(large, 4)
		return []*lab{l.add(treatmentOf("cn", "crun", "", "vanilla", large), 4.01).add(treatmentOf("cn", "crun", "", "pinned", large), 4.02)}
	}},
	{"troubled", data.Options{}, 60, func() []*lab {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).aa(large, 4.4)
		l.add(treatmentOf("cn", "docker", "", "vanilla", large), 4.2).add(treatmentOf("cn", "docker", "", "pinned", large), 8)
		l.add(treatmentOf("cn", "crun", "", "pinned", large), 4).add(treatmentOf("cn", "crun", "", "pinned", half), 16)
		l.fail = func(id string, round, trial int) string {
			switch {
			case id == "cn/crun/pinned/large":
				return fmt.Sprintf("killed for memory after %d.5 s", round)
			case id == "cn/docker/pinned/large" && (round == 1 || trial == 2):
				return "the output has 100 frames, expected 132"
			}
			return ""
		}
		l.rounds, l.ended = 4, "time budget"
		return []*lab{l}
	}},
	{"one-round", data.Options{}, 80, func() []*lab {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 4)
		l.rounds, l.ended = 1, ""
		return []*lab{l}
	}},
	{"known", data.Options{Baseline: map[string]string{"platform": "cn", "instance": "1/1GB"}}, 80, func() []*lab {
		l := newLab().add(treatmentOf("cn", "crun", "", "vanilla", half), 8).add(treatmentOf("cn", "crun", "", "vanilla", one), 4)
		l.study.Design.Precision, l.noise = 0, 0.003
		return []*lab{l}
	}},
	{"hosts", data.Options{}, 100, func() []*lab {
		a, b, c := newLab(), newLab(), newLab()
		for i, l := range []*lab{a, b, c} {
			l.add(treatmentOf("bm", "", "", "", large), 4+float64(i)).add(treatmentOf("cn", "crun", "", "pinned", large), 4.4+1.1*float64(i))
		}
		c.host.ID, c.host.Kernel = "ccccccccdddd", "6.1"
		return []*lab{a, b, c}
	}},
	{"service", data.Options{}, 80, func() []*lab { return []*lab{service()} }},
	{"stalled", data.Options{}, 80, func() []*lab {
		a, b := newLab(), newLab()
		for i, l := range []*lab{a, b} {
			l.add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "vanilla", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 4)
			l.study.Design.Precision, l.noise, l.rounds = 0, 0.003, 20
			l.stall = func(id string, round int) (float64, *notebook.Beside) {
				if id == "cn/crun/vanilla/large" && round%5 == i {
					return 1.4, &notebook.Beside{StolenS: 2.4, OthersS: 0.1, OfS: 8}
				}
				return 1, &notebook.Beside{StolenS: 0.02, OthersS: 0.1, OfS: 8}
			}
		}
		b.quiet = []notebook.Setting{
			{Name: "IRQ affinity", File: "/proc/irq/7/smp_affinity_list", From: "0-1", To: "0"}, {Name: "IRQ affinity", File: "/proc/irq/9/smp_affinity_list", From: "0-1", To: "0"},
			{Name: "address randomisation", File: "/proc/sys/kernel/randomize_va_space", From: "2", To: "0"},
		}
		return []*lab{a, b}
	}},
	{"nothing", data.Options{}, 80, func() []*lab {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 4)
		l.rounds, l.ended = 0, "interrupted"
		return []*lab{l}
	}},
}

// checkHosts compares the JSON of several hosts with their rows.
func checkHosts(t *testing.T, s *data.Summary, text []byte) {
	t.Helper()
	var got struct {
		Headline []string
		Rows     []struct {
			Treatment, Host, Baseline string
			Mean, Ratio               float64
			Rounds                    int
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Rows) != len(s.Rows) || len(got.Headline) != len(s.Hosts) {
		t.Fatalf("%v: %+v", err, got)
	}
	for i, r := range got.Rows {
		want := s.Rows[i]
		if r.Treatment != want.Treatment.ID || r.Host != want.Host || r.Baseline != want.Baseline || r.Mean != want.Mean || r.Ratio != want.Ratio || r.Rounds != want.Rounds {
			t.Errorf("row %d: %+v, want %+v", i, r, want)
		}
	}
	for i, h := range s.Hosts {
		if !strings.Contains(got.Headline[i], " on "+h.Name+" is ") {
			t.Errorf("%q does not name %s", got.Headline[i], h.Name)
		}
	}
}

func TestGolden(t *testing.T) {
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			s := c.read(t)
			var text, rows bytes.Buffer
			if err := terminal.Summary(&text, s, terminal.Screen{Width: c.width}); err != nil {
				t.Fatal(err)
			}
			if err := export.Summary(&rows, s); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, c.name+".txt", text.Bytes())
			switch c.name { // the samples of cmd/tare have the JSON of whole folders
			case "service":
				golden.Check(t, c.name+".json", rows.Bytes())
			case "hosts":
				checkHosts(t, s, rows.Bytes())
			}
		})
	}
}

// What the JSON has for each row, whatever the folder.
func TestJSONKeys(t *testing.T) {
	for _, c := range scenes {
		var b bytes.Buffer
		if err := export.Summary(&b, c.read(t)); err != nil {
			t.Fatal(err)
		}
		var answer struct{ Rows []map[string]any }
		if err := json.Unmarshal(b.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		rows := answer.Rows
		if len(rows) == 0 {
			t.Errorf("%s: no rows", c.name)
		}
		for _, r := range rows {
			delete(r, "secondary_metrics") // of workloads that have secondary metrics
			want := strings.Fields("aa_control accelerator baseline bound_high bound_low change change_high change_low chr decided_at emulated engine failed guests host host_cores instance isolation mean mean_high mean_low metric more_rounds name network notes params platform provisioning ratio ratio_high ratio_low ratio_robust ratio_rounds rounds rounds_disturbed treatment trials unit verdict workload")
			if got := slices.Sorted(maps.Keys(r)); !slices.Equal(got, want) {
				t.Fatalf("%s: keys %v, want %v", c.name, got, want)
			}
			if r["platform"] == "bm" && (r["provisioning"] != nil || r["engine"] != nil) {
				t.Errorf("%s: bm has %v %v", c.name, r["provisioning"], r["engine"])
			}
			if (r["ratio"] == nil || r["ratio_low"] == nil || r["mean"] == nil || r["mean_low"] == nil) && len(r["notes"].([]any)) == 0 {
				t.Errorf("%s: a null without a note: %v", c.name, r)
			}
		}
	}
}

// A kill leaves an incomplete round, and may cut the last record off. The summary says both.
func TestACutFolder(t *testing.T) {
	made := func() *lab {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 5).add(treatmentOf("vm", "qemu", "tcg", "pinned", large), 9)
		l.rounds, l.ended, l.study.Design.Warmups = 3, "", 0
		return l
	}
	for _, c := range []struct {
		name        string
		lab         *lab
		cut         int // lines, and where torn a part of the one before
		torn, begun bool
	}{
		{"whole", made(), 0, false, false},
		{"a trial is missing", made(), 1, false, true},
		{"a trial is torn", made(), 0, true, true},
		{"a guest is missing", made(), 3, false, true},
		{"two guests are missing", made(), 6, false, true},
		{"a round is missing", made(), 9, false, false},
		{"the first is torn", made(), 26, true, false},
		{"emulated for two rounds", func() *lab { l := made(); l.study.Design.Emulated = 2; return l }(), 3, false, false},
		{"of two rounds by itself", func() *lab { l := made(); l.study.Treatments[2].Rounds = 2; return l }(), 0, false, false},
		{"exactly so many were asked for", func() *lab { l := made(); l.study.Design.Cap = 5; return l }(), 9, false, false},
		{"given up", func() *lab {
			l := made()
			l.fail = func(id string, _, _ int) string { return map[bool]string{true: "killed"}[id[:2] == "vm"] }
			return l
		}(), 3, false, false},
	} {
		dir := c.lab.write(t)
		path := filepath.Join(dir, "trials.jsonl")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(raw, []byte("\n"))
		raw = bytes.Join(lines[:len(lines)-1-c.cut], nil)
		if c.torn {
			raw = raw[:len(raw)-9]
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		s := read(t, data.Options{}, dir)
		notes := strings.Join(words.Doubts(s.Doubts), "\n")
		if got := strings.Contains(notes, "its last record was cut off and does not count; the same `tare run` repeats that run"); got != c.torn || s.Folders[0].Torn != c.torn {
			t.Errorf("%s: torn %v: %s", c.name, got, notes)
		}
		want := fmt.Sprintf("%d of at least 5 rounds were run; ", s.Folders[0].Rounds)
		if c.begun {
			want = "3 of at least 5 rounds were begun, the last of them incomplete; "
		}
		if c.lab.study.Design.Floor == c.lab.study.Design.Cap {
			want = strings.Replace(want, "at least ", "", 1)
		}
		if s.Folders[0].Begun != c.begun || !strings.Contains(notes, want) {
			t.Errorf("%s: begun %v: %s", c.name, s.Folders[0].Begun, notes)
		}
	}
}

// A time budget that was set before the first round is a fact about a run, and a doubt only where there are few rounds or a rule looks at them.
func TestTheTimeBudgetEndsARun(t *testing.T) {
	for _, c := range []struct {
		rounds, floor, most int
		want                string
	}{
		{5, 100, 100, "\n  %s: the time budget ended the run after 5 of 100 rounds.\n"},
		{4, 100, 100, "\n  ! %s: the time budget ended the run after 4 of 100 rounds.\n"},
		{5, 10, 20, "\n  ! %s: 5 of at least 10 rounds were run; its last session ended: time budget.\n"},
	} {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 5)
		l.rounds, l.ended, l.study.Design.Floor, l.study.Design.Cap = c.rounds, "time budget", c.floor, c.most
		dir := l.write(t)
		var got strings.Builder
		if err := terminal.Answer(&got, read(t, data.Options{}, dir), false, terminal.Screen{Width: 200}); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(c.want, dir); !strings.Contains(got.String(), want) {
			t.Errorf("%q is not in %s", want, got.String())
		}
	}
}

// A check that holds says what it could have missed.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		verdict   data.Verdict
		want      string
	}{
		{0.4, 1.8, data.Holds, "; this run cannot resolve differences below 70 %"},
		{0.99, 1.02, data.Holds, "; this run cannot resolve differences below 1.5 %"},
		{0.9996, 1.0002, data.Holds, "; this run cannot resolve differences below 0.030 %"},
		{1, 1, data.Holds, ""},
		{1.1, 1.2, data.Misses, ""},
		{math.NaN(), math.NaN(), data.NotKnown, ""},
	} {
		if got := words.Unseen(data.AACheck{Low: c.low, High: c.high, Verdict: c.verdict}); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

func TestTableFits(t *testing.T) {
	for _, c := range scenes {
		s := c.read(t)
		var plain, coloured bytes.Buffer
		if err := terminal.Summary(&plain, s, terminal.Screen{Width: 80}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(plain.String()) {
			if strings.Contains(line, " tare ") {
				continue // somebody copies a command, so it is not broken
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", c.name, n, line)
			}
		}
		if err := terminal.Summary(&coloured, s, terminal.Screen{Width: 80, Colour: true}); err != nil {
			t.Fatal(err)
		}
		if got := strings.NewReplacer("\x1b[1m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(coloured.String()); got != plain.String() {
			t.Errorf("%s: colour changes the text", c.name)
		}
	}
}

// An emulated VM has fewer rounds than bare metal by design, and so has a treatment whose result is known early. That is not a failure. One round has no interval.
func TestFewerRoundsByDesign(t *testing.T) {
	one := "no interval: one round only; at least two are needed"
	for rounds, want := range map[int]int{1: 3, 3: 2} {
		vm := treatmentOf("vm", "qemu", "tcg", "vanilla", large)
		vm.Rounds = rounds
		s := read(t, data.Options{}, newLab().add(treatmentOf("bm", "", "", "", large), 4).add(vm, 56).write(t))
		if got := words.Doubts(s.Rows[1].Doubts); len(got) != want || slices.Contains(got, one) != (rounds == 1) {
			t.Errorf("%d rounds of 5: %q", rounds, got)
		}
	}
}

// Columns that do not fit in one table follow below: no value is lost at any width.
func TestNoFigureIsLostInANarrowTerminal(t *testing.T) {
	for _, c := range scenes {
		s := c.read(t)
		var wide bytes.Buffer
		if err := terminal.Summary(&wide, s, terminal.Screen{}); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{60, 80} {
			var narrow bytes.Buffer
			if err := terminal.Summary(&narrow, s, terminal.Screen{Width: width}); err != nil {
				t.Fatal(err)
			}
			shown := strings.Fields(narrow.String())
			for _, word := range strings.Fields(wide.String()) {
				if strings.ContainsAny(word, "0123456789") && !slices.Contains(shown, word) {
					t.Errorf("%s: %s is not shown in %d columns", c.name, word, width)
				}
			}
		}
	}
}

func TestANarrowRankingSaysWhatItLacks(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "docker", "", "pinned", large), 4.4)
	a, err := advise.Of(read(t, data.Options{}, l.write(t)), advise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for width, want := range map[int]bool{60: true, 100: false, 0: false} {
		var b bytes.Buffer
		if err := terminal.Advice(&b, a, terminal.Screen{Width: width}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "too narrow for the ratios to bare metal"); got != want {
			t.Errorf("%d columns: said %v:\n%s", width, got, b.String())
		}
	}
}

func TestSecondaryMetricsInJSON(t *testing.T) {
	var b bytes.Buffer
	if err := export.Summary(&b, read(t, data.Options{}, service().write(t))); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Rows []struct {
			Platform string
			Also     []struct {
				Name, Unit      string
				Mean, Low, High *float64
				Rounds          int
			} `json:"secondary_metrics"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	for _, r := range answer.Rows {
		if len(r.Also) != 5 || r.Also[1].Name != "p99" || r.Also[1].Unit != "s" || r.Also[1].Rounds != 5 || !(*r.Also[1].Low < *r.Also[1].Mean && *r.Also[1].Mean < *r.Also[1].High) || *r.Also[4].Mean != 1000 {
			t.Errorf("%+v", r)
		}
	}
}

func TestRatiosAndVerdicts(t *testing.T) {
	s := read(t, data.Options{}, quick().write(t))
	if r := row(t, s, "cn/docker/pinned/1/1GB"); !(math.Abs(r.Ratio-1.02) < 0.03) || r.RatioRounds != 5 || r.Trials != 15 || r.Guests != 5 || r.DotsOf != 15 || len(r.Dots) != 15 || r.Baseline != "bm/1/1GB" {
		t.Errorf("%+v", r)
	}
	for _, a := range s.AA {
		if a.Verdict != data.Holds {
			t.Errorf("%+v", a)
		}
	}
	if len(s.AA) != 2 || len(s.Ruler) != 5 || s.Ruler[0].Guests != 20 || s.Ruler[0].Median != 422e-6 {
		t.Errorf("%+v %+v", s.AA, s.Ruler)
	}
	if len(s.Warnings) != 1 || s.Warnings[0].Count != 12 || len(s.Warnings[0].Treatments) != 4 {
		t.Errorf("%+v", s.Warnings)
	}
	// An emulated VM is never ranked, even where it would win.
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 5).add(treatmentOf("vm", "qemu", "tcg", "pinned", large), 3)
	s = read(t, data.Options{}, l.write(t))
	if r := row(t, s, "vm/qemu/tcg/pinned/large"); r.Representative || !(r.Ratio < 1) {
		t.Errorf("%+v", r)
	}
	if strings.Contains(answer(s), "in a VM") || !strings.Contains(answer(s), "FFmpeg in crun is ") || !strings.Contains(answer(s), "VMs were emulated") {
		t.Error(answer(s))
	}
}

// A round in which one of the two has no value counts in neither mean of the ratio.
func TestRatioPairsRounds(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 8)
	l.fail = func(id string, round, _ int) string {
		if id == "bm/large" && round == 3 {
			return "killed"
		}
		return ""
	}
	r := row(t, read(t, data.Options{}, l.write(t)), "cn/crun/pinned/large")
	if r.Rounds != 5 || r.RatioRounds != 4 || !strings.Contains(strings.Join(words.Doubts(r.Doubts), "\n"), "the ratio is over the 4 rounds that this and bare metal both have; 1 more has only this") {
		t.Errorf("%+v", r)
	}
}

// A folder named twice, or a copy of one, would count its rounds twice.
func TestTheSameFolderTwiceIsRefused(t *testing.T) {
	a := newLab().add(treatmentOf("bm", "", "", "", large), 4).write(t)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(a)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{a, a + "/.", copied} {
		if _, err := data.Read([]string{a, b}, data.Options{}); err == nil || !strings.Contains(err.Error(), "name each folder once") {
			t.Errorf("%s and %s: %v", a, b, err)
		}
	}
}

// Rounds of several folders of one host are one row's; those of another host are not.
func TestFoldersMerge(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4).add(treatmentOf("cn", "crun", "", "pinned", large), 8)
	a, b := l.write(t), l.write(t)
	alone, both := read(t, data.Options{}, a), read(t, data.Options{}, a, b)
	if len(both.Rows) != 2 || both.Rows[1].Rounds != 10 || both.Rows[1].Trials != 30 || both.Rows[1].Guests != 10 || both.Rows[1].Ratio != alone.Rows[1].Ratio {
		t.Errorf("%+v", both.Rows)
	}
	other := newLab().add(treatmentOf("bm", "", "", "", large), 4)
	other.study.Images["ffmpeg"] = notebook.Image{Digest: "sha256:9"}
	if s := read(t, data.Options{}, a, other.write(t)); len(s.Rows) != 3 {
		t.Errorf("another image shares a row: %+v", s.Rows)
	}
}

func TestBaseline(t *testing.T) {
	dir := quick().write(t)
	for _, c := range []struct {
		base map[string]string
		want string
	}{
		{map[string]string{"platform": "cn"}, "--against cn: 3 environments fit for ffmpeg at 1/1GB; name one of: cn:docker:quota; cn:docker:set; cn:crun:quota"},
		{map[string]string{"platform": "cn", "engine": "lxc"}, "--against cn:lxc: no such environment was measured; name one of: bm; cn:docker:quota"},
		{map[string]string{"colour": "red"}, `unknown key "colour"; allowed: platform, engine, accelerator, kernel, provisioning, instance, network, isolation, machine, host_cores, or a parameter of ffmpeg`},
		{map[string]string{"platform": "vm"}, "--against vm: it was emulated here"},
	} {
		_, err := data.Read([]string{dir}, data.Options{Baseline: c.base})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.base, err, c.want)
		}
	}
	s := read(t, data.Options{Baseline: map[string]string{"platform": "cn", "engine": "docker", "provisioning": "pinned"}}, dir)
	if r := row(t, s, "bm/large"); !(r.Ratio < 1) || r.Baseline != "cn/docker/pinned/large" {
		t.Errorf("%+v", r)
	}
	if s.AA[0].Verdict != data.Holds || !(math.Abs(s.AA[0].Ratio-1) < 0.02) {
		t.Errorf("the A/A check is always against bare metal: %+v", s.AA[0])
	}
}

// Treatments that differ only in their network or the host's cores can be chosen, and a row's own go first.
func TestBaselineOfSeveralNetworksAndHosts(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4)
	for _, n := range []string{"bridge", "host"} {
		for _, cores := range []int{0, 1} {
			for _, p := range []string{"vanilla", "pinned"} {
				tr := treatmentOf("cn", "docker", "", p, large)
				tr.Network, tr.HostCores = n, cores
				tr.ID += fmt.Sprintf("/%s/%d", n, cores)
				l.add(tr, 5)
			}
		}
	}
	dir := l.write(t)
	base := func(more map[string]string) map[string]string {
		m := map[string]string{"platform": "cn", "provisioning": "pinned"}
		maps.Copy(m, more)
		return m
	}
	for _, c := range []struct {
		more map[string]string
		want string
	}{
		{nil, "2 environments fit for ffmpeg at large; name one of: cn:docker:set:bridge; cn:docker:set:host"},
		{map[string]string{"network": "none"}, "cn:docker:set:bridge,host_cores=1"},
		{map[string]string{"network": "bridge", "host_cores": "7"}, "no such environment was measured"},
	} {
		if _, err := data.Read([]string{dir}, data.Options{Baseline: base(c.more)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.more, err, c.want)
		}
	}
	for _, c := range []struct {
		more      map[string]string
		row, want string
	}{
		{map[string]string{"network": "bridge"}, "bm/large", "cn/docker/pinned/large/bridge/0"},
		{map[string]string{"network": "bridge"}, "cn/docker/vanilla/large/host/1", "cn/docker/pinned/large/bridge/1"},
		{map[string]string{"network": "host", "host_cores": "1"}, "cn/docker/vanilla/large/bridge/0", "cn/docker/pinned/large/host/1"},
		{map[string]string{"network": "host", "host_cores": "2"}, "cn/docker/vanilla/large/bridge/1", "cn/docker/pinned/large/host/0"},
	} {
		s := read(t, data.Options{Baseline: base(c.more)}, dir)
		if r := row(t, s, c.row); r.Baseline != c.want {
			t.Errorf("%v: %s has the baseline %s, want %s", c.more, c.row, r.Baseline, c.want)
		}
	}
}

// A guest has a part in failures' texts: what it sends reaches no terminal as commands, nor in any length.
func TestTableIsSafeForATerminal(t *testing.T) {
	l := newLab().add(treatmentOf("bm", "", "", "", large), 4)
	l.fail = func(string, int, int) string { return "said \x1b[2J\x07\u202e" + strings.Repeat("x", 10_000) }
	var b bytes.Buffer
	if err := terminal.Summary(&b, read(t, data.Options{}, l.write(t)), terminal.Screen{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u202e") || b.Len() > 3000 {
		t.Errorf("%d bytes: %q", b.Len(), b.String())
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := data.Read(nil, data.Options{}); err == nil {
		t.Error("no folder")
	}
	if _, err := data.Read([]string{t.TempDir()}, data.Options{}); err == nil || !strings.Contains(err.Error(), "is not a results folder") {
		t.Error(err)
	}
}

// Of starts under load the summary has what a choice is made by, and says where the rest is.
func TestStartsUnderLoad(t *testing.T) {
	s, err := data.Read([]string{notebooktest.Raised().Write(t)}, data.Options{Kinds: kinds.All})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := terminal.Summary(&text, s, terminal.Screen{Width: 160}); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text.Bytes(), []byte("hashing (rate=8) on"))
	part, _, found := bytes.Cut(rest, []byte("\n\nhashing"))
	if !found {
		t.Fatalf("no rate of 8 in\n%s", text.Bytes())
	}
	golden.Check(t, "bring-up.txt", append(part, '\n'))
}
