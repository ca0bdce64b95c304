package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/notebook"
	"tare/stats"
)

// serves is a request on a connection: it comes, waits until the thread is told, and is answered after so much work.
func (s *script) serves(conn uint64, thread int32, came, taken, work time.Duration) {
	s.add(came, Arrives, 0, Event{Value: conn})
	s.add(taken, Wakes, thread, Event{})
	s.add(taken, Enters, thread, Event{State: Waits, Wait: notebook.WallNetwork})
	s.add(taken, Takes, thread, Event{Value: conn})
	s.add(taken+work, Sends, thread, Event{Value: conn})
	s.add(taken+work, Leaves, thread, Event{State: Waits})
}

// account divides what a load timed.
func (s *script) account(timed ...Operation) *notebook.Requests {
	slices.SortStableFunc(s.events, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
	return Account(s.events, 0, timed, false)
}

// has fails if an account has not these parts, in whole milliseconds, or others.
func has(t *testing.T, what string, got map[string]float64, want map[string]time.Duration) {
	t.Helper()
	for key, v := range got {
		if _, known := want[key]; !known && v > 1e-4 {
			t.Errorf("%s: %v on %s", what, time.Duration(v*1e9), key)
		}
	}
	for key, v := range want {
		near(t, what+": "+key, got[key], v)
	}
}

// second is how far the realtime clock is ahead.
func second() (time.Duration, error) { return time.Second, nil }

func one(begin, end time.Duration) Operation { return Operation{[]Span{{begin, end}}} }

// A load's time is the service's, and what passed before the request came and after it was answered.
func TestWhatALoadTimed(t *testing.T) {
	s := &script{}
	s.serves(1, 1, 10*ms, 30*ms, 40*ms)
	s.serves(2, 2, 10*ms, 12*ms, 3*ms)
	s.add(200*ms, Others, 0, Event{})
	a := s.account(one(5*ms, 80*ms), one(6*ms, 16*ms), one(150*ms, 300*ms)) // the last one ends after the timeline
	if a.Of != notebook.RequestsTimed || a.N != 2 || a.ByAll {
		t.Fatalf("%+v", a)
	}
	// The first took 75 ms: 15 outside, 20 in the queue, 40 of work; the second 10 ms: 5, 2 and 3.
	has(t, "mean", a.Mean, map[string]time.Duration{notebook.RequestLoad: 10 * ms, notebook.RequestQueued: 11 * ms, notebook.WallUser: 21*ms + ms/2})
}

// A page is as slow as the requests that one had to wait for.
func TestAPageIsItsSlowestPath(t *testing.T) {
	s := &script{}
	s.serves(1, 1, 10*ms, 10*ms, 20*ms) // the document
	s.serves(2, 2, 40*ms, 40*ms, 50*ms) // and what belongs to it
	s.serves(3, 3, 41*ms, 41*ms, 2*ms)
	s.serves(4, 4, 95*ms, 95*ms, 5*ms)
	s.add(200*ms, Others, 0, Event{})
	a := s.account(Operation{[]Span{{9 * ms, 31 * ms}, {39 * ms, 91 * ms}, {39 * ms, 44 * ms}, {94 * ms, 101 * ms}}})
	// 92 ms: 75 ms of work, and the rest with the load.
	has(t, "mean", a.Mean, map[string]time.Duration{notebook.WallUser: 75 * ms, notebook.RequestLoad: 17 * ms})
}

// Where several requests at a time share a connection, all threads' time counts.
func TestRequestsOnOneConnection(t *testing.T) {
	s := &script{}
	s.add(10*ms, Arrives, 0, Event{Value: 1})
	s.add(10*ms, Wakes, 1, Event{})
	s.add(10*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
	s.add(10*ms, Takes, 1, Event{Value: 1})
	s.add(12*ms, Arrives, 0, Event{Value: 1})
	s.add(12*ms, Takes, 1, Event{Value: 1})
	for thread := int32(2); thread < 4; thread++ { // one runs, and one waits for its CPU
		s.add(14*ms, Wakes, thread, Event{Value: 1})
	}
	s.add(14*ms, Leaves, 1, Event{State: Waits})
	s.add(14*ms, Enters, 2, Event{State: Waits, Wait: notebook.WallFutex})
	s.add(34*ms, Leaves, 2, Event{State: Waits})
	s.add(34*ms, Enters, 3, Event{State: Waits, Wait: notebook.WallFutex})
	s.add(54*ms, Wakes, 1, Event{Value: 3})
	s.add(54*ms, Leaves, 3, Event{State: Waits})
	s.add(54*ms, Enters, 1, Event{State: Waits, Wait: notebook.WallNetwork})
	s.add(55*ms, Sends, 1, Event{Value: 1})
	s.add(55*ms, Leaves, 1, Event{State: Waits})
	s.add(100*ms, Others, 0, Event{})
	a := s.account(one(9*ms, 56*ms), one(11*ms, 57*ms))
	if !a.ByAll || a.N != 2 {
		t.Fatalf("%+v", a)
	}
	// In the service they ran for 4 and 2, for 10 of the 20 in which two could run, for 20, and for 1 ms.
	has(t, "mean", a.Mean, map[string]time.Duration{notebook.WallUser: 34 * ms, notebook.WallCore: 10 * ms, notebook.RequestLoad: 2*ms + ms/2})
	sum := 0.0
	for _, v := range a.Mean {
		sum += v
	}
	near(t, "all", sum, 46*ms+ms/2)
}

// A command without sockets has the times from wake to wait.
func TestAccountOfWakes(t *testing.T) {
	s := &script{}
	for i := range 22 {
		s.works(1, 0, 200*ms*time.Duration(i)+10*ms, 60*ms, notebook.WallSleep)
	}
	a := s.account()
	if a.Of != notebook.RequestsWakes || a.N != 20 {
		t.Fatalf("%+v", a)
	}
	has(t, "mean", a.Mean, map[string]time.Duration{notebook.WallUser: 60 * ms})
	if a := (&script{}).account(); a != nil {
		t.Errorf("of nothing: %+v", a)
	}
}

// A kernel that does not show each switch to the thread leaves no two of these times in one.
func TestAccountOfWakesWithoutASwitch(t *testing.T) {
	const n, work = 22, 60 * ms
	s := &script{}
	for i := range n {
		s.works(1, 0, 200*ms*time.Duration(i)+10*ms, work, notebook.WallSleep)
		s.events[len(s.events)-1].Value = uint64(work) * uint64(i+1) // the thread's CPU time
	}
	s.events = slices.Delete(s.events, 3*10+1, 3*10+2) // the tenth wake's
	a := s.account()
	if a.N != n-2 {
		t.Errorf("%d times, want %d", a.N, n-2)
	}
	has(t, "mean", a.Mean, map[string]time.Duration{notebook.WallUser: work})
}

func TestWhatALoadRecords(t *testing.T) {
	all, err := ReadOperations(strings.NewReader("realtime\n7 1000000300 1000000400\n3 1000000000 1000000100\n7 1000000200 1000000300\n"), second)
	if err != nil || fmt.Sprint(all) != "[{[{0s 100ns}]} {[{200ns 300ns} {300ns 400ns}]}]" {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := ReadOperations(strings.NewReader("monotonic\n1 5 6\n"), second); err != nil || fmt.Sprint(all) != "[{[{5ns 6ns}]}]" {
		t.Errorf("%v, %v", all, err)
	}
	for text, want := range map[string]string{
		"":                           "it is empty",
		"1 2 3\n":                    `line 1: "1 2 3": must be realtime or monotonic`,
		"realtime\n1 2\n":            `line 2: "1 2": must be three numbers`,
		"realtime\n1 2 3\n1 x 3":     `line 3: "x": must be a whole number of at least 0`,
		"realtime\n1 -2 3\n":         `line 2: "-2": must be a whole number of at least 0`,
		"realtime\n1 9 3\n":          "line 2: the request ends before it begins",
		strings.Repeat("1 2 3 ", 99): "bufio.Scanner: token too long",
	} {
		if _, err := ReadOperations(strings.NewReader(text), second); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Whatever a load records, and whatever came to the service, the parts of an account add up to the time.
func FuzzOperations(f *testing.F) {
	f.Add("monotonic\n1 10000 90000\n1 95000 99000\n2 20000 70000\n", []byte{3, 1, 0, 4, 1, 0, 5, 1, 0})
	f.Fuzz(func(t *testing.T, record string, b []byte) {
		timed, err := ReadOperations(strings.NewReader(record), second)
		if err != nil || len(timed) > 100 || len(b) > 3000 {
			return
		}
		var events []Event
		for i := 0; i+2 < len(b); i += 3 {
			events = append(events, Event{At: time.Duration(i) * time.Microsecond, Kind: Kind(b[i] % 7), Thread: int32(b[i+1] % 4), Value: uint64(b[i+1] >> 4), State: State(b[i+2] % 6),
				CPU: uint16(b[i+2] >> 7), Wait: notebook.WallNetwork})
		}
		a := Account(events, 0, timed, true)
		if a == nil || a.Of != notebook.RequestsTimed {
			return
		}
		of, all := 0.0, 0.0
		for _, o := range timed {
			if s := o.span(); s.Begin >= 0 {
				of, all = of+1, all+(s.End-s.Begin).Seconds()
			}
		}
		sum := 0.0
		for _, v := range a.Mean {
			sum += v
		}
		if float64(a.N) != of || math.Abs(sum-all/of) > 1e-6 {
			t.Errorf("%d of %v operations, %v s of %v s: %+v", a.N, of, sum, all/of, a)
		}
	})
}

// The requests that stand for a percentile have it as their mean, even in a long tail.
func TestRequestsAboutAPercentile(t *testing.T) {
	long := make([]float64, 1000)
	for i := range long {
		long[i] = 1 / (1 - float64(i)/1001) // the 99th percentile is 100, the slowest is 1000
	}
	for _, c := range []struct {
		times []float64
		of    [2]float64
		value float64
	}{
		{long, around99, stats.Quantile(long, 0.99)},
		{long, around50, stats.Quantile(long, 0.5)},
		{slices.Repeat([]float64{3}, 600), around99, 3},
		{[]float64{1}, around50, 1},
		{[]float64{1, 2}, around50, 1.5},
	} {
		from, to := about(c.times, c.of, c.value)
		n := float64(len(c.times))
		if from < int(c.of[0]*n) || to > max(int(c.of[1]*n), from+1) || to <= from {
			t.Fatalf("about %g: requests %d to %d of %g", c.value, from, to, n)
		}
		sum := 0.0
		for _, v := range c.times[from:to] {
			sum += v
		}
		if got := sum / float64(to-from); n > 100 && math.Abs(got/c.value-1) > 0.03 {
			t.Errorf("about %g: %d requests with a mean of %g", c.value, to-from, got)
		}
	}
}
