package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/export"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Every account closes: its parts sum to the overhead, which is of the trials that no tracer observed.
func TestTheSumIsTheOverhead(t *testing.T) {
	l := quick()
	l.noise, l.unseen = 0.2, 0.1
	a := read(t, l.write(t))
	n := 0
	for _, x := range append(a.Accounts, a.Versus...) {
		if x.Baseline == nil {
			continue
		}
		n++
		for name, parts := range map[string][]explain.Part{"parts": x.Parts, "fine": x.Fine} {
			sum := 0.0
			for _, p := range parts {
				sum += p.Seconds.Value
			}
			if math.Abs(sum-x.Overhead.Value) > 1e-12*math.Abs(x.Elapsed.Value) || parts[len(parts)-1].Key != explain.Unexplained {
				t.Errorf("%s: %s sum to %v, the overhead is %v", label(x), name, sum, x.Overhead.Value)
			}
		}
		if want := x.Row.Mean - x.Baseline.Mean; math.Abs(want-x.Overhead.Value) > 1e-9 {
			t.Errorf("%s: the overhead is %v, the summary's means differ by %v", label(x), x.Overhead.Value, want)
		}
		if len(x.Parts) != 8 || len(x.Fine) != len(notebook.Walls)+1 {
			t.Errorf("%s: %d parts, %d fine", label(x), len(x.Parts), len(x.Fine))
		}
	}
	if n < 5 {
		t.Errorf("%d accounts", n)
	}
}

func part(t *testing.T, a *explain.Account, key string) *explain.Part {
	t.Helper()
	for i := range a.Parts {
		if a.Parts[i].Key == key {
			return &a.Parts[i]
		}
	}
	t.Fatalf("%s has no part %q", label(a), key)
	return nil
}

// A container is throttled on purpose, and its account says so. The tracers' cost is reported separately.
func TestThrottled(t *testing.T) {
	a := read(t, quick().write(t))
	for _, label := range []string{"cn docker vanilla 1/1GB", "cn runc vanilla 0.5/512MB"} {
		x := find(t, a.Accounts, label)
		if p := part(t, x, explain.Throttled); !(p.Share.Low > 0.9) || !p.Significant() {
			t.Errorf("%s: %+v", label, p)
		}
		if q := x.TracerCost; !(q.Low < 1.02 && 1.02 < q.High) || q.N != 8 {
			t.Errorf("%s: the tracers cost %+v", label, q)
		}
	}
	half := find(t, a.Accounts, "cn runc vanilla 0.5/512MB")
	if half.Baseline.Treatment.ID != "bm 1/1GB" || half.Against != (explain.Against{Cores: 1}) || !slices.Contains(words.Doubts(half.Doubts), "bare metal has no half core: compared with bare metal with 1 core") {
		t.Errorf("%+v, %q", half.Against, words.Doubts(half.Doubts))
	}
	if bm := find(t, a.Accounts, "bm 1/1GB"); bm.Baseline != nil || len(bm.Parts) > 0 || len(bm.Spent) != len(notebook.Walls) {
		t.Errorf("%+v", bm)
	}
	vm := find(t, a.Accounts, "vm vanilla tcg 1/1GB")
	if !vm.Emulated || !strings.Contains(sentence(vm), "does not represent a VM's cost") {
		t.Error(sentence(vm))
	}
	if len(a.Versus) != 1 || !strings.HasPrefix(sentence(a.Versus[0]), "Docker with --cpuset-cpus at 1/1GB is faster than a CPU quota here because 96 % (") || !strings.Contains(sentence(a.Versus[0]), ") of the overhead is throttling") {
		t.Errorf("%+v", a.Versus)
	}
}

// Each interval contains the true value in 95 % of many studies. The test requires 93 %, to allow for chance. It checks the
// intervals of the gap, of each part, of the tracers' cost, and of the remainder. The remainder is the part of the gap that
// the tracers do not see, less the difference between their costs.
func TestIntervalsCover(t *testing.T) {
	const studies = 800
	l := newLab().add("bm", one, wall{notebook.WallUser: 2, notebook.WallBlock: 0.1})
	l.add("cn docker vanilla", one, wall{notebook.WallUser: 2.1, notebook.WallBlock: 0.12, notebook.WallThrottled: 0.5})
	l.noise, l.unseen, l.cost = 0.05, 0.04, 0.03
	x, y := l.truth["cn docker vanilla 1/1GB"], l.truth["bm 1/1GB"]
	gap, seen := x.sum()-y.sum(), 1-l.unseen
	truth := map[string]float64{
		explain.User: (x[explain.User] - y[explain.User]) * seen, explain.IO: 0.02 * seen, explain.Throttled: 0.5 * seen, explain.System: gap * l.cost * seen,
		explain.Unexplained: gap - gap*(1+l.cost)*seen,
	}
	held := map[string]int{}
	dir := l.write(t)
	for i := range studies {
		g := rand.New(rand.NewPCG(uint64(i), 11))
		slow := make([]float64, l.rounds) // a round slows both alike
		for round := range slow {
			slow[round] = 1 + 0.1*g.NormFloat64()
		}
		l.edit = func(n *notebook.Trial) {
			n.ElapsedS *= slow[n.Round]
			if n.Trace != nil {
				for k := range n.Trace.Wall {
					n.Trace.Wall[k] *= slow[n.Round]
				}
			}
		}
		l.rewrite(t, dir, g)
		a := read(t, dir).Accounts[1]
		covers := func(name string, low, high, v float64) {
			if low <= v && v <= high {
				held[name]++
			}
		}
		covers("gap", a.Overhead.Low, a.Overhead.High, gap)
		covers("cost", a.TracerCost.Low, a.TracerCost.High, 1+l.cost)
		for _, p := range a.Parts {
			if v, ok := truth[p.Key]; ok {
				covers(p.Key, p.Seconds.Low, p.Seconds.High, v)
				if a.Significant() {
					covers("share "+p.Key, p.Share.Low, p.Share.High, v/gap)
				}
			}
		}
	}
	if len(held) != 12 {
		t.Errorf("%v", held)
	}
	for name, n := range held {
		if share := float64(n) / studies; share < 0.93 {
			t.Errorf("%s: %.3f of the intervals hold the truth", name, share)
		}
	}
}

// A part whose interval contains 0 is not a cause. A gap that may be 0 has no explanation.
func TestNoCauseThatMayBeNothing(t *testing.T) {
	named := 0
	for seed := range 30 {
		l := newLab().add("bm", one, wall{notebook.WallUser: 2, notebook.WallSystem: 0.1}).
			add("cn docker vanilla", one, wall{notebook.WallUser: 2, notebook.WallSystem: 0.1, notebook.WallCore: 0.012 * float64(seed)})
		l.rounds, l.noise, l.study.Design.Trials = 4+seed%3, 0.03, 1
		a := read(t, l.write(t))
		for _, x := range a.Accounts[1:] {
			for _, p := range x.Parts {
				said := slices.ContainsFunc(x.Causes(), func(c *explain.Part) bool { return c.Key == p.Key }) || x.Offset() != nil && x.Offset().Key == p.Key
				if said && (!p.Cause || !p.Significant() || !x.Significant()) {
					t.Errorf("%s\n%+v", sentence(x), p)
				}
				if said {
					named++
				}
			}
			if !x.Significant() && strings.Contains(sentence(x), "%") {
				t.Error(sentence(x))
			}
		}
	}
	if named < 10 {
		t.Errorf("%d causes were named", named)
	}
}

// A sentence names the largest of many parts, and the largest of many is often large by luck: of a hundred studies in which one
// part is the whole gap and the others are noise, at most five name one of the others.
func TestOfManyPartsNoneIsNamedByLuck(t *testing.T) {
	const studies = 600
	l := newLab().add("bm", one, wall{notebook.WallUser: 1, notebook.WallSystem: 1, notebook.WallCore: 1, notebook.WallBlock: 1, notebook.WallFutex: 1})
	truth := wall{notebook.WallThrottled: 0.5}
	for k, v := range l.truth["bm 1/1GB"] {
		truth[k] = v
	}
	l.add("cn docker vanilla", one, truth)
	l.noise, l.cost = 0.05, 0
	lucky, right := 0, 0
	dir := l.write(t)
	for i := range studies {
		g := rand.New(rand.NewPCG(uint64(i), 12))
		l.rewrite(t, dir, g)
		a := read(t, dir).Accounts[1]
		if !a.Significant() {
			continue
		}
		named := a.Offset() != nil
		for _, p := range a.Causes() {
			named = named || p.Key != explain.Throttled
			if p.Key == explain.Throttled {
				right++
			}
		}
		if named {
			lucky++
		}
	}
	if share := float64(lucky) / studies; share > 0.05 { // with intervals of 95 % alone 0.11
		t.Errorf("%.3f of the sentences name a part that is nothing", share)
	}
	if right < studies*8/10 {
		t.Errorf("%d of %d name the part that is the gap", right, studies)
	}
}

// Where bare metal differs from itself by as much as vanilla from pinned, no reason for that is to be trusted, however far both are
// from bare metal.
func TestDoubtfulVersus(t *testing.T) {
	bm := wall{notebook.WallUser: 2}
	again := wall{notebook.WallUser: 2.4}
	l := newLab().add("bm", one, bm).add("bm aa", one, again).
		add("cn docker vanilla", one, wall{notebook.WallUser: 2, notebook.WallThrottled: 2.2}).add("cn docker pinned", one, wall{notebook.WallUser: 4})
	l.noise = 0.001
	a := read(t, l.write(t))
	if len(a.Versus) != 1 || !a.Versus[0].Doubtful || !strings.Contains(sentence(a.Versus[0]), "Do not trust this") {
		t.Errorf("%+v", a.Versus)
	}
	if x := find(t, a.Accounts, "cn docker vanilla 1/1GB"); x.Doubtful || strings.Contains(sentence(x), "trusted") {
		t.Error(sentence(x))
	}
	if x := find(t, a.Accounts, "bm again (A/A) 1/1GB"); !strings.Contains(sentence(x), "although both are bare metal") {
		t.Error(sentence(x))
	}
}

// What no trial can have is not used, and neither the text nor the JSON has an infinity.
func TestBeyondAllBounds(t *testing.T) {
	l := quick()
	l.edit = func(x *notebook.Trial) {
		if p := x.Trace; p != nil && x.Round < 3 {
			for k := range p.Wall {
				p.Wall[k] = math.MaxFloat64
			}
			p.Figures["switches"], p.Lost = math.MaxFloat64, math.MaxInt64
			for i := range p.Spread {
				p.Spread[i].Sum = math.MaxFloat64
				for j := range p.Spread[i].Counts {
					p.Spread[i].Counts[j] = math.MaxInt64
				}
			}
			p.Stacks = []notebook.Stack{{Frames: []string{"a"}, Seconds: math.MaxFloat64, Count: math.MaxInt64}, {Frames: []string{"b"}, Seconds: 1, Count: math.MaxInt64}}
		}
	}
	a := read(t, l.write(t))
	var text, data bytes.Buffer
	if err := errors.Join(terminal.Accounts(&text, a, terminal.Screen{Width: 0}), export.Accounts(&data, a)); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); strings.Contains(s, "Inf") || strings.Contains(s, "NaN") {
		t.Error(s)
	}
	x := find(t, a.Accounts, "cn docker vanilla 1/1GB")
	if x.Rounds != 5 || len(x.Stacks) != 1 || x.Lost <= 0 {
		t.Errorf("%d rounds, %+v, %d lost", x.Rounds, x.Stacks, x.Lost)
	}
	notes := strings.Join(words.Doubts(x.Doubts), "; ")
	if !strings.Contains(notes, "impossible and not used") || !strings.Contains(notes, "5 of 8 rounds count") {
		t.Error(notes)
	}
	for _, d := range x.Spread {
		for _, c := range d.Counts {
			if c < 0 {
				t.Errorf("%+v", d)
			}
		}
	}
}

// Folders with different images are different work, and say which is which.
func TestImagesAreToldApart(t *testing.T) {
	a, b := quick(), quick()
	b.study.Images = map[string]notebook.Image{"cpu": {Reference: "debian", Digest: "sha256:2222"}}
	b.edit = func(x *notebook.Trial) { x.Guest += " again" }
	all := read(t, a.write(t), b.write(t))
	var places []string
	for _, x := range all.Accounts {
		if x.Rounds != 8 {
			t.Errorf("%s: %d rounds", label(x), x.Rounds)
		}
		if !slices.Contains(places, words.AccountPlace(x)) {
			places = append(places, words.AccountPlace(x))
		}
	}
	if !slices.Equal(places, []string{"cpu on bench, image 1111", "cpu on bench, image 2222"}) {
		t.Errorf("%q", places)
	}
}

func TestRefuses(t *testing.T) {
	l := newLab().add("bm", one, wall{notebook.WallUser: 2})
	l.study.Explain = nil
	l.edit = func(x *notebook.Trial) { x.Traced, x.Trace = false, nil }
	dir := l.write(t)
	_, err := readAll(dir)
	if !errors.Is(err, explain.ErrNone) || !strings.Contains(err.Error(), "--explain") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trials.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(dir); !errors.Is(err, explain.ErrNone) || !strings.Contains(err.Error(), "goes on if it is repeated") {
		t.Error(err)
	}
	if _, err := readAll(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a results folder") {
		t.Error(err)
	}
	// With one folder that has some, a doubt names the other, which has none.
	other := newLab().add("bm", one, wall{notebook.WallUser: 2})
	other.host.ID = "bbbb"
	for i := range other.study.Treatments {
		other.study.Treatments[i].ID += " b"
	}
	other.truth["bm 1/1GB b"] = wall{notebook.WallUser: 2}
	a := read(t, dir, other.write(t))
	if len(a.Accounts) != 1 || !slices.Contains(words.Doubts(a.Doubts), "1 folder without traced runs: in no time breakdown") {
		t.Errorf("%d accounts, %q", len(a.Accounts), words.Doubts(a.Doubts))
	}
}

// Without BPF the account is made of what there is, and what cannot be told is unexplained.
func TestCoarse(t *testing.T) {
	l := quick()
	l.edit = func(x *notebook.Trial) {
		if x.Traced {
			x.Trace.Wall = nil
			x.Trace.Missing = map[string]*notebook.Message{notebook.TracerScheduler: notebook.TextMessage("no BPF here")}
		}
	}
	x := find(t, read(t, l.write(t)).Accounts, "cn docker vanilla 1/1GB")
	if !x.Coarse || len(x.Parts) != 4 || !(part(t, x, explain.Throttled).Share.Low > 0.9) || !strings.Contains(strings.Join(words.Doubts(x.Doubts), "; "), "nothing followed the scheduler (no BPF here)") {
		t.Errorf("%+v", x)
	}
	// Where only bare metal was not followed, the two are still compared by what both have.
	l.edit = func(x *notebook.Trial) {
		if x.Traced && strings.HasPrefix(x.Treatment, "bm") {
			x.Trace.Wall = nil
			x.Trace.Missing = map[string]*notebook.Message{notebook.TracerScheduler: notebook.TextMessage("lost its way")}
		}
	}
	x = find(t, read(t, l.write(t)).Accounts, "cn docker vanilla 1/1GB")
	if !x.Coarse || len(x.Parts) != 4 || !strings.Contains(strings.Join(words.Doubts(x.Doubts), "; "), "(lost its way)") {
		t.Errorf("%+v", x)
	}
	// What only the guest saw will do.
	l.edit = func(x *notebook.Trial) {
		if p := x.Trace; p != nil && strings.HasPrefix(x.Treatment, "vm") {
			x.Trace = &notebook.Trace{Inside: &notebook.Trace{Wall: p.Wall, Figures: map[string]float64{"steal_s": 1}, Spread: p.Spread}}
		}
	}
	x = find(t, read(t, l.write(t)).Accounts, "vm vanilla tcg 1/1GB")
	if x.Coarse || len(x.Inside) != 2 || len(x.Spread) != 0 || x.Figures[0].Name != "inside.steal_s" || x.Figures[0].Of != "steal_s" {
		t.Errorf("%+v", x)
	}
}

// Several folders of one host are read together; a folder's rounds are its own.
func TestSpreadsAndFoldersAddUp(t *testing.T) {
	a, b := quick(), quick()
	b.study.Treatments = slices.Clone(b.study.Treatments)
	for i := range b.study.Treatments {
		tr := &b.study.Treatments[i]
		b.truth[tr.ID+"2"] = b.truth[tr.ID]
		tr.ID += "2"
	}
	x := find(t, read(t, a.write(t), b.write(t)).Accounts, "cn docker vanilla 1/1GB")
	if x.Rounds != 16 || x.Traced != 32 {
		t.Errorf("%d rounds, %d explained trials", x.Rounds, x.Traced)
	}
	if len(x.Spread) != 2 || x.Spread[0].What != notebook.OnCPU || x.Spread[1].Counts[12] != 32*90 || math.Abs(x.Spread[1].Sum-0.032) > 1e-9 {
		t.Errorf("%+v", x.Spread)
	}
	if f := x.Figures[0]; f.Name != "elapsed_s" || f.Unit != "s" || f.Mean.N != 16 || f.Before.N != 16 || !f.Significant() {
		t.Errorf("%+v", f)
	}
}

// A folder is not trusted to be what Tare writes.
func TestHostile(t *testing.T) {
	l := quick()
	l.host.Hostname, l.study.Treatments[2].Engine = "h\x1b[2J", "\u202edocker"
	l.edit = func(x *notebook.Trial) {
		if p := x.Trace; p != nil {
			p.Wall["nonsense"], p.Wall[explain.User] = 1e9, -3
			p.Missing = map[string]*notebook.Message{"\x07": notebook.TextMessage(strings.Repeat("x", 10_000))}
			p.Figures["\x1b.exits"] = -1
			p.Spread = append(p.Spread, notebook.Distribution{What: "\x1b", Counts: make([]int64, 500)}, notebook.Distribution{What: notebook.RunQueue, Unit: "s", Role: notebook.RoleWork, Counts: []int64{-5}})
			p.Stacks = []notebook.Stack{{Frames: []string{"a", "b"}, Seconds: 1, Count: 1}}
		}
		if x.Round == 3 {
			x.ElapsedS = 0
		}
	}
	a := read(t, l.write(t))
	var b, j bytes.Buffer
	for _, width := range []int{0, 1, 20, 79} {
		if err := terminal.Accounts(&b, a, terminal.Screen{Width: width}); err != nil {
			t.Fatal(err)
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u202e") || strings.Contains(b.String(), strings.Repeat("x", 1000)) {
		t.Errorf("%q", b.String())
	}
	if err := export.Accounts(&j, a); err != nil || !json.Valid(j.Bytes()) {
		t.Error(err)
	}
	x := a.Accounts[0]
	if len(x.Stacks) != 1 || x.Stacks[0].Count != int64(x.Traced) {
		t.Errorf("%+v", x.Stacks)
	}
	for _, d := range x.Spread {
		if len(d.Counts) > data.Buckets {
			t.Errorf("%d buckets", len(d.Counts))
		}
	}
}

// The rules of the sentences, each by itself.
func TestSentences(t *testing.T) {
	e := func(v, half float64) stats.Estimate {
		return stats.Estimate{Value: v, Low: v - half, High: v + half, N: 8}
	}
	row := func(words string) *data.Row {
		tr := newLab().add(words, one, nil).study.Treatments[0]
		return &data.Row{Treatment: tr, Representative: tr.Representative(), RatioLow: math.NaN(), RatioHigh: math.NaN()}
	}
	of := func(key string, v, half, gap float64) explain.Part {
		p := explain.Part{Key: key, Seconds: e(v, half), Cause: math.Abs(v) > half}
		p.Share = stats.Quotient{Value: v / gap, Low: v/gap - half/math.Abs(gap), High: v/gap + half/math.Abs(gap), N: 8}
		return p
	}
	// account is one whose parts are given as seconds and half widths.
	account := func(gap float64, parts map[string][2]float64, edit func(*explain.Account)) *explain.Account {
		a := &explain.Account{Row: row("cn docker vanilla"), Baseline: row("bm"), Rounds: 8, Traced: 8, Overhead: e(gap, 0.05)}
		a.Times = stats.Quotient{Value: 1 + gap/2, Low: 1 + gap/2 - 0.05, High: 1 + gap/2 + 0.05, N: 8}
		rest := gap
		for _, key := range []string{explain.User, explain.System, explain.Throttled, explain.Core, explain.IO, explain.Waiting, explain.Hypervisor} {
			v := parts[key]
			rest -= v[0]
			a.Parts = append(a.Parts, of(key, v[0], v[1], gap))
		}
		a.Parts = append(a.Parts, of(explain.Unexplained, rest, 0.02, gap))
		if edit != nil {
			edit(a)
		}
		return a
	}
	figure := func(of string, mean, before, half float64) explain.Figure {
		return explain.Figure{Name: of, Of: of, Mean: e(mean, 0), Before: e(before, 0), More: e(mean-before, half), Total: stats.Number(8 * mean)}
	}
	for _, c := range []struct {
		name string
		a    *explain.Account
		want string
	}{
		{"one cause", account(1, map[string][2]float64{explain.Throttled: {0.92, 0.1}}, func(a *explain.Account) {
			a.Figures = []explain.Figure{figure("periods", 60, 0, 1), figure("throttled_periods", 53.875, 0, 1)}
		}), "Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): 92 % (82 to 102) of the overhead is throttling (the CPU quota was exhausted in 431 of 480 periods)."},
		{"two causes", account(1, map[string][2]float64{explain.User: {0.6, 0.1}, explain.System: {0.38, 0.1}}, func(a *explain.Account) {
			a.Figures = []explain.Figure{figure("migrations", 120, 3, 10), figure("switches", 500, 490, 20), figure("minor_faults", 1000, 10, 5)}
		}), "Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): 60 % (50 to 70) of the overhead is running its own code (threads were moved to another core 120 times per trial, against 3); 38 % (28 to 48) is the kernel running for it (1000 page faults per trial, against 10)."},
		{"a cause that may be nothing", account(1, map[string][2]float64{explain.User: {0.7, 0.8}, explain.Core: {0.3, 0.01}}, nil),
			"Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): 30 % (29 to 31) of the overhead is waiting for a core."},
		{"none", account(1, map[string][2]float64{explain.User: {0.7, 0.8}, explain.Core: {0.3, 0.4}}, nil),
			"Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): none of the 8 parts of the overhead is significant."},
		{"unexplained", account(1, map[string][2]float64{explain.Core: {0.3, 0.01}}, nil),
			"Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): 70 % (68 to 72) of the overhead is unexplained, its largest significant part; 30 % (29 to 31) is waiting for a core."},
		{"the other way", account(1, map[string][2]float64{explain.Throttled: {1.5, 0.1}, explain.User: {-0.5, 0.1}}, nil),
			"Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): 150 % (140 to 160) of the overhead is throttling; less running its own code reduces it by 50 % (40 to 60)."},
		{"faster", account(-0.5, map[string][2]float64{explain.IO: {-0.6, 0.1}, explain.System: {0.1, 0.01}}, nil),
			"Docker with --cpus at 1/1GB takes 0.75 times as long as bare metal (0.70–0.80): 120 % (100 to 140) of the overhead is less waiting for I/O; more the kernel running for it reduces it by 20 % (18 to 22)."},
		{"within the noise", account(0.04, map[string][2]float64{explain.IO: {0.04, 0.01}}, nil),
			"Docker with --cpus at 1/1GB is not distinguishable from bare metal: its overhead is within the noise (−10.0 to 90.0 ms)."},
		{"emulated, within the noise", account(0.04, nil, func(a *explain.Account) { a.Emulated = true }),
			"Docker with --cpus at 1/1GB (emulated, which does not represent a VM's cost) is not distinguishable from bare metal: its overhead is within the noise (−10.0 to 90.0 ms)."},
		{"doubtful", account(1, map[string][2]float64{explain.Hypervisor: {1, 0.1}}, func(a *explain.Account) { a.Doubtful = true }),
			"Docker with --cpus at 1/1GB takes 1.50 times as long as bare metal (1.45–1.55): 100 % (90 to 110) of the overhead is the hypervisor. Do not trust this: the difference is within the A/A noise."},
		{"no bounds", account(1, map[string][2]float64{explain.Waiting: {1, 0.1}}, func(a *explain.Account) { a.Times.High = math.Inf(1) }),
			"Docker with --cpus at 1/1GB took 1.00 s more than bare metal: 100 % (90 to 110) of the overhead is waiting for something else."},
		{"one round", account(1, nil, func(a *explain.Account) { a.Rounds, a.Overhead.Low, a.Overhead.High = 1, math.NaN(), math.NaN() }),
			"Docker with --cpus at 1/1GB took 1.00 s more than bare metal in its only round; one round has no interval."},
		{"a metric of another kind", account(0, nil, func(a *explain.Account) {
			a.Row.Metric.Name, a.Row.Baseline, a.Row.Ratio, a.Row.RatioLow, a.Row.RatioHigh = "response time", a.Baseline.Treatment.ID, 1.3, 1.2, 1.4
			a.Doubts = []data.Doubt{explain.OtherMetric{Metric: "response time"}}
		}), "Docker with --cpus at 1/1GB: its runs took as long as those of bare metal, as under any load with a fixed rate. A breakdown of their time does not explain its response time, which is 1.30 times bare metal's (1.20–1.40)."},
		{"bare metal again", account(0.2, map[string][2]float64{explain.User: {0.2, 0.01}}, func(a *explain.Account) { a.Row = row("bm aa") }),
			"bare metal again (A/A control) at 1/1GB took 200 ms more than bare metal (150 to 250 ms), although both are bare metal: this is the host's noise, not an overhead."},
		{"emulated", account(1, map[string][2]float64{explain.User: {1, 0.1}}, func(a *explain.Account) { a.Emulated = true }),
			"Docker with --cpus at 1/1GB (emulated, which does not represent a VM's cost) takes 1.50 times as long as bare metal (1.45–1.55): 100 % (90 to 110) of the overhead is running its own code."},
	} {
		if got := sentence(c.a); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	pinned := func(edit func(*explain.Account), parts map[string][2]float64) *explain.Account {
		return account(1, parts, func(a *explain.Account) {
			a.Baseline, a.Against = row("cn docker pinned"), explain.Against{Provisioning: notebook.Pinned}
			if edit != nil {
				edit(a)
			}
		})
	}
	for _, c := range []struct {
		a    *explain.Account
		want string
	}{
		{pinned(nil, map[string][2]float64{explain.Throttled: {0.82, 0.1}, explain.User: {0.18, 0.3}}), "Docker with --cpuset-cpus at 1/1GB is faster than a CPU quota here because 82 % (72 to 92) of the overhead is throttling; a CPU quota takes 1.50 times as long (1.45–1.55)."},
		{pinned(nil, nil), "Docker with --cpuset-cpus at 1/1GB is faster than a CPU quota here: 100 % (98 to 102) of the overhead is unexplained, its largest significant part; a CPU quota takes 1.50 times as long (1.45–1.55)."},
	} {
		if got := sentence(c.a); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
