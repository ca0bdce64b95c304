package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/ladder"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

var nan = math.NaN()

// row is a treatment in words with its mean, its ratio and half of the ratio's interval.
func row(words string, ratio, half float64) *data.Row {
	t := notebooktest.Treatment(words)
	r := &data.Row{
		Treatment: t, Host: "bench", HostID: "h", HostCores: 8, Metric: notebook.Metric{Name: "execution time", Unit: "s"}, Guests: 4, Rounds: 4, Trials: 4,
		Mean: 4 * ratio, MeanLow: 4 * (ratio - half), MeanHigh: 4 * (ratio + half), Ratio: ratio, RatioLow: ratio - half, RatioHigh: ratio + half,
		Baseline: "bm large", Representative: t.Representative(), DotsOf: 4,
	}
	for i := range 4 {
		v, block := r.Mean*(1+0.01*float64(i-2)), data.Block{Round: i}
		r.Dots = append(r.Dots, data.Dot{Round: i, Guest: fmt.Sprintf("g%d", i), Value: v, Start: time.Date(2026, 3, 14, 9, i, 0, 0, time.UTC)})
		if !math.IsNaN(ratio) {
			r.Values = append(r.Values, data.Value{Block: block, Mean: v, Trials: 1})
		}
		r.Cells = append(r.Cells, data.Cell{Block: block})
	}
	r.Cells[2].Beside = notebook.Beside{OthersS: 1, OfS: 4}
	return r
}

// sample is a summary of a handful of treatments: every style, a doubtful one and one without a value.
func sample() *data.Summary {
	s := &data.Summary{Rows: []*data.Row{
		row("bm large", 1, 0), row("bm aa large", 1.004, 0.01), row("cn docker vanilla large", 1.3, 0.04), row("cn docker pinned large", 1.02, 0.02),
		row("cn crun vanilla large", 1.28, 0.3), row("cn crun pinned large", nan, nan), row("vm qemu tcg vanilla large", 14, 0.4), row("vmcn crun tcg pinned large", 15, 0.9),
	}, Hosts: []data.Host{{Name: "bench", Host: notebook.Host{ID: "h", CPUs: make([]notebook.CPU, 8)}}}}
	s.Rows[3].Doubtful = true
	return s
}

// account is that of a throttled container.
func account(s *data.Summary) *Account {
	e := func(v, half float64) stats.Estimate {
		return stats.Estimate{Value: v, Low: v - half, High: v + half, N: 4}
	}
	counts := func(from int, n ...int64) []int64 { return append(make([]int64, from), n...) }
	a := &explain.Account{Row: s.Rows[2], Baseline: s.Rows[0], Rounds: 4, Traced: 4,
		Elapsed: e(5.2, 0.1), Overhead: e(1.2, 0.08),
		Parts: []explain.Part{
			{Key: explain.User, Seconds: e(0.1, 0.2)},
			{Key: explain.Throttled, Seconds: e(1.3, 0.1)},
			{Key: explain.IO, Seconds: e(0, 0)},
			{Key: explain.Unexplained, Seconds: e(-0.2, 0.1)},
		},
		Spread: []notebook.Distribution{{Role: "work", What: notebook.OffCPU, Of: notebook.WallThrottled, Unit: "s", Sum: 5.2, Counts: counts(23, 4, 40, 60, 8)}},
	}
	before := &explain.Account{Row: s.Rows[0], Traced: 4, Spread: []notebook.Distribution{{Role: "work", What: notebook.OffCPU, Of: notebook.WallThrottled, Unit: "s", Sum: 0.2, Counts: counts(20, 9, 3)}}}
	return &Account{Account: a, Before: before, Title: "container, docker, vanilla, large: ffmpeg"}
}

// stairCase is a ladder with a rung of each kind: significant, not measured, beyond the axis and emulated.
func stairCase() *ladder.Staircase {
	q := func(v, half float64) stats.Quotient {
		return stats.Quotient{Value: v, Low: v - half, High: v + half, N: 4}
	}
	c := &ladder.Staircase{Workload: "syscalls", Instance: notebook.Instance{Name: "large"}, Metric: notebook.Metric{Name: "execution time", Unit: "s"}}
	add := func(kind ladder.Kind, name, words string, ratio, own stats.Quotient, below *ladder.Rung) *ladder.Rung {
		r := row(words, ratio.Value, ratio.High-ratio.Value)
		c.Rungs = append(c.Rungs, &ladder.Rung{Name: name, Kind: kind, Treatment: r.Treatment, Row: r, Ratio: ratio, Own: own, Below: below, Emulated: !r.Representative})
		return c.Rungs[len(c.Rungs)-1]
	}
	floor := add(ladder.BareMetal, "bm", "bm large", q(1, 0), q(nan, nan), nil)
	cgroup := add(ladder.Layer, "cgroup", "cn layers vanilla cgroup large", q(1.01, 0.02), q(1.01, 0.02), floor)
	gone := add(ladder.Layer, "quota", "cn layers vanilla quota large", q(nan, nan), q(nan, nan), nil)
	gone.Row, gone.Missing = nil, data.Omitted{Reason: notebook.TextMessage("no quota on this host")}
	seccomp := add(ladder.Layer, "seccomp", "cn layers vanilla seccomp large", q(1.2, 0.03), q(1.18, 0.03), cgroup)
	add(ladder.Engine, "docker", "cn docker vanilla full large", q(9, 0.4), q(7.5, 0.3), seccomp)
	add(ladder.VM, "vm", "vm qemu tcg vanilla large", q(1.3, 0.1), q(1.3, 0.1), floor)
	return c
}

// every is one figure of each kind, and those of wild values.
func every() []Figure {
	s := sample()
	stairs := stairPanel(s, stairCase())
	return slices.Concat(OfPanels(append(Panels(s), stairs)), slices.Concat(OfAccounts([]*Account{account(s)})...))
}

// Each kind of figure is drawn as it was: a small file each.
func TestFigures(t *testing.T) {
	want := []string{"change", "mean", "runs", "rounds", "time", "emulated", "ladder", "waterfall", "times"}
	figs := every()
	if len(figs) != len(want) {
		t.Fatalf("%d figures, want %v", len(figs), want)
	}
	for i, f := range figs {
		if f.Alt == "" || f.Caption == "" || f.Title == "" {
			t.Errorf("%s lacks words: %+v", want[i], f)
		}
		if want[i] != "time" { // it is drawn as rounds are
			golden.Check(t, want[i]+".svg", f.SVG())
		}
		pdf, err := f.PDF(time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC))
		if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) > 60_000 {
			t.Errorf("%s: %d bytes of PDF, %v", want[i], len(pdf), err)
		}
	}
}

// Every text says how wide it is, so that no font makes it wider; and lies within the picture, by the widths that it says.
func TestTextsAreFitted(t *testing.T) {
	for _, f := range every() {
		n := 0
		for _, it := range f.Picture.list {
			l, is := it.(label)
			if !is {
				continue
			}
			n++
			from := l.x - l.width*[]float64{start: 0, middle: 0.5, end: 1}[l.anchor]
			if from < -0.05 || from+l.width > f.Picture.w+0.05 || l.y-l.size < -0.05 || l.y > f.Picture.h {
				t.Errorf("%s: %q is outside", f.Title, l.text)
			}
		}
		if got := strings.Count(string(f.SVG()), "textLength="); got != n || n < 4 {
			t.Errorf("%s: %d of %d texts are fitted", f.Title, got, n)
		}
	}
}

// What is hostile stays text, in every figure.
func TestHostileNames(t *testing.T) {
	const evil = "</text></svg><script>alert(1)</script>\u202e\x00 漢字"
	s := sample()
	for i := range s.Rows {
		tr := &s.Rows[i].Treatment
		tr.Workload, tr.Instance.Name, s.Rows[i].Metric = evil, evil, notebook.Metric{Name: evil, Unit: evil}
		if tr.Engine != "" {
			tr.Engine = evil
		}
	}
	a := account(s)
	a.Against, a.Title, a.Parts[0].Key = explain.Against{Provisioning: evil}, evil, evil
	for _, f := range slices.Concat(OfPanels(Panels(s)), slices.Concat(OfAccounts([]*Account{a})...)) {
		svg := f.SVG()
		for _, bad := range []string{"<script", "\u202e", "\x00", "NaN"} {
			if bytes.Contains(svg, []byte(bad)) {
				t.Errorf("%s holds %q", f.File, bad)
			}
		}
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s is not XML: %v", f.File, err)
				break
			}
		}
		if _, err := f.PDF(time.Time{}); err != nil {
			t.Error(err)
		}
	}
}

func TestEmulatedIsApart(t *testing.T) {
	for _, p := range Panels(sample()) {
		for _, emulated := range []bool{false, true} {
			marks := p.bars(emulated)
			if len(marks) == 0 {
				t.Errorf("no bars, emulated %t", emulated)
			}
			for _, m := range marks {
				if m.style.emulated != emulated {
					t.Errorf("%q is among those of which emulated is %t", m.Names, emulated)
				}
			}
		}
	}
}

// Two treatments of one figure never look the same.
func TestStylesDiffer(t *testing.T) {
	s := sample()
	other := row("cn docker pinned large", 1.1, 0.1)
	other.Treatment.ID, other.Treatment.Network = "other", notebook.NetHost
	s.Rows = append(s.Rows, other)
	for _, p := range Panels(s) {
		for _, emulated := range []bool{false, true} {
			seen := map[style]string{}
			marks := p.bars(emulated)
			for _, m := range marks {
				if before := seen[m.style]; before != "" {
					t.Errorf("%q looks like %q", m.Names[0], before)
				}
				seen[m.style] = m.Names[0]
			}
		}
	}
}

func TestDoubtIsSeen(t *testing.T) {
	f := OfPanels(Panels(sample()))[0]
	if n := strings.Count(f.Alt, " ?: "); n != 1 || !strings.Contains(f.Caption, "doubtful") {
		t.Errorf("%d marks are shown as doubtful, want 1; caption: %s", n, f.Caption)
	}
}

func TestSampledSaysSo(t *testing.T) {
	s := sample()
	r := s.Rows[0]
	r.DotsOf, r.Dots = 5000, nil
	for i := range 400 {
		r.Dots = append(r.Dots, data.Dot{Value: float64(i)})
	}
	p := Panels(s)[0]
	if f := OfPanels([]*Panel{p})[1]; !strings.Contains(f.Caption, "even sample") {
		t.Errorf("the caption does not say that the trials were sampled: %s", f.Caption)
	}
}

// The bars of a waterfall go from the baseline to the treatment without a gap.
func TestWaterfallCloses(t *testing.T) {
	w := fallOf(account(sample()), 1)
	for i, b := range w.Bars[1:] {
		from := b.From
		if b.Plain {
			from = b.Value
		}
		if math.Abs(from-w.Bars[i].Value) > 1e-9 {
			t.Errorf("%q begins at %g and the bar before it ends at %g", b.Names, from, w.Bars[i].Value)
		}
		if b.Value > w.High || b.Value < w.Low {
			t.Errorf("%q ends at %g, off the axis", b.Names, b.Value)
		}
	}
	if len(w.Bars) != 5 {
		t.Errorf("%d bars, want 5: a part that is nothing in every round is left out", len(w.Bars))
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		n         int
		low, high float64
		want      string
	}{
		{6, 0, 5.6, "0 1 2 3 4 5"},
		{4, 0, 5.6, "0 2 4"},
		{6, 0.97, 1.36, "1.0 1.1 1.2 1.3"},
		{6, 0, 66, "0 20 40 60"},
		{6, 0, 0.0042, "0 0.001 0.002 0.003 0.004"},
		{6, 1, 1, ""},
		{6, 0, math.Inf(1), ""},
	} {
		var labels []string
		for _, k := range ticks(c.low, c.high, c.n) {
			labels = append(labels, k.label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%d ticks from %g to %g: %q, want %q", c.n, c.low, c.high, got, c.want)
		}
	}
}

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{"ffmpeg": "ffmpeg", "My Work/../load": "my-work-load", "../..": "workload", "": "workload", strings.Repeat("a b", 60): ""} {
		got := Slug(in)
		if want != "" && got != want {
			t.Errorf("Slug(%q) = %q, want %q", in, got, want)
		}
		if len(got) > 40 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("Slug(%q) = %q is not a safe name", in, got)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		text string
		room float64
	}{{"container, docker, pinned", 60}, {"漢字漢字漢字", 30}, {"WWWW", 5}, {"", 10}} {
		for _, fit := range []func(string, float64, float64) string{fit, fitEnds} {
			if got := fit(c.text, 10, c.room); width(got, 10) > c.room && got != "…" || got == c.text && width(c.text, 10) > c.room {
				t.Errorf("%q in %g: %q, %g wide", c.text, c.room, got, width(got, 10))
			}
		}
	}
	if a, b := fitEnds("VM, CPU set, with no-kaslr", 10, 90), fitEnds("VM, CPU set, with no-kaslr no-thp", 10, 90); a == b || a[:3] != b[:3] {
		t.Errorf("two names that begin alike are %q and %q", a, b)
	}
	for _, c := range []struct{ names, want []string }{
		{[]string{"bare metal", "VM, CPU set, with devices=qxl,spice,usb, emulated", "VM, CPU set, with devices=ich6,usb, emulated"}, []string{"bare metal", "…qxl,spice,usb…", "…ich6,usb…"}},
		{[]string{"VM, CPU set, with boot=disk, emulated", "VM, CPU set, with boot=disk no-kaslr, emulated"}, []string{"…boot=disk…", "…boot=dis…o-kaslr…"}},
		{[]string{"漢字漢字漢字漢字漢字漢字漢字, 字, a", "漢字漢字漢字漢字漢字漢字漢字, 漢, a"}, []string{"漢字漢字漢…字, 字…", "漢字漢字漢…字, 漢…"}},
		{[]string{"one long name that does not fit", "one long name that does not fit"}, nil}, // nothing tells them apart
		{[]string{"one long name that does not fit, ", "one long name that does not fit, 2"}, nil},
		{[]string{"LXC, CPU set", "VM, CPU set", "VM, CPU set, with boot=disk", "VM, CPU set, with boot=disk"}, []string{"LXC, CPU set", "VM, CPU set", "VM, with boot=disk…", "VM, with boot=disk…"}},
		{[]string{"Docker, CPU set", "VM, emulated", "Docker in a VM, CPU set, emulated", "Docker in a VM, CPU quota, emulated"}, []string{"Docker, CPU set", "VM, emulated", "Docker in…CPU set…", "Docker in…U quota…"}},
		{[]string{"short", ""}, []string{"short", ""}},
	} {
		got := distinct(c.names, 10, 100)
		if c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
		for _, name := range got {
			if width(name, 10) > 100 {
				t.Errorf("%q of %q is %g wide", name, c.names, width(name, 10))
			}
		}
	}
	// The widths are those of Liberation Sans, which are those of Helvetica and Arial.
	if w := width("Hamburg", 1000); math.Abs(w-(722+556+833+556+556+333+556)) > 8 {
		t.Errorf("%q is %g thousandths of an em wide", "Hamburg", w)
	}
}

// A panel of rows becomes a figure, in a file that needs no other.
func ExampleOfPanels() {
	folder := notebooktest.New(2).Add("bm large", 4).Add("cn crun pinned large", 4.2)
	s := &data.Summary{Hosts: []data.Host{{Host: folder.Host}}}
	for i, t := range folder.Study.Treatments {
		ratio := 1 + 0.05*float64(i)
		s.Rows = append(s.Rows, &data.Row{Treatment: t, Metric: notebook.Metric{Name: "execution time", Unit: "s"}, Trials: 3, Representative: true, Baseline: "bm large",
			Mean: 4 * ratio, MeanLow: 4*ratio - 0.1, MeanHigh: 4*ratio + 0.1, Ratio: ratio, RatioLow: ratio - 0.01, RatioHigh: ratio + 0.01})
	}
	for _, f := range OfPanels(Panels(s)) {
		fmt.Println(f.File, "–", f.Title)
		fmt.Println(f.Alt)
	}
	// Output:
	// 1-ffmpeg-change – Change against bare metal: ffmpeg
	// Marks with intervals. large, bare metal: reference; large, crun, CPU set: +5.0 % (+4.0 to +6.0).
}

// A difference that nobody would see in bars from 0 has none.
func TestBarsTellSomething(t *testing.T) {
	for ratio, want := range map[float64]bool{1.05: false, 1.12: true, 0.85: true} {
		s := &data.Summary{Rows: []*data.Row{row("bm large", 1, 0), row("cn docker pinned large", ratio, 0.01)}}
		has := slices.ContainsFunc(OfPanels(Panels(s)), func(f Figure) bool { return strings.HasSuffix(f.File, "-mean") })
		if has != want {
			t.Errorf("a ratio of %g: bars are drawn: %t", ratio, has)
		}
	}
}

// Each point of a figure names its trial, or its round.
func TestPointsNameTheirTrials(t *testing.T) {
	for _, f := range OfPanels(Panels(sample())) {
		if !f.Spread || f.Emulated {
			continue
		}
		svg := string(f.SVG())
		want := "<title>round 3, guest g2, run 1: 4.000 s</title>"
		switch {
		case strings.HasSuffix(f.File, "-rounds"):
			want = "<title>bare metal, round 3: 4.000 s, mean of 1 run</title>"
		case strings.HasSuffix(f.File, "-time"):
			want = "<title>bare metal, round 3, guest g2, run 1: 4.000 s</title>"
		}
		if !strings.Contains(svg, want) {
			t.Errorf("%s lacks %s", f.File, want)
		}
	}
}

// Disturbed rounds are shaded, and the caption counts them.
func TestDisturbedRoundsAreShaded(t *testing.T) {
	calm := sample()
	for _, r := range calm.Rows {
		r.Cells = nil
	}
	for _, c := range []struct {
		s    *data.Summary
		want string
	}{{sample(), "Shaded: 1 round in which"}, {calm, "No round was disturbed"}} {
		n := 0
		for _, f := range OfPanels(Panels(c.s)) {
			if strings.HasSuffix(f.File, "-rounds") || strings.HasSuffix(f.File, "-time") {
				n++
				if !strings.Contains(f.Caption, c.want) {
					t.Errorf("%s: %s", f.File, f.Caption)
				}
			}
		}
		if n != 2 {
			t.Errorf("%d figures over rounds and time, want 2", n)
		}
	}
}

// Many workloads get a heat map, few do not.
func TestHeat(t *testing.T) {
	s := &data.Summary{Hosts: []data.Host{{Name: "bench", Host: notebook.Host{ID: "h", CPUs: make([]notebook.CPU, 8)}}}}
	for i, w := range []string{"cpu", "io", "network", "database"} {
		if i == 3 && Heat(s) != nil {
			t.Error("three workloads have a heat map")
		}
		for words, ratio := range map[string]float64{"bm large": 1, "cn docker pinned large": 1.02 + 0.3*float64(i), "cn docker vanilla large": 0.8, "vm qemu tcg vanilla large": 3} {
			r := row(words, ratio, 0.01)
			r.Treatment.Workload, r.Treatment.ID = w, w+" "+r.Treatment.ID
			r.Baseline = w + " bm large"
			s.Rows = append(s.Rows, r)
		}
	}
	slices.SortStableFunc(s.Rows, func(a, b *data.Row) int { return strings.Compare(a.Treatment.ID, b.Treatment.ID) })
	unknown := &data.Summary{}
	for i := range 2 * manyWorkloads {
		unknown.Rows = append(unknown.Rows, row(fmt.Sprintf("w%d cn crun pinned large", i), nan, nan))
	}
	if Heat(unknown) != nil {
		t.Error("a map of nothing: no row has a ratio")
	}
	f := Heat(s)
	if f == nil {
		t.Fatal("four workloads have no heat map")
	}
	if strings.Contains(f.Alt, "emulated") || !strings.Contains(f.Alt, "database at large, Docker, CPU set (--cpuset-cpus): +92.0 % (+91.0 to +93.0)") {
		t.Errorf("it says %s", f.Alt)
	}
	golden.Check(t, "heat.svg", f.SVG())
}
