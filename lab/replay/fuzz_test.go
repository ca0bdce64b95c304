package replay

import (
	"testing"
	"time"

	"tare/notebook"
)

// Whatever a timeline says, each step follows at most one other, and a replay comes to an end.
func FuzzTimeline(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	waits := []string{notebook.WallSleep, notebook.WallNetwork, notebook.WallFutex, notebook.WallBlock}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4000 {
			return
		}
		var events []Event
		for i := 0; i+3 < len(b); i += 4 {
			e := Event{At: time.Duration(i)*time.Microsecond + time.Duration(b[i])*time.Microsecond, Kind: Kind(b[i] % 7), State: State(b[i+1] % 6), Thread: int32(b[i+2] % 4),
				Value: uint64(b[i+3] % 4), CPU: uint16(b[i+1] >> 6 & 1), Wait: waits[b[i+1]>>4&3]}
			events = append(events, e)
		}
		w := Build(events, 0)
		before := make([]int, len(w.steps))
		for i, s := range w.steps {
			if s.next != none {
				before[s.next]++
			}
			if s.next == int32(i) || s.wakes == int32(i) {
				t.Fatalf("step %d follows itself", i)
			}
		}
		for _, h := range w.heads {
			if h != none {
				before[h]++
			}
		}
		for i, n := range before {
			if n != 1 {
				t.Fatalf("step %d has %d places", i, n)
			}
		}
		k := Kernel{Tick: 4 * time.Millisecond, Slice: 5 * time.Millisecond, Turn: time.Millisecond}
		for _, p := range []Platform{{CPUs: 2}, {CPUs: 1, Quota: time.Millisecond, Period: 10 * time.Millisecond}} {
			if o := w.Run(p, k); len(o.Took) != len(w.spans) {
				t.Fatalf("%d of %d spans ended\n%+v\n%+v\n%+v\n%+v", len(o.Took), len(w.spans), w.steps, w.spans, w.heads, events)
			}
		}
	})
}
