package measure

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/notebook"
)

// MissingInside is the key of notebook.Trace.Missing that says why nothing could be seen inside the guest, where a kernel of its
// own hides that from the host.
const MissingInside = "inside"

// trace attaches the study's tracers for one trial of the order; clock is where its load is. What it gives detaches them and writes what they saw
// into the trial: nothing where they could not be attached, for the reason that it gives, and the trial was made all the same. An error means that one
// is still attached: it would disturb whatever is measured next.
func (p *Plain) trace(order *ruler.Order, clock crowd.Guest) (seen func(*notebook.Trial) error) {
	tracing, unattached := p.guest.Trace(clock)
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
				missing(tr.Trace, name, unattached.Error())
			}
		} else if tr.Trace, err = tracing.Stop(); err != nil {
			return fmt.Errorf("the tracers cannot be detached, and would disturb all that follows: %w", err)
		}
		if why := hides(p.Engine, p.service != nil); why != "" {
			missing(tr.Trace, MissingInside, why)
		}
		return nil
	}
}

func missing(p *notebook.Trace, name, why string) {
	if p.Missing == nil {
		p.Missing = map[string]string{}
	}
	p.Missing[name] = why
}

// hides says why the host cannot see into a guest of the kind and the guest's ruler cannot help; "" if it need not, or can.
func hides(k engine.Kind, service bool) string {
	if k.TracesInside && service {
		return "the ruler in the guest does nothing but run the service, and cannot trace"
	}
	return k.Untraceable
}

// blind says why there is no account from inside a guest whose ruler was asked for one; "" if there is, or if it was not asked.
func blind(asked []string, inside *notebook.Trace) string {
	tracer := notebook.TracerScheduler
	if !slices.Contains(asked, tracer) {
		tracer = notebook.TracerThreads
	}
	switch {
	case !slices.Contains(asked, tracer):
		return ""
	case inside == nil:
		return "the ruler in the VM said nothing of it"
	case len(inside.Wall) > 0:
		return ""
	case inside.Missing[tracer] != "":
		return inside.Missing[tracer]
	}
	return "the tracer " + tracer + " in the VM saw nothing"
}

// account completes what was seen of a trial in a guest of the treatment: it divides the time that the guest ran into user and
// system, and of what was seen inside and outside a VM it makes one account. The CPU times are those that the guest's kernel gives
// for the trial's processes; of a service, where it cannot, those that the tracers counted. A sandbox's kernel is seen to run.
func account(p *notebook.Trace, u notebook.Usage, elapsedS, cores float64) {
	if u.UserS+u.SystemS == 0 {
		u.UserS, u.SystemS = p.Figures["user_s"], p.Figures["system_s"]
	}
	if sandbox := p.Figures["emulator.run_s"]; sandbox > 0 && p.Figures["vcpu.run_s"] == 0 {
		// Its kernel is a program of the host's, whose time is the work's system time, whatever its own clock says.
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

// fromCounters makes the account of a trial for which no switch was traced, if what the kernel itself counts of threads was read.
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

// Counted is a wall account of so many seconds on so many cores, from sums over all threads: for how long they ran, stood in run queues,
// of which the CPU quota was spent for so long, and waited for block devices. What came when is not known. Where they ran and stood in
// queues for longer than the time that passed, it takes them to have been as many all the time as they were on average; where they
// did not, one after the other. The sum is the time that passed.
func Counted(elapsed, cores, run, delay, throttled, blocked float64) map[string]float64 {
	able := (run + delay) / elapsed
	share := max(1, min(able, math.Ceil(cores))) // cores that could be used at a time
	ran := min(run/share, elapsed)
	stood := min(delay, elapsed-ran)
	if able > 1 {
		stood = elapsed - ran
	}
	wall := map[string]float64{notebook.WallUser: ran}
	wall[notebook.WallThrottled] = min(stood, throttled/share) // it is counted for each core
	wall[notebook.WallCore] = stood - wall[notebook.WallThrottled]
	waited := elapsed - ran - stood
	wall[notebook.WallBlock] = min(blocked, waited)
	wall[notebook.WallOther] = waited - wall[notebook.WallBlock]
	return wall
}

// Split divides a wall account's running time, all of which is attributed to notebook.WallUser, into user and system as the kernel
// divides so much CPU time. The sum stays. Where no CPU time is known all of it stays user.
func Split(wall map[string]float64, userS, systemS float64) map[string]float64 {
	out := maps.Clone(wall)
	if run := userS + systemS; out != nil && run > 0 {
		system := out[notebook.WallUser] * systemS / run
		out[notebook.WallUser] -= system
		out[notebook.WallSystem] += system
	}
	return out
}

// Nested is the account of a trial in a VM: that from inside the VM, in which the guest's kernel counts as running also the time
// for which a vCPU could have run and the host did something else, or had throttled it. That time, as the host saw it, is taken
// from running user and system in their proportion, at most all of it, and is notebook.WallHypervisor. The sum stays.
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
