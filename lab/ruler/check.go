package ruler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tare/notebook"
)

// Limits on what one end accepts from the other.
const (
	MaxOutput  = 1 << 20             // greatest Order.OutputLimit
	MaxTimeout = 30 * 24 * time.Hour // greatest Order.Timeout
	MaxCost    = 8000                // processes in one Cost, because a pipe holds their times
	MaxGroups  = 4096                // most Order.Groups, because one argument of the launcher holds them
	maxCPUs    = 1 << 16             // CPUs that a guest may claim
	maxText    = 64 << 10            // bytes of an error or of a kernel's name
	maxSignal  = 16                  // bytes of a signal's name
	maxName    = 16 << 10            // bytes of a file's name with its folders
)

// Times that the guest may take after a trial's process has ended. The host knows them, so that it waits long enough.
const (
	sweepTime = 10 * time.Second // until everything that the order started is dead
	drainTime = time.Second      // to read what is left in the pipes of processes that would not die
)

// timedOut is why an order was stopped after its time.
const timedOut = "its time is up"

// traceTime bounds the guest's wait for each of the two answers of the program that traces in it, before the trial and after it.
// The kernel verifies the attached programs, which takes seconds in an emulated guest.
var traceTime = 2 * time.Minute

// check checks an order, on either end.
func (o *Order) check() error {
	if o.Times < 0 || o.Times > MaxCost {
		return fmt.Errorf("%d times: must be from 0 to %d", o.Times, MaxCost)
	}
	if len(o.Argv) == 0 && o.Times == 0 || len(o.Argv) > 0 && o.Argv[0] == "" {
		return errors.New("order without a command: Argv[0] must name a program")
	}
	for _, a := range o.Argv {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("argument %q has a zero byte, which no process can be given", a)
		}
	}
	for _, e := range o.Env {
		if strings.ContainsRune(e, 0) || strings.IndexByte(e, '=') <= 0 {
			return fmt.Errorf("environment entry %q is not NAME=VALUE", e)
		}
	}
	if o.Dir != "" && (o.Dir[0] != '/' || strings.ContainsRune(o.Dir, 0)) {
		return fmt.Errorf("folder %q is not an absolute path", o.Dir)
	}
	if len(o.Groups) > MaxGroups {
		return fmt.Errorf("%d supplementary groups: must be at most %d", len(o.Groups), MaxGroups)
	}
	if o.Timeout <= 0 || o.Timeout > MaxTimeout {
		return fmt.Errorf("timeout %v: must be above 0 and at most %v", o.Timeout, MaxTimeout)
	}
	if o.OutputLimit < 0 || o.OutputLimit > MaxOutput {
		return fmt.Errorf("output limit %d: must be from 0 to %d bytes", o.OutputLimit, MaxOutput)
	}
	if len(o.Tracers) > len(notebook.TracerNames) {
		return fmt.Errorf("%d tracers: must be at most %d", len(o.Tracers), len(notebook.TracerNames))
	}
	for _, name := range o.Tracers {
		if !slices.Contains(notebook.TracerNames, name) {
			return fmt.Errorf("tracer %.32q: must be one of %s", name, strings.Join(notebook.TracerNames, ", "))
		}
	}
	return nil
}

func (h *Hello) check() error {
	if h.Version != ProtocolVersion {
		return violation(fmt.Sprintf("%d: guest and host must run the same tare", ProtocolVersion), "protocol version %d", h.Version)
	}
	bad := func(format string, a ...any) error {
		return violation("a guest's real properties", "a hello with "+format, a...)
	}
	if h.PID < 1 {
		return bad("process id %d", h.PID)
	}
	if len(h.CPUs) == 0 || len(h.CPUs) > maxCPUs {
		return bad("%d CPUs", len(h.CPUs))
	}
	for i, c := range h.CPUs {
		if c < 0 || c >= maxCPUs || i > 0 && c <= h.CPUs[i-1] {
			return bad("CPU %d out of order or range", c)
		}
	}
	if h.Memory <= 0 {
		return bad("%d bytes of memory", h.Memory)
	}
	if h.Sockets < 0 || h.Threads < 0 || h.Nodes < 0 || max(h.Sockets, h.Threads, h.Nodes) > maxCPUs {
		return bad("%d sockets, %d threads a core and %d NUMA nodes", h.Sockets, h.Threads, h.Nodes)
	}
	if len(h.Kernel) > maxText || len(h.CPUFlags) > maxText || len(h.Cmdline) > maxText {
		return bad("a kernel's name of %d bytes, %d CPU flags and a command line of %d bytes", len(h.Kernel), len(h.CPUFlags), len(h.Cmdline))
	}
	return nil
}

// check reports whether r can be the result of o when the host saw the interval last at most seen. A guest's clock may drift, and a
// warning elsewhere says so. But one that claims twice the time that passed measures nothing.
func (r *Result) check(o *Order, seen time.Duration) error {
	bad := func(expected, format string, a ...any) error {
		return violation(expected, "a result with "+format, a...)
	}
	if r.Elapsed < 0 || r.Elapsed > 2*seen+time.Second {
		return bad(fmt.Sprintf("between 0 and about %v, as the host saw", seen), "%v elapsed", r.Elapsed)
	}
	if r.Exit < 0 || r.Exit > 255 {
		return bad("0 to 255", "exit code %d", r.Exit)
	}
	if len(r.Signal) > maxSignal || r.Signal != "" && !strings.HasPrefix(r.Signal, "SIG") {
		return bad("a signal's name", "signal %.32q", r.Signal)
	}
	for _, s := range []float64{r.UserS, r.SystemS, r.LeftS} {
		if s < 0 || math.IsNaN(s) || math.IsInf(s, 0) {
			return bad("no negative time", "%v s of CPU time", s)
		}
	}
	for _, n := range []int64{r.OOMKills, r.MaxRSS, r.MinFlt, r.MajFlt, r.VCSw, r.IVCSw} {
		if n < 0 {
			return bad("none below 0", "a count of %d", n)
		}
	}
	if len(r.Stdout) > o.OutputLimit || len(r.Stderr) > o.OutputLimit {
		return bad(fmt.Sprintf("at most %d each", o.OutputLimit), "%d and %d bytes of output", len(r.Stdout), len(r.Stderr))
	}
	if len(r.Error) > maxText {
		return bad(fmt.Sprintf("at most %d", maxText), "an error of %d bytes", len(r.Error))
	}
	if len(r.Took) > o.Times {
		return bad(fmt.Sprintf("at most %d", o.Times), "the times of %d processes", len(r.Took))
	}
	for _, d := range r.Took {
		if d < 0 || d > 2*seen+time.Second {
			return bad(fmt.Sprintf("at most the %v that the host saw", seen), "a process that took %v", d)
		}
	}
	if f := r.Found; f != nil {
		if !o.Remains {
			return bad("none, because the order does not request them", "files that it found")
		}
		if len(f.Files) == 0 || len(f.Files) > notebook.MostFound || f.N < len(f.Files) {
			return bad(fmt.Sprintf("1 to %d names, and no smaller number", notebook.MostFound), "%d files that it found and %d names", f.N, len(f.Files))
		}
		if slices.ContainsFunc(f.Files, func(name string) bool { return len(name) > maxName }) {
			return bad(fmt.Sprintf("at most %d bytes", maxName), "a longer name of a file that it found")
		}
	}
	if r.Trace != nil {
		return checkTrace(r.Trace, o.Tracers, seen)
	}
	return nil
}
