package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/internal/golden"
	"tare/notebook"
	"tare/stats"
)

func estimate1(v, half float64) stats.Estimate {
	return stats.Estimate{Value: v, Low: v - half, High: v + half, N: 5}
}

// part is one of an account, told from nothing where half is less than its size.
func part(key string, v, half, gap float64) explain.Part {
	p := explain.Part{Key: key, Seconds: estimate1(v, half), Share: stats.Quotient{Value: nan, Low: nan, High: nan}}
	if gap != 0 {
		p.Share = stats.Quotient{Value: v / gap, Low: (v - half) / gap, High: (v + half) / gap, N: 5}
	}
	return p
}

// hump is a distribution of so many values around a time.
func hump(role, what, of string, n int64, around float64) notebook.Distribution {
	d := notebook.Distribution{Role: role, What: what, Of: of, Unit: "s"}
	at := int(math.Log2(around * 1e9))
	d.Counts = make([]int64, at+4)
	for i, share := range []int64{5, 20, 40, 25, 8, 2} {
		d.Counts[at-2+i] = n * share / 100
	}
	d.Sum = float64(n) * around
	return d
}

// account0 is an account whose parts add up to its gap.
func account0(r, base *data.Row, parts ...explain.Part) *explain.Account {
	a := &explain.Account{Row: r, Baseline: base, Rounds: 5, Traced: 15, Emulated: !r.Representative,
		Parts: parts, TracerCost: stats.Quotient{Value: 1.012, Low: 1.004, High: 1.02, N: 5}}
	gap := 0.0
	for _, p := range parts {
		gap += p.Seconds.Value
	}
	a.Overhead = estimate1(gap, 0.08)
	a.Elapsed = estimate1(3.9+gap, 0.1)
	a.Times = stats.Quotient{Value: (3.9 + gap) / 3.9, Low: 1, High: 2, N: 5}
	return a
}

// explainedSample is a study with traced trials: a throttled container, a container that costs next to nothing, a container without
// data of the scheduler, and an emulated VM.
func explainedSample() *explain.Accounts {
	s := sample("large")
	bm := s.Rows[0]
	acc := &explain.Accounts{Summary: s, Doubts: []data.Doubt{explain.Untraced{Folders: 1}}}
	b := &explain.Account{Row: bm, Rounds: 5, Traced: 15, Elapsed: estimate1(3.9, 0.05), TracerCost: stats.Quotient{Value: 1.01, Low: 0.99, High: 1.03, N: 5}}
	b.Spread = []notebook.Distribution{hump("work", notebook.OnCPU, "", 3000, 3e-3), hump("work", notebook.RunQueue, "", 3000, 8e-6), hump("work", notebook.OffCPU, notebook.WallFutex, 900, 4e-4), hump("work", notebook.BlockIO, "vda write", 300, 9e-4)}
	acc.Accounts = append(acc.Accounts, b)

	gap := 1.209
	d := account0(s.Rows[2], bm, part(explain.User, 0.03, 0.05, gap), part(explain.System, 0.11, 0.02, gap), part(explain.Throttled, 1.02, 0.07, gap),
		part(explain.Core, 0.19, 0.04, gap), part(explain.IO, 0, 0, gap), part(explain.Waiting, -0.211, 0.05, gap),
		part(explain.Hypervisor, 0, 0, gap), part(explain.Unexplained, 0.07, 0.11, gap))
	d.Lost, d.Failed = 12, 1
	d.Stacks = []notebook.Stack{{Frames: []string{"schedule", "futex_wait_queue", "futex_wait", "do_futex", "__x64_sys_futex", "do_syscall_64"}, Seconds: 1.31, Count: 2204}}
	d.Doubts = []data.Doubt{explain.SomeTracedFailed{Failed: 1, Of: 15, Cause: notebook.TextMessage("killed after 120 s")}, explain.EventsLost{Events: 12}, explain.TracerMissing{Tracer: "hypervisor", Why: data.Missing{Why: notebook.TextMessage("no tracepoint kvm:kvm_exit here")}, Partly: true}}
	d.Spread = []notebook.Distribution{
		hump("work", notebook.OnCPU, "", 5200, 1.4e-3), hump("work", notebook.RunQueue, "", 5200, 9e-5), hump("work", notebook.OffCPU, notebook.WallThrottled, 431, 5e-2),
		hump("work", notebook.OffCPU, notebook.WallFutex, 800, 4e-4), hump("work", notebook.BlockIO, "vda write", 310, 1e-3), hump("ruler", notebook.OnCPU, "", 9, 1e-5), {Role: "work", What: notebook.OffCPU, Of: notebook.WallSleep, Unit: "s"},
	}
	d.Figures = []explain.Figure{
		{Name: "throttled_periods", Of: "throttled_periods", Unit: "1", Mean: estimate1(28.7, 2.1)},
		{Name: "vda.written_bytes", Of: "written_bytes", Unit: "B", Mean: estimate1(9.1e6, 1e5), Before: estimate1(9.0e6, 1e5), More: estimate1(1e5, 1.4e5)},
		{Name: "run_s", Of: "run_s", Unit: "s", Mean: estimate1(7.9, 0.2), Before: estimate1(7.7, 0.2), More: estimate1(0.2, 0.1)},
	}
	acc.Accounts = append(acc.Accounts, d)

	p := account0(s.Rows[3], bm, part(explain.User, 0.02, 0.05, 0), part(explain.System, 0.03, 0.04, 0), part(explain.Unexplained, 0.028, 0.09, 0))
	p.TracerCost = stats.Quotient{Value: 1.004, Low: 0.99, High: 1.02, N: 5}
	acc.Accounts = append(acc.Accounts, p)

	c := account0(s.Rows[4], bm, part(explain.User, 0.02, 0.01, 1.1), part(explain.Throttled, 0.5, 0.1, 1.1), part(explain.Unexplained, 0.58, 3, 1.1))
	c.Coarse, c.Doubts = true, []data.Doubt{explain.Coarse{Why: data.Missing{Why: notebook.TextMessage("BPF programs cannot be loaded: operation not permitted")}}}
	c.TracerCost = stats.Quotient{Value: nan, Low: nan, High: nan}
	acc.Accounts = append(acc.Accounts, c)

	v := account0(s.Rows[6], bm, part(explain.User, 20, 1, 51.5), part(explain.System, 1.5, 0.3, 51.5), part(explain.Hypervisor, 28, 1, 51.5), part(explain.Unexplained, 2, 0.4, 51.5))
	v.Spread = []notebook.Distribution{hump("vcpu", notebook.OnCPU, "", 52000, 1.4e-3), hump("emulator", notebook.OnCPU, "", 5200, 1e-5)}
	v.Inside = []notebook.Distribution{hump("work", notebook.OnCPU, "", 5200, 1.4e-2)}
	acc.Accounts = append(acc.Accounts, v)

	w := account0(s.Rows[2], s.Rows[3], part(explain.Throttled, 1.0, 0.07, 1.13), part(explain.Unexplained, 0.13, 0.11, 1.13))
	w.Against = explain.Against{Provisioning: "pinned"}
	acc.Versus = append(acc.Versus, w)
	return acc
}

func accountsPage(t *testing.T, acc *explain.Accounts) []string {
	t.Helper()
	files, err := write(acc.Summary, acc, t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// drawing is what a golden file leaves out of a page: how its figures are drawn.
var drawing = regexp.MustCompile(`(?s)</desc>.*?</svg>`)

func TestWhy(t *testing.T) {
	files := accountsPage(t, explainedSample())
	page, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "why.html", drawing.ReplaceAll(golden.Excerpt(t, page, `<article id="why-1">`, "</article>"), []byte("…</svg>")))
	for _, want := range []string{`<a href="#breakdown">Time breakdown</a>`, "The tracers lost 12 events", "no tracepoint kvm:kvm_exit here", "1 of 15 traced trials failed", "1.012 (1.004 to 1.020) times as long", "Coarse: nothing followed the scheduler", "not distinguishable from none", "at large is faster than a CPU quota here"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Without traced trials there is no such section.
func TestNothingExplained(t *testing.T) {
	if acc, err := explained(sample("large")); acc != nil || err != nil {
		t.Errorf("%v, %v", acc, err)
	}
	page, err := os.ReadFile(samplePage(t, sample("large")))
	if err != nil || bytes.Contains(page, []byte("Why it costs that")) || bytes.Contains(page, []byte("#why")) {
		t.Errorf("there is a section of accounts without traced trials: %v", err)
	}
}

// Whatever numbers and names an account has, it is drawn.
func TestWildAccounts(t *testing.T) {
	const evil = "</svg><script>alert(1)</script>\u202e\x00"
	inf := math.Inf(1)
	for _, v := range []float64{0, 1e-9, -3, 1e12, inf, nan} {
		acc := explainedSample()
		for _, a := range acc.Accounts {
			a.Against, a.Doubts = explain.Against{Provisioning: evil}, []data.Doubt{explain.TracerMissing{Tracer: evil, Why: data.Missing{Why: notebook.TextMessage(evil)}}}
			a.Overhead.Value, a.Elapsed.High, a.Lost = v, v, -1
			for j := range a.Parts {
				a.Parts[j].Seconds.Value, a.Parts[j].Seconds.Low, a.Parts[j].Key = v, -inf, evil
			}
			for j := range a.Spread {
				a.Spread[j].Of, a.Spread[j].Sum, a.Spread[j].Counts = evil, v, append(a.Spread[j].Counts, make([]int64, 70)...)
				a.Spread[j].Counts[69] = 1
			}
		}
		for _, f := range accountsPage(t, acc) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte("<script>")) || bytes.Contains(data, []byte("NaN")) && !strings.HasSuffix(f, ".pdf") {
				t.Errorf("%g: %s holds what it must not", v, f)
			}
			for d := xml.NewDecoder(bytes.NewReader(data)); strings.HasSuffix(f, ".svg"); {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", f, err)
					break
				}
			}
		}
	}
}

// A folder with traced trials gives the section by itself.
func TestExplainedFolder(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	size := instance("1/1GB", 1, 1)
	bm := notebook.Treatment{ID: "bm", Workload: "cpu", Platform: notebook.BM, Instance: size}
	cn := notebook.Treatment{ID: "cn", Workload: "cpu", Platform: notebook.CN, Engine: "runc", Provisioning: notebook.Vanilla, Instance: size}
	study := notebook.Study{
		Version: notebook.Version, Tare: "0.4.0", Name: "throttled", Source: "name: throttled\n", Created: at, Explain: notebook.DefaultTracers,
		Design: notebook.Design{Floor: 4, Cap: 4, Trials: 1}, Metrics: map[string]notebook.Metric{"cpu": {Name: "execution time", Unit: "s"}},
		Images: map[string]notebook.Image{"cpu": {Digest: "sha256:1"}}, Treatments: []notebook.Treatment{bm, cn},
	}
	dir := filepath.Join(t.TempDir(), "E")
	w, err := notebook.Create(dir, study, notebook.Host{ID: "h", Hostname: "bench", Kernel: "6.18", CPUs: []notebook.CPU{{ID: 0}}})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Session(notebook.Session{Time: at, Event: "start"}))
	for round := range 4 {
		for _, tr := range study.Treatments {
			id := fmt.Sprintf("%s-%d", tr.ID, round)
			must(w.Guest(notebook.Guest{ID: id, Treatment: tr.ID, Round: round, Start: at}))
			wall := map[string]float64{notebook.WallUser: 1 + 0.001*float64(round)}
			spread := []notebook.Distribution{hump("work", notebook.OnCPU, "", 100, 1e-2)}
			if tr.Platform == notebook.CN {
				wall[notebook.WallThrottled] = 0.8 - 0.002*float64(round)
				spread = append(spread, hump("work", notebook.OffCPU, notebook.WallThrottled, 16, 5e-2))
			}
			took := wall[notebook.WallUser] + wall[notebook.WallThrottled]
			x := notebook.Trial{Treatment: tr.ID, Round: round, Guest: id, Start: at, Value: took, ElapsedS: took, HostS: took}
			must(w.Trial(x))
			x.Traced, x.Trace = true, &notebook.Trace{Looked: notebook.DefaultTracers, Wall: wall, Spread: spread}
			x.Value, x.ElapsedS = took*1.01, took*1.01
			must(w.Trial(x))
		}
	}
	must(w.Session(notebook.Session{Time: at, Event: "end", Reason: notebook.TextMessage("cap on rounds")}))
	must(w.Close())
	files, err := readAndWrite(dir, dir)
	must(err)
	page, err := os.ReadFile(files[0])
	must(err)
	for _, want := range []string{"<h2>Time breakdown</h2>", "runc, CPU quota, 1/1GB: cpu</h3>", "throttled: 0.797 s", "unexplained: 0", "times as long as the others"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
