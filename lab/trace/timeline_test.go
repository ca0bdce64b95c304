//go:build linux

package trace

import (
	"encoding/binary"
	"testing"
	"time"

	"tare/lab/replay"
	"tare/notebook"
)

// note in bytes.
func noteBytes(at, value uint64, thread uint32, what, why uint8, cpu uint16) []byte {
	n := binary.NativeEndian
	b := n.AppendUint64(nil, at)
	b = n.AppendUint64(b, value)
	b = n.AppendUint32(b, thread)
	return n.AppendUint16(append(b, what, why), cpu)
}

func TestReadNote(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want replay.Event
	}{
		"a thread enters a CPU after a wait for a disk": {noteBytes(5, 0, 7, noteEnters, stateWaits<<4|forBlock, 3), replay.Event{At: 5, Thread: 7, Kind: replay.Enters, State: replay.Waits, Wait: notebook.WallBlock, CPU: 3}},
		"one leaves because of the limit":               {noteBytes(5, 9, 7, noteLeaves, thenThrottled, 3), replay.Event{At: 5, Value: 9, Thread: 7, Kind: replay.Leaves, State: replay.Throttled, CPU: 3}},
		"another one's time":                            {noteBytes(5, 9, 7, noteOthers, 0, 3), replay.Event{At: 5, Value: 9, Thread: 7, Kind: replay.Others, CPU: 3}},
	} {
		if e, ok := readNote(c.b); !ok || e != c.want {
			t.Errorf("%s: %+v, %v", name, e, ok)
		}
	}
	for name, b := range map[string][]byte{"cut off": noteBytes(5, 0, 7, noteWakes, 0, 0)[:23], "of an unknown kind": noteBytes(5, 0, 7, 99, 0, 0),
		"an unknown state before": noteBytes(5, 0, 7, noteEnters, 15<<4, 0), "an unknown state after": noteBytes(5, 0, 7, noteLeaves, 99, 0)} {
		if e, ok := readNote(b); ok {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func FuzzReadNote(f *testing.F) {
	f.Add(noteBytes(5, 0, 7, noteEnters, stateWaits<<4|forBlock, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, ok := readNote(b); ok && (len(b) < noteSize || int(e.Kind) >= len(kindsOfNotes)) {
			t.Errorf("%+v", e)
		}
	})
}

// The timeline has each sleep of a process that sleeps, and no more than it is asked for.
func TestTimeline(t *testing.T) {
	k := watchKit(t)
	l := load(t, nil, "sleep", "2", "1000")
	var events []replay.Event
	w, _ := watch(t, k, 1, []int{l.pid()}, func(tr *Trace) {
		if _, err := l.put.Write([]byte{'\n'}); err != nil {
			t.Fatal(err)
		}
		sleeps := func() (n int) {
			for _, e := range events {
				if e.Kind == replay.Enters && e.State == replay.Waits && e.Wait == notebook.WallSleep {
					n++
				}
			}
			return n
		}
		for deadline := time.Now().Add(loadTime); sleeps() < 20; time.Sleep(5 * time.Millisecond) {
			before, unseen := len(events), false
			var err error
			if events, unseen, err = tr.Timeline(events, before+7); err != nil || unseen || len(events) > before+7 {
				t.Fatalf("%d events after %d, unseen %v, %v", len(events), before, unseen, err)
			}
			if time.Now().After(deadline) {
				t.Fatal("it does not sleep")
			}
		}
	})
	if len(w.Threads) == 0 {
		t.Error("no thread was seen")
	}
	// A thread enters and leaves in turn. Some kernels do not show a few switches, and the clock is corrected now and then.
	at := map[int32]time.Duration{}
	on := map[int32]bool{}
	odd := 0
	for _, e := range events {
		switch e.Kind {
		case replay.Enters, replay.Leaves:
			if e.At < at[e.Thread]-time.Millisecond {
				t.Errorf("%+v after %v", e, at[e.Thread])
			}
			if on[e.Thread] == (e.Kind == replay.Enters) && at[e.Thread] > 0 {
				odd++
			}
			at[e.Thread], on[e.Thread] = e.At, e.Kind == replay.Enters
		}
	}
	if odd > len(events)/10 {
		t.Errorf("%d of %d events are not in turn", odd, len(events))
	}
}
