// Package crowd is guests at work, one or many of them: the commands and services in them, the places from which services are
// asked, busy neighbours, and the room that the host has for more. What kinds of study have in common with each other, and with
// the timing of work, is here; which guests there are, and what is read of them, is a kind's.
//
// Where a function gives a cause beside an error, the cause says in words why a trial cannot go on, which is a failed trial, and the
// error is of a guest that could not be removed again, which ends the study: it would be measured with the next one.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Bounds of what is asked of a guest.
const (
	ProvisionTimeout = 5 * time.Minute // more than any driver gives itself, whose own message says more
	DestroyTimeout   = 1 * time.Minute
	AskTimeout       = 30 * time.Second // for what a ruler answers at once
)

// Host makes guests. Its methods may be called from several goroutines only where it says so.
type Host interface {
	// Provision makes the guest that is wanted, and returns when its ruler has answered.
	Provision(ctx context.Context, w Want) (Guest, error)
	// Seats is how many guests of the treatment's size have CPUs of their own at once; 1 at least.
	Seats(t notebook.Treatment) (int, error)
	// Load makes the place from which a load asks the service in the treatment's guest; which CPUs it has is in the
	// record.
	Load(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (Guest, notebook.Load, error)
}

// Want says which guest is wanted.
type Want struct {
	Treatment notebook.Treatment
	ID        string
	Work      *workload.Ready
	Seat      int             // the CPUs that it has, where guests are bound to any; the treatment's own are seat 0
	Moments   *engine.Moments // where the moments of its start are noted, which begins when the host is set for the treatment; nil: nobody asks
}

// Guest is a guest as trials see it; package engine says more about each method.
type Guest interface {
	Ruler() Ruler
	Limits() (notebook.Limits, error)
	Facts() engine.Facts
	Address() engine.Address
	Processes() ([]int, error)
	Threads() ([]engine.Thread, error)
	// Machine is the virtual machine that the guest is; false: it is none, or its engine does not say.
	Machine() (engine.Machine, bool)
	// Trace attaches the study's tracers to the guest, until it is stopped. clock is the guest whose ruler runs the
	// trial, where that is not this one's own: the trial's load is there. An error means that nothing is attached, and the trial
	// is run without.
	Trace(clock Guest) (Tracing, error)
	// Watch watches whether the guest stays on its CPUs; nil: it cannot tell.
	Watch() engine.Watch
	// Used is the CPU time that its processes have used so far, those of a guest on another machine not counted.
	Used() (time.Duration, error)
	// Throttled is for how long a CPU quota has held it back so far; 0 where none limits it.
	Throttled() (time.Duration, error)
	// Demanded is what its processes have demanded so far.
	Demanded() (proc.Demand, error)
	// Resident is the sum of its processes' resident sets (RSS), in bytes.
	Resident() (int64, error)
	Diagnose() string
	engine.Saver // an *engine.UnsupportedError where it is none
	Destroy(ctx context.Context) error
}

// Tracing is a trace of one trial that has begun. Stop ends it, once, and says what was seen; its error means that something is still
// attached.
type Tracing interface {
	ruler.Bounds
	Stop() (*notebook.Trace, error)
}

// Ruler measures in a guest: a *ruler.Client, or in tests something whose figures are known.
type Ruler interface {
	Run(ctx context.Context, o ruler.Order) (r ruler.Result, host time.Duration, err error)
	Cost(ctx context.Context, n int, program ...string) ([]time.Duration, error)
	Ping(ctx context.Context) (time.Duration, error)
	// Clock says how far its guest's calendar clock is ahead of this host's, and how wrong that may be.
	Clock(ctx context.Context) (ahead, bound time.Duration, err error)
	RoundTrip() time.Duration // the smallest that a Ping has taken so far
}

// NewID names a guest that is no trial's own.
func NewID() string { return fmt.Sprintf("w-%08x", rand.Uint32()) }

// Patience is d, and longer where the treatment's guests are emulated.
func Patience(t notebook.Treatment, d time.Duration) time.Duration {
	if !t.Representative() {
		return 3 * d
	}
	return d
}

// Diagnosis is what the guest's platform knows about why its ruler stopped answering, in parentheses; it may be empty.
func Diagnosis(g Guest) string {
	if a := g.Diagnose(); a != "" {
		return " (" + a + ")"
	}
	return ""
}

// hostProc is the host's /proc.
var hostProc = os.DirFS("/proc")

// MemoryKills gives what says, of a ruler that is gone, that the host's kernel has killed processes for memory since: with the ruler
// went its own count.
func MemoryKills() func(error) string {
	before := ruler.OOMKills(hostProc)
	return func(err error) string {
		n := ruler.OOMKills(hostProc) - before
		if n < 1 || !errors.Is(err, ruler.ErrGone) {
			return ""
		}
		return fmt.Sprintf("out of memory: the host's kernel killed %d of its processes meanwhile: ", n)
	}
}

// Destroy removes a guest, also when ctx has ended.
func Destroy(ctx context.Context, g interface{ Destroy(context.Context) error }) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DestroyTimeout)
	defer cancel()
	return g.Destroy(ctx)
}

// Vacate removes guests, the latest first. Once one could not be removed in its time the others have that time together: hundreds of an engine that does not
// answer any more would take hours. The error is of the first that is left, and says how many are.
func Vacate(ctx context.Context, guests []Guest) (first error) {
	ctx = context.WithoutCancel(ctx)
	stay := 0
	for _, g := range slices.Backward(guests) {
		of, cancel := context.WithTimeout(ctx, DestroyTimeout)
		err := g.Destroy(of)
		if err != nil && of.Err() != nil && ctx.Err() == nil && stay == 0 {
			hurry, done := context.WithTimeout(ctx, DestroyTimeout)
			defer done()
			ctx = hurry
		}
		cancel()
		if err == nil {
			continue
		}
		if stay++; first == nil {
			first = err
		}
	}
	if stay > 1 {
		return fmt.Errorf("%w (and %d more guests)", first, stay-1)
	}
	return first
}

// Used is the CPU time that guests have used so far.
func Used(guests []Guest) (sum time.Duration, err error) {
	for _, g := range guests {
		u, err := g.Used()
		if err != nil {
			return 0, err
		}
		sum += u
	}
	return sum, nil
}
