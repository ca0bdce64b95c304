package words

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/observed"
	"tare/notebook"
	"tare/stats"
)

// observedParts are the labels of an observation's account that differ from those of Part.
var observedParts = map[string]string{
	notebook.WallUser:    "running: its own code",
	notebook.WallSystem:  "running: the kernel for it",
	notebook.WallStolen:  "interrupts and steal",
	notebook.WallCore:    "run-queue wait",
	notebook.WallMemory:  "waiting for memory",
	notebook.WallBlock:   "waiting for disks",
	notebook.WallNetwork: "waiting for sockets",
	notebook.WallFutex:   "waiting for each other",
}

// ObservedPart labels a key of an observation's account.
func ObservedPart(key string) string {
	if label := observedParts[key]; label != "" {
		return label
	}
	return Part(key)
}

// ObservedShare is a share of the time with its interval: "25 % (22 to 28)".
func ObservedShare(e stats.Estimate) string {
	if bounds := ObservedBounds(e); bounds != "" {
		return ObservedPercent(e) + " (" + bounds + ")"
	}
	return ObservedPercent(e)
}

// ObservedPercent is a share of the time: "25 %", "2.5 %".
func ObservedPercent(e stats.Estimate) string { return Number(100*e.Value, shareDecimals(e)) + " %" }

// shareDecimals is how many decimals a share in percent has: one, if it is small.
func shareDecimals(e stats.Estimate) int {
	if e.Value < 0.1 {
		return 1
	}
	return 0
}

// ObservedBounds are the ends of a share's interval in percent: "22 to 28"; empty without an interval.
func ObservedBounds(e stats.Estimate) string {
	if !e.HasInterval() {
		return ""
	}
	return Bounds(100*e.Low, 100*e.High, shareDecimals(e))
}

var targetKinds = map[string]string{
	notebook.TargetContainer: "container", notebook.TargetPod: "pod", notebook.TargetUnit: "unit", notebook.TargetVM: "VM",
	notebook.TargetGroup: "cgroup", notebook.TargetProcess: "process",
}

// Observed says who was observed, and for how long.
func Observed(a *observed.Answer) string {
	t := a.Target
	s := fmt.Sprintf("%s (%s), observed for %s", t.Name, targetKinds[t.Kind], Duration(a.Seconds))
	switch {
	case a.Ended:
		s += " until it ended"
	case a.Cut:
		s += " until interrupted"
	}
	s += fmt.Sprintf(": %s in %s at the end; CPUs %s of the host's %d", Count(t.Threads, "thread"), Count(t.Processes, "process"), t.CPUs, t.HostCPUs)
	if q := a.Quota; q != nil {
		s += fmt.Sprintf("; CPU limit %s", cores(q.Cores))
		if a.Target.Cgroup != "" && strings.HasPrefix(q.Cgroup, a.Target.Cgroup+"/") {
			s += " on a part of it"
		}
	}
	return s
}

// ObservedFindings say what held the target back, most first; or that nothing did.
func ObservedFindings(a *observed.Answer) (all []string) {
	for _, s := range a.Held {
		all = append(all, held(a, s))
	}
	if len(all) == 0 {
		all = append(all, notHeld(a))
	}
	return all
}

// notHeld says what is known of a target that nothing was found to hold back.
func notHeld(a *observed.Answer) string {
	running := a.Of(notebook.WallUser).Share.Value + a.Of(notebook.WallSystem).Share.Value
	idle := a.Idling()
	switch {
	case len(a.Slices) < fewestParts:
		return "It was observed too briefly to say what held it back."
	case a.Paused:
		return "It was paused at the end: its cgroup is frozen, as docker pause does."
	case a.Stopped > 0:
		return Capital(Count(a.Stopped, "process")) + " of it stood still at the end, stopped by a signal (SIGSTOP) or by a debugger."
	case a.Tier == notebook.TierCounters && queued(a) >= observed.Worth*a.Seconds:
		return fmt.Sprintf("Its threads waited for a CPU for %s, summed over them. The counters do not say whether others of its threads ran then; without --counters Tare does.", Duration(queued(a)))
	case a.Tier == notebook.TierCounters:
		return "The counters show no shortage. It ran for " + Percent(running, 0) + " of the time; for what it waited in the rest they do not say."
	case a.Advice != nil && a.Advice.Change != nil:
		return "No shortage took 1 % of the time or more. It slows some " + replayedKind(a.Replay) + " nevertheless."
	case idle >= 0.5:
		return "No shortage was found. For " + Percent(idle, 0) + " of the time all its threads waited for requests, timers, locks or other events: more cores or memory, or a higher limit, would gain it nothing then."
	case running >= 0.5:
		return "No shortage was found: it ran for " + Percent(running, 0) + " of the time."
	}
	return "No shortage was found: none took 1 % of the time with an interval above zero."
}

// fewestParts is how many parts of the time an answer needs at least.
const fewestParts = 5

// queued is for how long the target's threads waited for a CPU, summed over them.
func queued(a *observed.Answer) (sum float64) {
	for _, t := range a.Threads {
		sum += t.Wall[notebook.WallCore]
	}
	return sum
}

// held is the sentence for one thing that held the target back.
func held(a *observed.Answer, s observed.Share) string {
	share := ObservedShare(s.Share)
	switch s.Key {
	case notebook.WallThrottled:
		return throttled(a, share)
	case notebook.WallCore:
		return "Run-queue wait took " + share + " of the time: a thread was ready and did not get a CPU." + behind(a)
	case notebook.WallStolen:
		return "For " + share + " of the time interrupts, or the hypervisor below this machine (steal), used the CPUs on which it would have run."
	case notebook.WallMemory:
		return "It waited for memory for " + share + " of the time." + memoryNear(a)
	}
	return "It waited for disks for " + share + " of the time."
}

func throttled(a *observed.Answer, share string) string {
	q := a.Quota
	if q == nil {
		return "A CPU limit held it back for " + share + " of the time."
	}
	where := ""
	if q.Cgroup != a.Target.Cgroup && a.Target.Cgroup != "" {
		where = " on " + Plain(q.Cgroup)
	}
	text := fmt.Sprintf("Its CPU limit of %s%s held it back for %s of the time.", cores(q.Cores), where, share)
	if q.Periods > 0 {
		text += fmt.Sprintf(" The limit was spent in %s of %s periods of %s", Thousands(int64(q.Exhausted)), Thousands(int64(q.Periods)), Duration(q.PeriodS))
		if used, known := cpuUsed(a); known {
			return text + fmt.Sprintf(", but on average it used %s cores.", Digits(used, 2))
		}
		text += "."
	}
	return text
}

// cpuUsed is the CPU time of all threads over the time, in cores.
func cpuUsed(a *observed.Answer) (cores float64, known bool) {
	ran, is := a.Figures["run_s"]
	if !is { // an observation of an earlier version
		for _, t := range a.Threads {
			ran += t.Wall[notebook.WallUser]
		}
	}
	cores = ran / a.Seconds
	return cores, cores > 0 && !math.IsInf(cores, 0)
}

// mostAhead is how many of those who were ahead are named.
const mostAhead = 3

// behind says who had the CPUs: " Who had the CPUs then, summed over its threads: db (62 %), its own threads (30 %) and 2 others (8 %)."
func behind(a *observed.Answer) string {
	all := a.AheadOf()
	if all == 0 {
		return ""
	}
	var names []string
	rest, restSeconds := 0, 0.0
	for _, who := range a.Ahead {
		if len(names) == mostAhead || who.Seconds < observed.Worth*all {
			rest++
			restSeconds += who.Seconds
			continue
		}
		names = append(names, ObservedAhead(who)+" ("+Percent(who.Seconds/all, 0)+")")
	}
	if rest > 0 && restSeconds >= observed.Worth*all {
		names = append(names, fmt.Sprintf("%s (%s)", Count(rest, "other"), Percent(restSeconds/all, 0)))
	}
	if len(names) == 0 {
		return ""
	}
	return " Who had the CPUs then, summed over its threads: " + List(names) + "."
}

// ObservedAhead names who had a core for which the target waited.
func ObservedAhead(who notebook.ObservedAhead) string {
	switch who.Kind {
	case notebook.AheadSelf:
		return "its own threads"
	case notebook.AheadNobody:
		return "idle CPUs that were waking up"
	case notebook.AheadUnknown:
		return "unknown threads"
	case notebook.AheadKernel:
		return "kernel thread " + Plain(who.Name)
	}
	return Plain(who.Name)
}

// memoryNear says how near the target is to its limit, and what was taken from it.
func memoryNear(a *observed.Answer) string {
	m := a.Memory
	if m == nil {
		return ""
	}
	text := ""
	if m.Refaults > 0 {
		text += fmt.Sprintf(" The kernel took %s pages from its cgroup and had to read them again.", Thousands(m.Refaults))
	}
	if m.Limit > 0 {
		text += fmt.Sprintf(" The cgroup uses %s of its limit of %s; %s of that are cached files.", Bytes(m.Used), Bytes(m.Limit), Bytes(m.Files))
	}
	return text
}

// near is the share of a memory limit above which it is worth a line.
const near = 0.9

// ObservedFacts are lines about the target's platform that matter for its speed.
func ObservedFacts(a *observed.Answer) (all []string) {
	if q := a.Quota; q != nil {
		line := fmt.Sprintf("CPU limit: %s of CPU time in each period of %s", Duration(q.Cores*q.PeriodS), Duration(q.PeriodS))
		if q.BurstS > 0 {
			line += fmt.Sprintf(", and a burst of up to %s", Duration(q.BurstS))
		}
		all = append(all, line+".")
	}
	for _, r := range a.Runtimes {
		all = append(all, runtimeFact(r))
	}
	if m := a.Memory; m != nil && m.Limit > 0 && float64(m.Used) >= near*float64(m.Limit) {
		all = append(all, fmt.Sprintf("Memory: %s of %s used, %s of that by cached files; use reached the limit %s.", Bytes(m.Used), Bytes(m.Limit), Bytes(m.Files), times(m.AtLimit)))
	}
	if m := a.Memory; m != nil && m.Killed > 0 {
		all = append(all, fmt.Sprintf("The OOM killer killed %s.", Count(m.Killed, "process")))
	}
	p := a.Platform
	if p.SharedCore != "" {
		all = append(all, "CPUs "+p.SharedCore+" are outside its CPU set but share cores with it (SMT). Load on them can slow it down.")
	}
	for _, f := range []struct{ name, value string }{{"Root file system", p.Root}, {"Transparent huge pages on the host", p.HugePages}, {"Log driver", p.LogDriver}, {"Network", p.Network}} {
		if f.value != "" {
			all = append(all, f.name+": "+Plain(f.value)+".")
		}
	}
	if p.Seccomp > 0 {
		all = append(all, fmt.Sprintf("Seccomp: each system call passes %s.", Count(p.Seccomp, "filter")))
	}
	if len(p.PortProxy) > 0 {
		all = append(all, "Connections from this host to localhost, port "+List(p.PortProxy)+", go through docker-proxy.")
	}
	return all
}

func times(n int64) string {
	switch n {
	case 0:
		return "never in this time"
	case 1:
		return "once"
	}
	return Thousands(n) + " times"
}

var runtimeReasons = map[string]string{
	notebook.RuntimeByVariable: "set by GOMAXPROCS", notebook.RuntimeByFlag: "set by -XX:ActiveProcessorCount", notebook.RuntimeByAffinity: "all that it may use",
	notebook.RuntimeByQuota: "from its CPU limit", notebook.RuntimeByCount: "one for each worker",
}

// runtimeFact says for how many CPUs a runtime runs, and how that goes with the limit.
func runtimeFact(r notebook.ObservedRuntime) string {
	name := r.Runtime
	if r.Version != "" {
		name += " " + Plain(r.Version)
	}
	text := fmt.Sprintf("%s (PID %d, %s) uses up to %s (%s)", Plain(r.Process), r.PID, name, Count(r.CPUs, "CPU"), runtimeReasons[r.By])
	if r.Limit > 0 && r.CPUs > 0 && float64(r.CPUs) >= math.Ceil(r.Limit)+1 {
		text += fmt.Sprintf(". If all are busy, they spend the limit in %s of each period of %s", Duration(r.Limit*r.PeriodS/float64(r.CPUs)), Duration(r.PeriodS))
	}
	return text + "."
}

// ObservedCost says what the observation itself took.
func ObservedCost(a *observed.Answer) string {
	c := a.Cost
	switch {
	case a.Tier == notebook.TierCounters:
		return "Source: the kernel's counters. Tare loaded no program into the kernel."
	case c == nil || c.Of == 0 || c.Runs == 0:
		return "Source: every context switch. What the observation costs was not counted."
	}
	text := fmt.Sprintf("Source: every context switch. Over the whole host Tare's BPF programs used %s of one CPU", Percent(c.Seconds/c.Of, 2))
	if c.OfRunning > c.Seconds {
		text += fmt.Sprintf(", as much as %s of the target's CPU time", Percent(c.Seconds/c.OfRunning, 1))
	}
	return text + fmt.Sprintf(": they ran %s times for %s each in %s.", Thousands(c.Runs), Duration(c.Seconds/float64(c.Runs)), Duration(c.Of))
}

// worthLost is the share of a target's switches above which lost events are worth a note. Some kernels show no switch from a process that they
// hide; the account is corrected for it.
const worthLost = 0.005

// ObservedNotes are what could not be seen, and why.
func ObservedNotes(a *observed.Answer) (all []string) {
	for _, m := range a.Said {
		all = append(all, Sentence(Message(m)))
	}
	if a.Lost > 0 && float64(a.Lost) >= worthLost*a.Figures["switches"] {
		all = append(all, fmt.Sprintf("%s lost: Tare's BPF programs had no room or no time for them, or the kernel did not report them.", Count(a.Lost, "event")+plural(a.Lost)))
	}
	return all
}

func plural(n int64) string {
	if n == 1 {
		return " was"
	}
	return " were"
}

// Heads of an observation's tables.
const (
	InAll       = "in all"
	OfTheTime   = "of the time"
	ThreadsOf   = "seconds summed over threads (process: thread)"
	HowMany     = "threads"
	ItsPlatform = "Platform"
)

// ObservedColumn heads a column of seconds in the table of threads.
func ObservedColumn(key string) string {
	switch key {
	case notebook.WallUser:
		return "running"
	case notebook.WallThrottled:
		return "throttled"
	case notebook.WallCore:
		return "run queue"
	case notebook.WallMemory:
		return "memory"
	}
	return "disks"
}

// ObservedThreads names a group of threads.
func ObservedThreads(t notebook.ObservedThreads) string {
	switch {
	case t.Process == "" && t.Thread == "":
		return "others"
	case t.Process == t.Thread || t.Thread == "":
		return Plain(t.Process)
	}
	return Plain(t.Process) + ": " + Plain(t.Thread)
}

// MoreThreads says how many groups of threads are not in the table.
func MoreThreads(n int) string {
	return fmt.Sprintf("%s of threads not shown; --format json has them.", Count(n, "group"))
}
