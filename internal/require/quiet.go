//go:build linux

package require

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// disturbed is the share of the host's CPU time from which times say little, when other programs or the machine below the host use it.
const disturbed = 0.05

// SkipsFile is the environment variable with the file to which Quiet appends the name of each test that it skips.
const SkipsFile = "TARE_SKIPS"

// Quiet runs a check that compares times and so needs a quiet host. If the check fails and the host was not quiet, Quiet runs it a second time, and
// then skips the test. The host was not quiet if the machine below it used much of its CPU time during the check. It was also not quiet if other
// programs use much of it right after the check, while the test itself does nothing. A caller must therefore not run in parallel with other tests. Such a skip is not a missing component:
// TARE_REQUIRE=all allows it.
func Quiet(t *testing.T, check func(t testing.TB)) {
	t.Helper()
	for again := false; ; again = true {
		r := &recorder{TB: t}
		stolen := stolen(t, func() {
			done := make(chan struct{})
			go func() { // a fatal failure ends the goroutine
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
		}
		others := busy(t)
		switch {
		case max(stolen, others) < disturbed:
			t.Error(strings.Join(r.said, "\n"))
			return
		case again:
			skip(t, fmt.Sprintf("needs a quiet host: the machine below it used %.0f %% of its CPU time, other programs use %.0f %%: %s", 100*stolen, 100*others, strings.Join(r.said, "; ")))
		}
	}
}

// skip skips the test and says so in SkipsFile.
func skip(t *testing.T, why string) {
	t.Helper()
	if file := os.Getenv(SkipsFile); file != "" {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(f, "%s: %s\n", t.Name(), why)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip(why)
}

// stolen gives the share of the CPU time of all of the host's CPUs that the machine below gave to others while f ran.
func stolen(t testing.TB, f func()) float64 {
	t.Helper()
	before := ticks(t)
	f()
	after := ticks(t)
	return (after.stolen - before.stolen) / max(1, after.all-before.all)
}

// busy gives the share of the CPU time of all of the host's CPUs that is used while this test does nothing.
func busy(t testing.TB) float64 {
	t.Helper()
	before := ticks(t)
	time.Sleep(time.Second) // the observed time
	after := ticks(t)
	return (after.used - before.used) / max(1, after.all-before.all)
}

// cpuTime is what the host's CPUs have done so far, in ticks (proc(5), /proc/stat).
type cpuTime struct{ all, used, stolen float64 }

func ticks(t testing.TB) (sum cpuTime) {
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
		sum.all += n
		if i != 3 && i != 4 {
			sum.used += n
		}
		if i == 7 {
			sum.stolen = n
		}
	}
	return sum
}

// recorder is a test that keeps its failures.
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
