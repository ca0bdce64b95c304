// Package crowd runs guests, one or many: the commands and services in them, the places from which loads ask the services, busy
// neighbours, and the check that the host has room for more. It holds what the kinds of study share with each other and with the
// timing of work. Each kind decides which guests there are and what is read of them.
//
// Where a function returns both a cause and an error, the cause says why a trial cannot go on; such a trial has failed. The error
// means that a guest could not be removed. It ends the study, because that guest would disturb the next measurement.
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

// Time limits of requests to a guest.
const (
	ProvisionTimeout = 5 * time.Minute // longer than any driver allows itself, so that the driver's more precise message is the one reported
	DestroyTimeout   = 1 * time.Minute
	AskTimeout       = 30 * time.Second // for what a ruler answers at once
)

// Host makes guests. A method may be called from several goroutines only where its comment says so.
type Host interface {
	// Provision makes the wanted guest and returns when its ruler has answered.
	Provision(ctx context.Context, w Want) (Guest, error)
	// Seats is the number of guests of the treatment's size that can have CPUs of their own at the same time; at least 1.
	Seats(t notebook.Treatment) (int, error)
	// Load makes the place from which a load asks the service in the treatment's guest. The returned record names its CPUs.
	Load(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (Guest, notebook.Load, error)
}

// Want describes the wanted guest.
type Want struct {
	Treatment notebook.Treatment
	ID        string
	Work      *workload.Ready
	Seat      int             // which CPUs it has, where guests are bound to CPUs; the treatment's own are seat 0
	Moments   *engine.Moments // where the moments of its start are noted, from setting the host for the treatment on; nil: not wanted
}

// Guest is a guest as trials see it. Package engine documents each method.
type Guest interface {
	Ruler() Ruler
	Limits() (notebook.Limits, error)
	Facts() engine.Facts
	Address() engine.Address
	Processes() ([]int, error)
	Threads() ([]engine.Thread, error)
	// Machine returns the virtual machine of the guest; false if the guest is not a VM or its engine does not say.
	Machine() (engine.Machine, bool)
	// Trace attaches the study's tracers to the guest until the tracing is stopped. An error means that nothing is attached and the
	// trial is made without tracers.
	Trace(of Traced) (Tracing, error)
	// Watch watches whether the guest stays on its CPUs; nil if it cannot tell.
	Watch() engine.Watch
	// Used is the CPU time that the guest's processes have used so far, without processes on another machine.
	Used() (time.Duration, error)
	// Throttled is how long a CPU quota has held the guest back so far; 0 without a quota.
	Throttled() (time.Duration, error)
	// Demanded is what the guest's processes have demanded so far.
	Demanded() (proc.Demand, error)
	// Resident is the sum of the resident set sizes (RSS) of the guest's processes, in bytes.
	Resident() (int64, error)
	Diagnose() string
	engine.Saver // returns an *engine.UnsupportedError where the guest cannot be saved
	Destroy(ctx context.Context) error
}

// Traced says what to trace.
type Traced struct {
	Clock    Guest  // whose ruler runs the trial: the place of the load, where it is not the guest itself
	Requests bool   // divide the time of its requests
	Port     int    // on which the service in the guest listens; 0: it is none
	Record   string // the file in the scratch folder of Clock to which the load may write its requests
}

// Tracing is the running trace of one trial. Stop ends it, once, and returns what was seen; its error means that something is still
// attached.
type Tracing interface {
	ruler.Bounds
	Stop() (*notebook.Trace, error)
}

// Ruler measures in a guest: a *ruler.Client, or in tests a fake with known figures.
type Ruler interface {
	Run(ctx context.Context, o ruler.Order) (r ruler.Result, host time.Duration, err error)
	Cost(ctx context.Context, n int, program ...string) ([]time.Duration, error)
	Ping(ctx context.Context) (time.Duration, error)
	// Clock says how far the calendar clock of the guest is ahead of this host's, and how large the error of that may be.
	Clock(ctx context.Context) (ahead, bound time.Duration, err error)
	RoundTrip() time.Duration // the shortest Ping so far
}

// NewID names a guest that belongs to no single trial.
func NewID() string { return fmt.Sprintf("w-%08x", rand.Uint32()) }

// Patience is d, or three times d where the treatment's guests are emulated.
func Patience(t notebook.Treatment, d time.Duration) time.Duration {
	if !t.Representative() {
		return 3 * d
	}
	return d
}

// Diagnosed is a cause with what the guest's platform knows about why its ruler stopped answering, if it knows anything.
func Diagnosed(cause *notebook.Message, g Guest) *notebook.Message {
	if a := g.Diagnose(); a != "" {
		return notebook.Say("diagnosed", "cause", cause, "diagnosis", a)
	}
	return cause
}

// Silent is why a guest's ruler did not answer.
func Silent(err error, g Guest) *notebook.Message { return Diagnosed(notebook.ErrorMessage(err), g) }

// hostProc is the host's /proc.
var hostProc = os.DirFS("/proc")

// MemoryKills counts the processes that the host's kernel has killed because memory was short. The function that it returns does what
// Silent does. If the ruler is gone, it adds how many processes were killed since, because the ruler's own count is lost with the ruler.
func MemoryKills() func(error, Guest) *notebook.Message {
	before := ruler.OOMKills(hostProc)
	return func(err error, g Guest) *notebook.Message {
		n := ruler.OOMKills(hostProc) - before
		if n < 1 || !errors.Is(err, ruler.ErrGone) {
			return Silent(err, g)
		}
		return notebook.Say("host-out-of-memory", "processes", n, "cause", Silent(err, g))
	}
}

// Destroy removes a guest, even when ctx has ended.
func Destroy(ctx context.Context, g interface{ Destroy(context.Context) error }) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DestroyTimeout)
	defer cancel()
	return g.Destroy(ctx)
}

// DestroyAll removes guests, the latest first. After the first removal that ran out of time, all others share one such time limit:
// hundreds of guests of an engine that no longer answers would take hours. The error is that of the first guest that is left, and
// says how many are left.
func DestroyAll(ctx context.Context, guests []Guest) (first error) {
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

// Used is the CPU time that all guests together have used so far.
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
