//go:build linux

package require

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Disturbed is the share of the host's CPU time, taken by others on the machine below it, from which on times say little.
const Disturbed = 0.05

// Undisturbed makes a check that compares times. Where the check fails while the machine below this host gave much of the host's CPU
// time to others, it is made again, and then the test is skipped: the kernel counts such time as the work's own.
func Undisturbed(t *testing.T, check func(t testing.TB)) {
	t.Helper()
	for again := false; ; again = true {
		r := &recorder{TB: t}
		share := Stolen(t, func() {
			done := make(chan struct{})
			go func() { // which a fatal failure ends
				defer close(done)
				check(r)
			}()
			<-done
		})
		switch {
		case t.Skipped():
			runtime.Goexit()
		case !r.failed:
			return
		case share < Disturbed:
			t.Error(strings.Join(r.said, "\n"))
			return
		case again:
			t.Skipf("the machine below this host gave %.0f %% of its CPU time to others, so times say nothing here: %s", 100*share, strings.Join(r.said, "; "))
		}
	}
}

// Stolen gives the share of the CPU time of all of the host's CPUs that the machine below gave to others while f ran (proc(5), /proc/stat).
func Stolen(t testing.TB, f func()) float64 {
	t.Helper()
	stolen, all := ticks(t)
	f()
	stolenAfter, allAfter := ticks(t)
	return (stolenAfter - stolen) / max(1, allAfter-all)
}

// ticks is what the host's CPUs lost to others so far, and all of their time.
func ticks(t testing.TB) (stolen, all float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		all += n
		if i == 7 {
			stolen = n
		}
	}
	return stolen, all
}

// recorder is a test whose failures are kept.
type recorder struct {
	testing.TB
	failed bool
	said   []string
}

func (r *recorder) Fail()        { r.failed = true }
func (r *recorder) Failed() bool { return r.failed }
func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}
func (r *recorder) Error(args ...any) {
	r.said = append(r.said, strings.TrimSpace(fmt.Sprintln(args...)))
	r.Fail()
}
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
