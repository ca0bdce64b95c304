package arrivals

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"tare/notebook"
)

// Twenty starts, each a tenth of a second longer than the previous one, at 10 a second: they complete at half that rate, and their
// quantiles are known.
func TestBringupFigures(t *testing.T) {
	b := Bringup{Offered: 10, OfS: 4, ClientS: 0.2}
	for i := range 20 {
		at, took := float64(i)/10, float64(i+1)/10
		b.Starts = append(b.Starts, Request{AtS: at, LateS: 0.001, CallS: took, HelloS: took, AnswerS: 2 * took})
	}
	b.Starts = append(b.Starts, Request{AtS: 2, Failure: notebook.TextMessage("no answer")})
	f := b.Figures()
	for name, want := range map[string]float64{
		StartMean.Name: 1.05, StartP50.Name: 1, StartP95.Name: 1.9, StartP99.Name: 2, StartMax.Name: 2, AnswerMean.Name: 2.1, AnswerP95.Name: 3.8,
		RateReached.Name: 5, ClientLate.Name: 0.001, ClientCPU.Name: 5,
	} {
		if math.Abs(f[name]-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, f[name], want)
		}
	}
	if f := (&Bringup{}).Figures(); len(f) != 0 {
		t.Errorf("figures of no starts: %v", f)
	}
}

func TestProfileFigures(t *testing.T) {
	p := &Profile{Names: []string{"dockerd", "runtime.mallocgc", "do_exit", "exit_mmap", "main.main"}, Stacks: []ProfileStack{
		{Role: ProfileEngine, User: []int{0, 4, 1}, N: 20},
		{Role: ProfileEngine, User: []int{0, 4}, Kernel: []int{2, 3}, N: 30},
		{Role: ProfileEngine, User: []int{0, 4}, N: 50},
		{Role: ProfileGuest, User: []int{9, -1}, N: 100},
	}}
	for name, want := range map[string]float64{
		ProfileInKernel.Name: 30, ProfileGC.Name: 20, ProfileMemory.Name: 30, ProfileOfAll.Name: 50, ProfileAllKernel.Name: 15,
		ProfileAllGC.Name: 10, ProfileAllMemory.Name: 15,
	} {
		if got := p.Figures()[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	if c := p.Class(p.Stacks[1]); c != "memory management" {
		t.Errorf("a mapping that goes with its process is %q", c)
	}
}

// A thread that another thread gives its core to returns from finish_task_switch, most of all where a timer takes the samples: it
// waited. A new process also returns from it, through ret_from_fork.
func TestAWaitIsNoProcessStart(t *testing.T) {
	p := &Profile{Names: []string{"entry_SYSCALL_64_after_hwframe", "do_futex", "futex_wait", "schedule", "__schedule", "finish_task_switch.isra.0", "ret_from_fork", "schedule_tail", "do_syscall_64", "worker"}}
	for _, c := range []struct {
		stack []int
		want  string
	}{
		{[]int{0, 8, 1, 2, 3, 4, 5}, "waiting and scheduling"},
		{[]int{3, 4, 5}, "waiting and scheduling"},
		{[]int{6, 7, 5}, "process creation and end"},
	} {
		if got := p.Class(ProfileStack{Role: ProfileEngine, User: []int{9}, Kernel: c.stack, N: 1}); got != c.want {
			t.Errorf("%v is %q, want %q", c.stack, got, c.want)
		}
	}
}

// Folded stacks unfold to the same stacks, and take less room if they are sorted. References of a folder to frames that do not
// exist are cut off.
func TestStacksAreFolded(t *testing.T) {
	var all []ProfileStack
	for i := range 300 {
		all = append(all, ProfileStack{Role: ProfileEngine, User: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, i / 10}, Kernel: []int{20, 21, 22, i % 10}[:i%5], N: i + 1})
	}
	p := &Profile{Stacks: Fold(all)}
	i := 0
	for s := range p.All() {
		if want := all[i]; !slices.Equal(s.User, want.User) || !slices.Equal(s.Kernel, want.Kernel) || s.N != want.N || s.Role != want.Role {
			t.Fatalf("stack %d: %+v, want %+v", i, s, want)
		}
		i++
	}
	whole, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	folded, err := json.Marshal(p.Stacks)
	if err != nil || i != len(all) || 5*len(folded) > 4*len(whole) {
		t.Errorf("%d of %d stacks, in %d bytes of %d, %v", i, len(all), len(folded), len(whole), err)
	}
	for s := range (&Profile{Stacks: []ProfileStack{{User: []int{1}, N: 1}, {Same: 1 << 40, Also: -3, Kernel: []int{2}, N: 2}}}).All() {
		if s.N == 2 && (len(s.User) != 1 || len(s.Kernel) != 1) {
			t.Errorf("%+v", s)
		}
	}
}

// Each spacing has the rate on average, and begins at once.
func TestTimes(t *testing.T) {
	draws := []float64{0.5, 2.5, 1}
	draw := func() float64 {
		d := draws[0]
		draws = append(draws[1:], d)
		return d
	}
	const quarter = 250 * time.Millisecond
	for spacing, want := range map[string][]time.Duration{
		"":                      {0, quarter, 2 * quarter, 3 * quarter, 4 * quarter, 5 * quarter},
		notebook.SpacingEven:    {0, quarter, 2 * quarter, 3 * quarter, 4 * quarter, 5 * quarter},
		notebook.SpacingBurst:   {0, 0, 0, 0, 4 * quarter, 4 * quarter},
		notebook.SpacingPoisson: {0, quarter / 2, 3 * quarter, 4 * quarter, 4*quarter + quarter/2, 7 * quarter},
	} {
		if got := Times(spacing, 4, 6, draw); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", spacing, got, want)
		}
	}
}
