package replay

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"tare/notebook"
)

const ms = time.Millisecond

var kernel = Kernel{Tick: 4 * ms, Slice: 5 * ms, Turn: ms}

// script makes a timeline.
type script struct{ events []Event }

func (s *script) add(at time.Duration, k Kind, thread int32, e Event) {
	e.At, e.Kind, e.Thread = at, k, thread
	s.events = append(s.events, e)
}

// build makes the Work of the events, in the order of time.
func (s *script) build() *Work {
	slices.SortStableFunc(s.events, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
	return Build(s.events, 0)
}

// works is a thread that something outside wakes, and that runs for a time and waits again.
func (s *script) works(thread int32, cpu uint16, at, work time.Duration, wait string) {
	s.add(at, Wakes, thread, Event{CPU: cpu})
	s.add(at, Enters, thread, Event{CPU: cpu, State: Waits, Wait: wait})
	s.add(at+work, Leaves, thread, Event{CPU: cpu, State: Waits})
}

// near fails if the seconds are not so many milliseconds, to one.
func near(t *testing.T, what string, seconds float64, want time.Duration) {
	t.Helper()
	if math.Abs(seconds-want.Seconds()) > 0.001 {
		t.Errorf("%s: %.4f s, want %v", what, seconds, want)
	}
}

// every is a thread that a timer wakes every 200 ms to work for 60 ms.
func every(n int) *Work {
	s := &script{}
	for i := range n {
		s.works(1, 0, 200*ms*time.Duration(i)+10*ms, 60*ms, notebook.WallSleep)
	}
	return s.build()
}

// A timer's wakes keep their times. A limit of 70 ms in 100 ms holds nothing back, one of 40 ms in 100 ms does, and short periods spread the wait.
func TestLimits(t *testing.T) {
	w := every(22)
	if w.Requests || w.Spans() != 20 {
		t.Fatalf("%d spans", w.Spans())
	}
	near(t, "measured", w.Measured().Mean.Value, 60*ms)
	for _, c := range []struct {
		name string
		p    Platform
		want time.Duration // of the first
	}{
		{"no limit", Platform{CPUs: 1}, 60 * ms},
		{"enough", Platform{CPUs: 1, Quota: 70 * ms, Period: 100 * ms, Phase: 0}, 60 * ms},
		// It runs from 10 to 50 ms, until the end of the period at 100 ms not at all, and for 20 ms then.
		{"too little", Platform{CPUs: 1, Quota: 40 * ms, Period: 100 * ms, Phase: 100 * ms}, 110 * ms},
		// The same, but 20 ms that the first period did not use are left: what was saved for a burst was there from the beginning.
		{"burst", Platform{CPUs: 1, Quota: 40 * ms, Period: 100 * ms, Burst: 20 * ms, Phase: 5 * ms}, 60 * ms},
		// 8 ms in each 10 ms: 56 ms in seven periods, and 4 ms.
		{"short periods", Platform{CPUs: 1, Quota: 8 * ms, Period: 10 * ms, Phase: 10 * ms}, 74 * ms},
	} {
		o := w.Run(c.p, kernel)
		if len(o.Took) != 20 {
			t.Fatalf("%s: %d ended", c.name, len(o.Took))
		}
		if got := o.Took[0]; math.Abs(got-c.want.Seconds()) > 0.006 { // use is settled every 4 ms
			t.Errorf("%s: %.4f s, want %v", c.name, got, c.want)
		}
		if throttled := o.Throttled > 0; throttled != (c.want > 60*ms) {
			t.Errorf("%s: throttled for %v", c.name, o.Throttled)
		}
	}
}

// Threads that are woken at once share one CPU in turns, and have one each on two.
func TestCPUs(t *testing.T) {
	s := &script{}
	for _, at := range []time.Duration{0, 100 * ms, 200 * ms} {
		for i := range int32(2) {
			s.works(1+i, uint16(i), at, 20*ms, notebook.WallNetwork)
		}
	}
	w := s.build()
	near(t, "two CPUs", w.Run(Platform{CPUs: 2}, kernel).Took[0], 20*ms)
	one := w.Run(Platform{CPUs: 1}, kernel)
	near(t, "one CPU", one.Took[1], 40*ms)
	near(t, "queued", one.Queued.Seconds(), 3*39*ms)
}

// barrier is a thread that wakes two others and waits until both are done: the last one wakes it. Of 30 ms and 20 ms, on two CPUs.
func barrier() *Work {
	s := &script{}
	for i := range 3 {
		at := 100 * ms * time.Duration(i)
		s.add(at, Wakes, 1, Event{})
		s.add(at, Enters, 1, Event{State: Waits, Wait: notebook.WallSleep})
		s.add(at, Wakes, 2, Event{Value: 1})
		s.add(at+5*time.Microsecond, Wakes, 3, Event{Value: 1})
		s.add(at+10*time.Microsecond, Leaves, 1, Event{State: Waits})
		s.add(at+10*time.Microsecond, Enters, 2, Event{State: Waits, Wait: notebook.WallFutex})
		s.add(at+10*time.Microsecond, Enters, 3, Event{CPU: 1, State: Waits, Wait: notebook.WallFutex})
		s.add(at+20*ms, Leaves, 3, Event{CPU: 1, State: Waits})
		s.add(at+30*ms, Wakes, 1, Event{Value: 2})
		s.add(at+30*ms, Wakes, 3, Event{Value: 2})
		s.add(at+30*ms, Leaves, 2, Event{State: Waits})
		s.add(at+30*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallFutex})
		s.add(at+30*ms, Enters, 3, Event{CPU: 1, State: Waits, Wait: notebook.WallFutex})
		s.add(at+31*ms, Leaves, 1, Event{State: Waits})
		s.add(at+31*ms, Leaves, 3, Event{CPU: 1, State: Waits})
	}
	return s.build()
}

// Who waits at a barrier goes on when all have come, whoever came last when it was recorded.
func TestBarrier(t *testing.T) {
	w := barrier()
	near(t, "measured", w.Measured().Mean.Value, 31*ms)
	near(t, "two CPUs", w.Run(Platform{CPUs: 2}, kernel).Took[0], 31*ms)
	if got := w.Run(Platform{CPUs: 1}, kernel).Took[0]; got < 0.05 || got > 0.053 {
		t.Errorf("one CPU: %.4f s, want 50 to 53 ms", got)
	}
}

// requests come to two connections at once every 100 ms. The thread that is free takes them, one after the other if shared, for 20 ms each.
func requests(pool bool) *Work {
	s := &script{}
	for i := range 4 {
		at := 100 * ms * time.Duration(i)
		first, second := int32(1), int32(2)
		if pool && i%2 == 1 {
			first, second = second, first
		}
		for n, thread := range []int32{first, second} {
			conn, cpu := uint64(n+1), uint16(n)
			s.add(at, Arrives, 0, Event{Value: conn, CPU: cpu})
			s.add(at, Wakes, thread, Event{CPU: cpu})
			s.add(at, Enters, thread, Event{CPU: cpu, State: Waits, Wait: notebook.WallNetwork})
			s.add(at, Takes, thread, Event{CPU: cpu, Value: conn})
		}
		for n, thread := range []int32{first, second} {
			s.add(at+20*ms, Sends, thread, Event{CPU: uint16(n), Value: uint64(n + 1)})
			s.add(at+20*ms, Leaves, thread, Event{CPU: uint16(n), State: Waits})
		}
	}
	return s.build()
}

func TestRequests(t *testing.T) {
	for _, pool := range []bool{false, true} {
		w := requests(pool)
		if !w.Requests || w.Spans() != 8 {
			t.Fatalf("pool %v: %d requests", pool, w.Spans())
		}
		near(t, "measured", w.Measured().P99.Value, 20*ms)
		near(t, "two CPUs", w.Predict(Platform{CPUs: 2}, nil, kernel).P99.Value, 20*ms)
		near(t, "one CPU", w.Predict(Platform{CPUs: 1}, nil, kernel).P99.Value, 40*ms)
	}
}

// A thread that waits for a reply from outside in the middle of a request waits for it in the replay too.
func TestReplyFromOutside(t *testing.T) {
	s := &script{}
	for i := range 2 {
		at := 100 * ms * time.Duration(i)
		s.add(at, Arrives, 0, Event{Value: 1})
		s.add(at, Wakes, 1, Event{})
		s.add(at, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
		s.add(at, Takes, 1, Event{Value: 1})
		s.add(at+10*ms, Leaves, 1, Event{State: Waits})
		s.add(at+40*ms, Wakes, 1, Event{CPU: 1}) // no bytes for the service came to that CPU
		s.add(at+40*ms, Enters, 1, Event{CPU: 1, State: Waits, Wait: notebook.WallNetwork})
		s.add(at+50*ms, Sends, 1, Event{CPU: 1, Value: 1})
		s.add(at+50*ms, Leaves, 1, Event{CPU: 1, State: Waits})
	}
	w := s.build()
	near(t, "as it was", w.Run(Platform{CPUs: 1}, kernel).Took[0], 50*ms)
	// 5 ms in each 50 ms: the first 10 ms take until 55 ms at least, the reply comes 30 ms later, and the rest takes longer again.
	if got := w.Run(Platform{CPUs: 1, Quota: 5 * ms, Period: 50 * ms, Phase: 50 * ms}, kernel).Took[0]; got < 0.1 || got > 0.16 {
		t.Errorf("limited: %.4f s", got)
	}
}

// Neighbours take the CPU time that they took, from a CPU that the target does not need if there is one.
func TestNeighbours(t *testing.T) {
	s := &script{}
	for i := range 3 {
		at := 100 * ms * time.Duration(i)
		s.works(1, 0, at+10*ms, 20*ms, notebook.WallSleep)
		s.add(at+50*ms, Others, 99, Event{CPU: 1, Value: uint64(40 * ms)}) // from 10 to 50 ms
	}
	w := s.build()
	near(t, "a CPU each", w.Run(Platform{CPUs: 1, Host: 2}, kernel).Took[0], 20*ms)
	if got := w.Run(Platform{CPUs: 1, Host: 1}, kernel).Took[0]; got < 0.038 || got > 0.042 {
		t.Errorf("in turns on one CPU: %.4f s, want 40 ms", got)
	}
}

// The beginning of the periods is found by which one explains what was recorded.
func TestPhases(t *testing.T) {
	w := every(22)
	p := Platform{CPUs: 1, Quota: 40 * ms, Period: 100 * ms, Phase: 33 * ms}
	for i, took := range w.Run(p, kernel).Took {
		w.spans[i].took = time.Duration(took * 1e9)
	}
	likely := w.Phases(p, kernel)
	if len(likely) == 0 {
		t.Fatal("none")
	}
	for _, at := range likely { // with any of these the limit holds nothing back: at most 40 ms before the refill, and after it
		if at < 25*ms || at > 55*ms {
			t.Errorf("%v, want 30 to 50 ms", at)
		}
	}
	if w.Phases(Platform{CPUs: 1}, kernel) != nil {
		t.Error("without a limit there are no periods")
	}
}

// Intervals contain the value, and are wider for a replay that is off.
func TestPrediction(t *testing.T) {
	w := every(101)
	p := w.Predict(Platform{CPUs: 1, Quota: 20 * ms, Period: 70 * ms}, nil, kernel)
	if e := p.P99; !(e.Low <= e.Value && e.Value <= e.High) || !(p.Mean.Low < p.Mean.Value && p.Mean.Value < p.Mean.High) {
		t.Errorf("%+v", p)
	}
	if wide := p.Widened(Offset{0.1, 0.1}); math.Abs(wide.P99.Low/p.P99.Low-math.Exp(-0.1)) > 1e-9 || wide.P99.Value != p.P99.Value {
		t.Errorf("%+v", wide)
	}
	if off := Off(p, p); off != (Offset{}) {
		t.Errorf("off by %v", off)
	}
	if none := Build(nil, 0).Measured(); !math.IsNaN(none.P99.Value) {
		t.Errorf("nothing: %+v", none)
	}
}

// The account of a request follows the thread that works at it, and through its waits the threads that ended them.
func TestAccount(t *testing.T) {
	s := &script{}
	s.add(0, Arrives, 0, Event{Value: 1})
	s.add(0, Wakes, 1, Event{})
	s.add(5*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
	s.add(5*ms, Takes, 1, Event{Value: 1})
	s.add(10*ms, Leaves, 1, Event{State: Waits}) // for a disk
	s.add(30*ms, Wakes, 1, Event{CPU: 1})
	s.add(32*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallBlock})
	s.add(40*ms, Wakes, 2, Event{Value: 1})
	s.add(40*ms, Leaves, 1, Event{State: Waits}) // for the other thread
	s.add(40*ms, Enters, 2, Event{State: Waits, Wait: notebook.WallFutex})
	s.add(50*ms, Leaves, 2, Event{State: Throttled})
	s.add(65*ms, Enters, 2, Event{State: Throttled})
	s.add(70*ms, Wakes, 1, Event{Value: 2})
	s.add(70*ms, Leaves, 2, Event{State: Waits})
	s.add(71*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallFutex})
	s.add(80*ms, Sends, 1, Event{Value: 1})
	s.add(80*ms, Leaves, 1, Event{State: Waits})
	a := Build(s.events, -10*ms).Account
	if a == nil || a.N != 1 {
		t.Fatalf("%+v", a)
	}
	sum := 0.0
	for key, want := range map[string]time.Duration{notebook.WallCore: 5*ms + 2*ms + ms, notebook.WallUser: 5*ms + 8*ms + 10*ms + 5*ms + 9*ms, notebook.WallBlock: 20 * ms, notebook.WallThrottled: 15 * ms} {
		near(t, key, a.Mean[key], want)
		sum += a.Mean[key]
	}
	near(t, "all of it", sum, 80*ms)
	near(t, "median", a.Median, 80*ms)
	if a.P99 != nil {
		t.Error("one request has no 99th percentile")
	}
}

// What a thread does for others before it takes a request, the request stands in a queue.
func TestQueued(t *testing.T) {
	s := &script{}
	s.works(1, 0, 0, 30*ms, notebook.WallNetwork)
	s.events = s.events[:2] // it goes on
	s.add(10*ms, Arrives, 0, Event{Value: 1})
	s.add(30*ms, Takes, 1, Event{Value: 1})
	s.add(35*ms, Sends, 1, Event{Value: 1})
	s.add(36*ms, Leaves, 1, Event{State: Waits})
	a := s.build().Account
	near(t, "queued", a.Mean[notebook.RequestQueued], 20*ms)
	near(t, "ran", a.Mean[notebook.WallUser], 5*ms)
}

// Clients that wait for the answer are told from those that send at fixed times.
func TestClosedLoop(t *testing.T) {
	for name, c := range map[string]struct {
		next func(at, took time.Duration) time.Duration // when the next request comes
		want bool
	}{
		"at once after the answer":   {func(at, took time.Duration) time.Duration { return at + took + 100*time.Microsecond }, true},
		"some time after the answer": {func(at, took time.Duration) time.Duration { return at + took + 50*ms }, true},
		"at fixed times":             {func(at, took time.Duration) time.Duration { return at + 100*ms }, false},
	} {
		s, at := &script{}, ms
		for i := range 40 {
			took := ms * time.Duration(5+10*(i%5))
			s.add(at, Arrives, 0, Event{Value: 1})
			s.add(at, Wakes, 1, Event{})
			s.add(at, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
			s.add(at, Takes, 1, Event{Value: 1})
			s.add(at+took, Sends, 1, Event{Value: 1})
			s.add(at+took, Leaves, 1, Event{State: Waits})
			at = c.next(at, took)
		}
		if got := s.build().ClosedLoop; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A request that comes in pieces begins with the first.
func TestRequestInPieces(t *testing.T) {
	s := &script{}
	s.add(ms, Arrives, 0, Event{Value: 1})
	s.add(ms, Wakes, 1, Event{})
	s.add(ms, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
	s.add(ms, Takes, 1, Event{Value: 1})
	s.add(2*ms, Leaves, 1, Event{State: Waits})
	s.add(100*ms, Arrives, 0, Event{Value: 1})
	s.add(100*ms, Wakes, 1, Event{})
	s.add(100*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
	s.add(100*ms, Takes, 1, Event{Value: 1})
	s.add(103*ms, Sends, 1, Event{Value: 1})
	s.add(103*ms, Leaves, 1, Event{State: Waits})
	w := s.build()
	if w.Spans() != 1 {
		t.Fatalf("%d requests", w.Spans())
	}
	near(t, "from the first piece", w.Measured().Mean.Value, 102*ms)
	near(t, "waiting for the client", w.Account.Mean[notebook.WallNetwork], 98*ms)
}
