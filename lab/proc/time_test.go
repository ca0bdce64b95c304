//go:build linux

package proc

import (
	"os"
	"testing"
	"testing/fstest"
	"time"
)

func TestCPUTime(t *testing.T) {
	tree := Tree{fstest.MapFS{"proc/stat": {Data: []byte("cpu  500 20 200 4000 10 1 9 80 50 4\ncpu0 1 2 3\n")}}}
	got, err := tree.CPUTime()
	if want := (CPUTime{All: 48200 * time.Millisecond, Busy: 7300 * time.Millisecond, Stolen: 800 * time.Millisecond}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 -x"} {
		if _, err := parseCPUTime(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	// This machine's, and this process's: what is used here is a part of what all CPUs do.
	before, err := Host.CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	used, err := Used([]int{os.Getpid(), 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		now, err := Used([]int{os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		if now >= used+5*tick {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute of work is %v", now-used)
		}
	}
	after, err := Host.CPUTime()
	if err != nil || after.Busy-before.Busy < 4*tick || after.All-before.All < after.Busy-before.Busy {
		t.Errorf("from %+v to %+v, %v: at least %v of work was done", before, after, err, 4*tick)
	}
}
