package measure

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// MissingInside is the key of notebook.Trace.Missing for the reason why nothing could be seen inside a guest whose own kernel hides
// its inside from the host.
const MissingInside = "inside"

// trace attaches the study's tracers for one trial of the order; clock is the guest in which its load runs. The function it returns
// detaches the tracers and writes what they saw into the trial. If they could not be attached, the trial is made all the same, and
// the reason is written instead. An error means that a tracer is still attached and would disturb the next measurement.
func (p *Plain) trace(order *ruler.Order, clock crowd.Guest) (seen func(*notebook.Trial) error) {
	of := crowd.Traced{Clock: clock, Requests: slices.Contains(p.Tracers, notebook.TracerRequests) && p.Ready.Workload.Times()}
	if of.Requests && p.service != nil {
		of.Record, of.Port = workload.RecordFile, p.Ready.Workload.Service.Port
		order.Env = append(order.Env, workload.RecordVariable+"="+path.Join(ruler.ScratchDir, workload.RecordFile))
	}
	tracing, unattached := p.guest.Trace(of)
	if unattached == nil {
		order.Bounds = tracing
	}
	if p.Engine.TracesInside && p.service == nil {
		order.Tracers = p.Tracers
	}
	return func(tr *notebook.Trial) (err error) {
		if unattached != nil {
			tr.Trace = &notebook.Trace{Looked: []string{}}
			for _, name := range p.Tracers {
				missing(tr.Trace, name, notebook.ErrorMessage(unattached))
			}
		} else if tr.Trace, err = tracing.Stop(); err != nil {
			return fmt.Errorf("the tracers cannot be detached, and would disturb all that follows: %w", err)
		}
		if why := hides(p.Engine, p.service != nil); why != nil {
			missing(tr.Trace, MissingInside, why)
		}
		return nil
	}
}

func missing(p *notebook.Trace, name string, why *notebook.Message) {
	if p.Missing == nil {
		p.Missing = map[string]*notebook.Message{}
	}
	p.Missing[name] = why
}

// hides says why neither the host nor the guest's ruler can see into a guest of the kind; empty if one of them can.
func hides(k engine.Kind, service bool) *notebook.Message {
	if k.TracesInside && service {
		return notebook.Say("ruler-runs-service")
	}
	return notebook.TextMessage(k.Untraceable)
}

// blind says why the guest's ruler gave no account from inside, although it was asked for one; nil if it gave one or was not
// asked.
func blind(asked []string, inside *notebook.Trace) *notebook.Message {
	tracer := notebook.TracerScheduler
	if !slices.Contains(asked, tracer) {
		tracer = notebook.TracerThreads
	}
	switch {
	case !slices.Contains(asked, tracer):
		return nil
	case inside == nil:
		return notebook.Say("vm-ruler-silent")
	case len(inside.Wall) > 0:
		return nil
	case inside.Missing[tracer] != nil:
		return inside.Missing[tracer]
	}
	return notebook.Say("vm-tracer-saw-nothing", "tracer", tracer)
}

// account completes what was seen of a trial in a guest of the treatment. It divides the guest's running time into user and system
// time, and combines what was seen inside and outside a VM into one account. The CPU times are those that the guest's kernel
// reports for the trial's processes. For a service whose kernel cannot report them, they are the times that the tracers counted.
// The kernel of a sandbox is seen running on the host.
func account(p *notebook.Trace, u notebook.Usage, elapsedS, cores float64) {
	if u.UserS+u.SystemS == 0 {
		u.UserS, u.SystemS = p.Figures["user_s"], p.Figures["system_s"]
	}
	if sandbox := p.Figures["emulator.run_s"]; sandbox > 0 && p.Figures["vcpu.run_s"] == 0 {
		// The sandbox's kernel is a program on the host. The host's time for it is the work's system time, whatever the sandbox's
		// own clock says.
		u.UserS, u.SystemS = p.Figures["run_s"], sandbox
	}
	run := u.UserS + u.SystemS
	if vcpu, is := p.Figures["vcpu.run_s"]; is {
		run = vcpu
	}
	fromCounters(p, run, elapsedS, cores)
	if in := p.Inside; in != nil {
		fromCounters(in, u.UserS+u.SystemS, elapsedS, cores)
	}
	if p.Inside == nil || len(p.Inside.Wall) == 0 {
		p.Wall = Split(p.Wall, u.UserS, u.SystemS)
		return
	}
	p.Inside.Wall = Split(p.Inside.Wall, u.UserS, u.SystemS)
	p.Wall, p.Tier = Nested(p.Inside.Wall, p.Wall), p.Inside.Tier
}

// fromCounters makes the account of a trial from the kernel's counters of threads. It does so if no context switch was traced and
// these counters were read.
func fromCounters(p *notebook.Trace, run, elapsedS, cores float64) {
	delay, known := p.Figures["delay_s"]
	if vcpu, is := p.Figures["vcpu.delay_s"]; is {
		delay, known = vcpu, true
	}
	if p.Wall != nil || !known || !(elapsedS > 0) {
		return
	}
	p.Wall, p.Tier = Counted(elapsedS, cores, run, delay+p.Figures["emulator.delay_s"], p.Figures["throttled_s"], p.Figures["blocked_s"]), notebook.TierCounters
}

// Counted estimates the wall account of elapsed seconds on a number of cores from sums over all threads, in seconds: time running,
// time in run queues (including throttled time, when the CPU quota was used up), and time blocked on block devices. The order of events is not
// known. If running and queueing took longer than elapsed, the threads are assumed to have been equally many all the time;
// otherwise they are assumed to have run one after another. The parts sum to elapsed.
func Counted(elapsed, cores, run, delay, throttled, blocked float64) map[string]float64 {
	able := (run + delay) / elapsed
	share := max(1, min(able, math.Ceil(cores))) // cores that could be used at the same time
	ran := min(run/share, elapsed)
	stood := min(delay, elapsed-ran)
	if able > 1 {
		stood = elapsed - ran
	}
	wall := map[string]float64{notebook.WallUser: ran}
	wall[notebook.WallThrottled] = min(stood, throttled/share) // throttled time is counted for each core
	wall[notebook.WallCore] = stood - wall[notebook.WallThrottled]
	waited := elapsed - ran - stood
	wall[notebook.WallBlock] = min(blocked, waited)
	wall[notebook.WallOther] = waited - wall[notebook.WallBlock]
	return wall
}

// Split divides the running time of a wall account, all of it attributed to notebook.WallUser, into user and system time in the
// proportion of these CPU times. The sum does not change. Without CPU times all of it stays user time.
func Split(wall map[string]float64, userS, systemS float64) map[string]float64 {
	out := maps.Clone(wall)
	if run := userS + systemS; out != nil && run > 0 {
		system := out[notebook.WallUser] * systemS / run
		out[notebook.WallUser] -= system
		out[notebook.WallSystem] += system
	}
	return out
}

// Nested makes the account of a trial in a VM from the account inside the VM. There the guest's kernel counts time as running in
// which a vCPU was runnable and the host ran something else, or had throttled the vCPU. That time, as the host saw it, becomes
// notebook.WallHypervisor. It is taken from the running user and system time in their proportion, and is at most all of it. The sum
// does not change.
func Nested(inside, host map[string]float64) map[string]float64 {
	out := maps.Clone(inside)
	run := out[notebook.WallUser] + out[notebook.WallSystem]
	if host == nil || run <= 0 {
		return out
	}
	taken := min(host[notebook.WallCore]+host[notebook.WallThrottled], run)
	stays := 1 - taken/run
	out[notebook.WallUser] *= stays
	out[notebook.WallSystem] *= stays
	out[notebook.WallHypervisor] += taken
	return out
}
