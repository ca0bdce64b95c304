//go:build linux

package ruler

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/notebook"
)

// testTracer is the program that traces for the tests' rulers, of one kind or another. Its figures say what it was told.
func testTracer(kind string, names []string) error {
	switch kind {
	case "silent":
		time.Sleep(time.Hour) // it is killed before
	case "dies":
		return errors.New("it died")
	}
	return ServeTracer(os.Stdin, os.Stdout, func() (func() (*notebook.Trace, error), error) {
		if kind == "blind" {
			return nil, errors.New("bpf(2): operation not permitted")
		}
		if kind == "works" {
			if err := os.WriteFile(os.Getenv("RULER_TEST_TOLD"), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
				return nil, err
			}
			go workAndDie()
		}
		w := testWatch{kind, names, time.Now()}
		return w.stop, nil
	})
}

// workAndDie uses a second of CPU time, and ends this process.
func workAndDie() {
	for used := (unix.Timespec{}); used.Sec < 1; {
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
			panic(err)
		}
	}
	os.Exit(1)
}

type testWatch struct {
	kind     string
	names    []string
	attached time.Time
}

func (w testWatch) stop() (*notebook.Trace, error) {
	p := &notebook.Trace{Looked: w.names, Wall: map[string]float64{notebook.WallUser: time.Since(w.attached).Seconds()},
		Figures: map[string]float64{"switches": 3}}
	switch w.kind {
	case "sticks":
		return nil, errors.New("device busy")
	case "nothing":
		return nil, nil
	case "wrong":
		p.Figures["tasks"] = -1
	case "much":
		frames := slices.Repeat([]string{strings.Repeat("f", 100)}, maxFrames)
		p.Stacks = slices.Repeat([]notebook.Stack{{Frames: frames, Seconds: 1, Count: 1}}, maxStacks)
	}
	return p, nil
}

// startTraced starts a ruler with a tracer of that kind; "": with none.
func startTraced(t *testing.T, kind string) *guestUnderTest {
	scratch, program := t.TempDir(), ""
	if kind != "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		program = filepath.Join(t.TempDir(), "tracer")
		script := "#!/bin/sh\nRULER_TEST_TRACER=" + kind + " RULER_TEST_TOLD=" + filepath.Join(scratch, "told") + " exec " + self + " \"$@\"\n"
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, func(fd *os.File) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "RULER_TEST_SCRATCH="+scratch, "RULER_TEST_PROGRAM="+program, "GORACE=atexit_sleep_ms=0")
		cmd.ExtraFiles = []*os.File{fd}
		return cmd
	})
}

func TestTracersLookOnInsideTheGuest(t *testing.T) {
	g := startTraced(t, "well")
	o := sh("sleep 0.05")
	if r, _ := g.mustRun(t, o); r.Trace != nil {
		t.Errorf("nobody asked, and it saw %+v", r.Trace)
	}
	o.Tracers = []string{notebook.TracerScheduler, notebook.TracerStacks}
	r, _ := g.mustRun(t, o)
	if r.Error != "" || r.Trace == nil || !slices.Equal(r.Trace.Looked, o.Tracers) || r.Trace.Figures["switches"] != 3 {
		t.Fatalf("%+v, tracers %+v", r, r.Trace)
	}
	// It was attached before the trial and stopped soon after it.
	if wall, took := r.Trace.Wall[notebook.WallUser], r.Elapsed.Seconds(); wall < took || wall > 2*took+1 {
		t.Errorf("the watch saw %v s, the ruler %v s", wall, took)
	}
	// If work cannot be started, the result says so, and its tracing has ended.
	o.Argv = []string{"/bin/sh"}
	o.Dir = t.TempDir()
	o.UID = 1234 // who may not enter there
	if r, _ := g.mustRun(t, o); os.Geteuid() == 0 && (r.Error == "" || r.Trace == nil) {
		t.Errorf("%+v, tracers %+v", r, r.Trace)
	}
}

func TestTracersThatDoNotWorkFailNoTrial(t *testing.T) {
	names := []string{notebook.TracerScheduler, notebook.TracerIO}
	for kind, want := range map[string]string{
		"":        "this guest has no tracer",
		"silent":  "the tracer does not answer",
		"dies":    "the tracer does not answer",
		"sticks":  "device busy",
		"blind":   "bpf(2): operation not permitted",
		"nothing": "saw-nothing",
		"wrong":   "below 0",
	} {
		g := startTraced(t, kind)
		o := sh("echo done")
		o.Tracers = names
		r, _ := g.mustRun(t, o)
		if r.Error != "" || string(r.Stdout) != "done\n" || r.Trace == nil || len(r.Trace.Looked) != 0 || len(r.Trace.Missing) != 2 {
			t.Fatalf("%q: %+v, tracers %+v", kind, r, r.Trace)
		}
		if !strings.Contains(r.Trace.Missing[notebook.TracerIO].String(), want) {
			t.Errorf("%q: missing %q, want %q", kind, r.Trace.Missing, want)
		}
	}
}

// The usage of a tracer that dies during the trial is not a part of the trial's usage.
func TestATracersOwnTimeIsNotTheTrials(t *testing.T) {
	g := startTraced(t, "works")
	o := sh("read pid <told; while kill -0 $pid 2>/dev/null; do sleep 0.05; done")
	o.Tracers = []string{notebook.TracerScheduler}
	r, _ := g.mustRun(t, o)
	if r.Error != "" || r.Exit != 0 || !strings.Contains(r.Trace.Missing[notebook.TracerScheduler].String(), "the tracer does not answer") {
		t.Fatalf("%+v, tracers %+v", r, r.Trace)
	}
	if r.UserS+r.SystemS >= 0.9 {
		t.Errorf("%v s user, %v s system of a work that only waits: its tracer's second is among them", r.UserS, r.SystemS)
	}
}

func TestTooMuchThatWasSeenIsLeftOut(t *testing.T) {
	g := startTraced(t, "much")
	o := sh("true")
	o.Tracers = []string{notebook.TracerScheduler}
	r, _ := g.mustRun(t, o)
	if len(r.Trace.Stacks) != 0 || r.Trace.Figures["switches"] != 3 || !r.Trace.Missing[notebook.TracerStacks].Is("part-left-out") {
		t.Errorf("%d stacks, figures %v, missing %v", len(r.Trace.Stacks), r.Trace.Figures, r.Trace.Missing)
	}
}

// bounds keeps the times at which it was told.
type bounds struct{ begun, ended []time.Time }

func (b *bounds) Begin() { b.begun = append(b.begun, time.Now()) }
func (b *bounds) End()   { b.ended = append(b.ended, time.Now()) }

func TestBoundsAreTheTrials(t *testing.T) {
	g := startHere(t)
	var b bounds
	o := sh("sleep 0.05; sleep 60 & true") // what it leaves behind is killed after the end
	o.Bounds = &b
	r, _ := g.mustRun(t, o)
	if len(b.begun) != 1 || len(b.ended) != 1 || b.ended[0].Sub(b.begun[0]) < r.Elapsed || b.ended[0].Sub(b.begun[0]) > r.Elapsed+time.Second {
		t.Errorf("the bounds are %v and %v, for %v", b.begun, b.ended, r.Elapsed)
	}
	b = bounds{}
	o.Argv = []string{"no-such-command"}
	if r, _ := g.mustRun(t, o); r.Error == "" || len(b.begun)+len(b.ended) != 0 {
		t.Errorf("of what was not started: %q, %v, %v", r.Error, b.begun, b.ended)
	}
	o = sh("sleep 60")
	o.Bounds, o.Timeout = &b, 50*time.Millisecond
	if r, _ := g.mustRun(t, o); !r.TimedOut || len(b.begun) != 1 || len(b.ended) != 1 {
		t.Errorf("%+v, %v, %v", r, b.begun, b.ended)
	}
}

func TestOrdersWithUnknownTracers(t *testing.T) {
	o := sh("true")
	o.Tracers = []string{"sheduler"}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), notebook.TracerScheduler) {
		t.Errorf("%v", err)
	}
	o.Tracers = slices.Repeat([]string{notebook.TracerScheduler}, len(notebook.TracerNames)+1)
	if o.check() == nil {
		t.Error("more tracers than there are were accepted")
	}
}

// seenInside is what a good guest may send.
func seenInside() *notebook.Trace {
	return &notebook.Trace{
		Looked:  []string{notebook.TracerScheduler},
		Missing: map[string]*notebook.Message{notebook.TracerStacks: notebook.TextMessage("no symbols")},
		Wall:    map[string]float64{notebook.WallUser: 1.5, notebook.WallBlock: 0.5},
		Figures: map[string]float64{"switches": 1, "vcpu.run_s": 0.5, "vda.read_bytes": 4096},
		Spread:  []notebook.Distribution{{Role: notebook.RoleWork, What: notebook.OffCPU, Of: notebook.WallBlock, Unit: "s", Counts: []int64{0, 2}, Sum: 0.5}},
		Stacks:  []notebook.Stack{{Frames: []string{"io_schedule", "schedule"}, Seconds: 1, Count: 2}},
		Lost:    1,
	}
}

func TestWhatAGuestSaysItSawIsChecked(t *testing.T) {
	asked := []string{notebook.TracerScheduler, notebook.TracerStacks}
	if err := checkTrace(seenInside(), asked, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *notebook.Trace){
		"not asked": func(p *notebook.Trace) { p.Looked = []string{notebook.TracerIO} },
		"twice":     func(p *notebook.Trace) { p.Looked = slices.Repeat(p.Looked, 3) },
		"unknown":   func(p *notebook.Trace) { p.Missing["all"] = nil },
		"long reason": func(p *notebook.Trace) {
			p.Missing[notebook.TracerIO] = notebook.TextMessage(strings.Repeat("x", maxText+1))
		},
		"wall's key":       func(p *notebook.Trace) { p.Wall["coffee"] = 1 },
		"negative wall":    func(p *notebook.Trace) { p.Wall[notebook.WallCore] = -1 },
		"endless wall":     func(p *notebook.Trace) { p.Wall[notebook.WallCore] = 6 },
		"infinite wall":    func(p *notebook.Trace) { p.Wall[notebook.WallCore] = math.Inf(1) },
		"no number":        func(p *notebook.Trace) { p.Figures["switches"] = math.NaN() },
		"negative figure":  func(p *notebook.Trace) { p.Figures["switches"] = -1 },
		"unknown figure":   func(p *notebook.Trace) { p.Figures["vda.speed"] = 1 },
		"figure's name":    func(p *notebook.Trace) { p.Figures["\x1b[2J.switches"] = 1 },
		"role":             func(p *notebook.Trace) { p.Spread[0].Role = "boss" },
		"quantity":         func(p *notebook.Trace) { p.Spread[0].What = "off" },
		"unit":             func(p *notebook.Trace) { p.Spread[0].Unit = "h" },
		"of":               func(p *notebook.Trace) { p.Spread[0].Of = "\n" },
		"count":            func(p *notebook.Trace) { p.Spread[0].Counts[0] = -1 },
		"counts":           func(p *notebook.Trace) { p.Spread[0].Counts = make([]int64, maxCounts+1) },
		"sum":              func(p *notebook.Trace) { p.Spread[0].Sum = math.Inf(1) },
		"distributions":    func(p *notebook.Trace) { p.Spread = slices.Repeat(p.Spread, maxSpread+1) },
		"stacks":           func(p *notebook.Trace) { p.Stacks = slices.Repeat(p.Stacks, maxStacks+1) },
		"deep":             func(p *notebook.Trace) { p.Stacks[0].Frames = make([]string, maxFrames+1) },
		"frame":            func(p *notebook.Trace) { p.Stacks[0].Frames[0] = strings.Repeat("f", maxLabel+1) },
		"negative stack":   func(p *notebook.Trace) { p.Stacks[0].Seconds = -1 },
		"lost":             func(p *notebook.Trace) { p.Lost = -1 },
		"vast figure":      func(p *notebook.Trace) { p.Figures["switches"] = math.MaxFloat64 },
		"vast count":       func(p *notebook.Trace) { p.Spread[0].Counts[0] = math.MaxInt64 },
		"vast stack":       func(p *notebook.Trace) { p.Stacks[0].Count = math.MaxInt64 },
		"vast loss":        func(p *notebook.Trace) { p.Lost = math.MaxInt64 },
		"guest in a guest": func(p *notebook.Trace) { p.Inside = &notebook.Trace{} },
		"too long": func(p *notebook.Trace) {
			p.Stacks = slices.Repeat([]notebook.Stack{{Frames: []string{strings.Repeat("f", maxLabel)}}}, maxStacks)
			for i := range p.Stacks {
				p.Stacks[i].Frames = slices.Repeat(p.Stacks[i].Frames, 3)
			}
		},
	} {
		p := seenInside()
		change(p)
		if err := checkTrace(p, asked, 2*time.Second); !errors.Is(err, ErrProtocol) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want a protocol error of one line", name, err)
		}
	}
	if err := checkTrace(seenInside(), nil, 2*time.Second); !errors.Is(err, ErrProtocol) {
		t.Errorf("what nobody asked for: %v", err)
	}
}

// FuzzTrace: whatever a guest says it saw, what is taken of it is bounded, finite and printable, and can be written down.
func FuzzTrace(f *testing.F) {
	good, err := json.Marshal(seenInside())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(good), `{}`, `{"looked":null,"wall":{"user":1e308,"system":1e308}}`, `{"figures":{".":0,"a.b.tasks":1}}`,
		`{"inside":{}}`, `{"spread":[{}]}`, `{"stacks":[{"frames":["\u001b"],"seconds":0,"count":0}]}`, `{"lost":-1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fr := frame{kindDone, []byte(`{"probes":` + string(data) + `}`)}
		var r Result
		if fr.decode(&r) != nil || r.Trace == nil || checkTrace(r.Trace, notebook.TracerNames, time.Second) != nil {
			return
		}
		p := r.Trace
		again, err := json.Marshal(p)
		if err != nil || len(again) > maxTrace {
			t.Fatalf("took %d bytes (%v)", len(again), err)
		}
		sum := 0.0
		for _, v := range p.Wall {
			sum += v
		}
		if !(sum >= 0 && sum <= 3) || p.Lost < 0 || p.Inside != nil {
			t.Errorf("took %s", again)
		}
		for name, v := range p.Figures {
			if !(v >= 0) || math.IsInf(v, 0) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
				t.Errorf("took %q: %v", name, v)
			}
		}
		if err := checkTrace(fit(p, notebook.TracerNames, time.Second), notebook.TracerNames, time.Second); err != nil {
			t.Errorf("what was taken does not fit: %v", err)
		}
	})
}
