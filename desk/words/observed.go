package words

import (
	"fmt"
	"math"

	"tare/desk/observed"
	"tare/notebook"
	"tare/stats"
)

// observedParts are the labels of an observation's account that differ from those of Part.
var observedParts = map[string]string{
	notebook.WallUser:    "running: its own code",
	notebook.WallSystem:  "running: the kernel for it",
	notebook.WallStolen:  "interrupts, host below",
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
	s += fmt.Sprintf(": %s in %s, on CPUs %s of %d", Count(t.Threads, "thread"), processes(t.Processes), t.CPUs, t.HostCPUs)
	if q := a.Quota; q != nil {
		s += fmt.Sprintf(", with a CPU limit of %s", cores(q.Cores))
	}
	return s
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return Thousands(n) + " processes"
}

// ObservedFindings say what held the target back, most first; or that nothing did.
func ObservedFindings(a *observed.Answer) (all []string) {
	for _, s := range a.Held {
		all = append(all, held(a, s))
	}
	running := a.Of(notebook.WallUser).Share.Value + a.Of(notebook.WallSystem).Share.Value
	idle := a.Idling()
	switch {
	case len(a.Held) == 0 && idle >= 0.5:
		all = append(all, "Nothing held it back: it was idle for "+Percent(idle, 0)+" of the time. More cores or a higher limit would gain it nothing.")
	case len(a.Held) == 0 && running >= 0.5:
		all = append(all, "Nothing held it back: it ran for "+Percent(running, 0)+" of the time.")
	case len(a.Held) == 0:
		all = append(all, "Nothing held it back for a share of the time that differs from zero.")
	}
	return all
}

// held is the sentence for one thing that held the target back.
func held(a *observed.Answer, s observed.Share) string {
	share := ObservedShare(s.Share)
	switch s.Key {
	case notebook.WallThrottled:
		return throttled(a, share)
	case notebook.WallCore:
		return "It waited for a core for " + share + " of the time" + behind(a) + "."
	case notebook.WallStolen:
		return "For " + share + " of the time interrupts, or the machine below this one, had the cores on which it would have run."
	case notebook.WallMemory:
		return "It waited for memory for " + share + " of the time" + memoryNear(a) + "."
	}
	return "It waited for disks for " + share + " of the time."
}

func throttled(a *observed.Answer, share string) string {
	q := a.Quota
	if q == nil {
		return "A CPU limit held it back for " + share + " of the time."
	}
	text := fmt.Sprintf("Its CPU limit of %s held it back for %s of the time", cores(q.Cores), share)
	if q.Cgroup != a.Target.Cgroup && a.Target.Cgroup != "" {
		text += ", which is set on " + q.Cgroup
	}
	if q.Periods > 0 {
		text += fmt.Sprintf(": it was spent in %s of %s periods of %s", Thousands(int64(q.Exhausted)), Thousands(int64(q.Periods)), Duration(q.PeriodS))
	}
	text += "."
	if used := (a.Of(notebook.WallUser).Seconds + a.Of(notebook.WallSystem).Seconds) / a.Seconds; q.Exhausted > 0 {
		text += fmt.Sprintf(" On average it used %s of a core.", Percent(cpuUsed(a, used), 0))
	}
	return text
}

// cpuUsed is the CPU time of all threads over the time, in cores; the share of the time in which any ran if that is not known.
func cpuUsed(a *observed.Answer, any float64) float64 {
	sum := 0.0
	for _, t := range a.Threads {
		sum += t.Wall[notebook.WallUser]
	}
	if sum == 0 || a.Seconds == 0 {
		return any
	}
	return sum / a.Seconds
}

// mostAhead is how many of those who were ahead are named.
const mostAhead = 3

// behind says who had the cores: ", behind db (62 % of the wait), its own threads (30 %) and 2 others (8 %)".
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
		share := Percent(who.Seconds/all, 0)
		if len(names) == 0 {
			share += " of the wait"
		}
		names = append(names, ObservedAhead(who)+" ("+share+")")
	}
	if rest > 0 && restSeconds >= observed.Worth*all {
		names = append(names, fmt.Sprintf("%s (%s)", Count(rest, "other"), Percent(restSeconds/all, 0)))
	}
	if len(names) == 0 {
		return ""
	}
	return ", behind " + List(names)
}

// ObservedAhead names who had a core for which the target waited.
func ObservedAhead(who notebook.ObservedAhead) string {
	switch who.Kind {
	case notebook.AheadSelf:
		return "its own threads"
	case notebook.AheadNobody:
		return "nobody: the core was waking up"
	case notebook.AheadUnknown:
		return "others that are not known"
	case notebook.AheadKernel:
		return "the kernel's thread " + Plain(who.Name)
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
		text += fmt.Sprintf(": %s pages had been taken from it and were needed again", Thousands(m.Refaults))
	}
	if m.Limit > 0 {
		text += fmt.Sprintf("; it uses %s of the %s of its limit, %s of that for cached files", Bytes(m.Used), Bytes(m.Limit), Bytes(m.Files))
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
			line += fmt.Sprintf(", and %s saved up", Duration(q.BurstS))
		}
		all = append(all, line+".")
	}
	for _, r := range a.Runtimes {
		all = append(all, runtimeFact(a, r))
	}
	if m := a.Memory; m != nil && m.Limit > 0 && float64(m.Used) >= near*float64(m.Limit) {
		all = append(all, fmt.Sprintf("Memory: %s of %s used, %s of that for cached files; the limit was reached %s.", Bytes(m.Used), Bytes(m.Limit), Bytes(m.Files), times(m.AtLimit)))
	}
	if m := a.Memory; m != nil && m.Killed > 0 {
		all = append(all, fmt.Sprintf("The kernel killed %s for want of memory.", processes(int(m.Killed))))
	}
	p := a.Platform
	if p.SharedCore != "" {
		all = append(all, "Its CPU set has only one thread of some cores; CPUs "+p.SharedCore+" share a core with it, and their load slows it down.")
	}
	for _, f := range []struct{ name, value string }{{"Root", p.Root}, {"Huge pages", p.HugePages}, {"Log driver", p.LogDriver}, {"Network", p.Network}} {
		if f.value != "" {
			all = append(all, f.name+": "+Plain(f.value)+".")
		}
	}
	if p.Seccomp > 0 {
		all = append(all, fmt.Sprintf("Seccomp: each system call passes %s.", Count(p.Seccomp, "filter")))
	}
	if len(p.PortProxy) > 0 {
		all = append(all, "What this host itself asks of port "+List(p.PortProxy)+" goes through docker-proxy.")
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
	notebook.RuntimeByVariable: "by GOMAXPROCS", notebook.RuntimeByFlag: "by -XX:ActiveProcessorCount", notebook.RuntimeByAffinity: "as many as it may use, whatever its limit",
	notebook.RuntimeByQuota: "by its limit", notebook.RuntimeByCount: "its workers",
}

// runtimeFact says for how many CPUs a runtime runs, and how that goes with the limit.
func runtimeFact(a *observed.Answer, r notebook.ObservedRuntime) string {
	name := r.Runtime
	if r.Version != "" {
		name += " " + Plain(r.Version)
	}
	text := fmt.Sprintf("%s %d (%s) runs for %s (%s)", Plain(r.Process), r.PID, name, Count(r.CPUs, "CPU"), runtimeReasons[r.By])
	if q := a.Quota; q != nil && r.CPUs > 0 && float64(r.CPUs) >= math.Ceil(q.Cores)+1 {
		text += fmt.Sprintf("; if all are busy, they spend the limit in %s of each period of %s", Duration(q.Cores*q.PeriodS/float64(r.CPUs)), Duration(q.PeriodS))
	}
	return text + "."
}

// ObservedCost says what the observation itself took.
func ObservedCost(a *observed.Answer) string {
	c := a.Cost
	switch {
	case a.Tier == notebook.TierCounters:
		return "From the kernel's counters; no program was loaded into the kernel."
	case c == nil || c.Of == 0 || c.Runs == 0:
		return "From every switch. The programs' own cost was not counted."
	}
	text := fmt.Sprintf("From every switch. The programs took %s of one CPU", Percent(c.Seconds/c.Of, 2))
	if c.OfRunning > 0 {
		text += fmt.Sprintf(", or %s of the time for which the target ran", Percent(c.Seconds/c.OfRunning, 1))
	}
	return text + fmt.Sprintf(" (%s runs of %s each, counted for %s).", Thousands(c.Runs), Duration(c.Seconds/float64(c.Runs)), Duration(c.Of))
}

// ObservedNotes are what could not be seen, and why.
func ObservedNotes(a *observed.Answer) (all []string) {
	for _, m := range a.Said {
		all = append(all, Sentence(Message(m)))
	}
	if a.Lost > 0 {
		all = append(all, fmt.Sprintf("%s lost: the programs had no room or no time for them, or the kernel showed none.", Count(a.Lost, "event")+plural(a.Lost)))
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
	ThreadsOf   = "threads (process: thread)"
	HowMany     = "number"
	ItsPlatform = "Its platform"
)

// ObservedColumn heads a column of seconds in the table of threads.
func ObservedColumn(key string) string {
	switch key {
	case notebook.WallUser:
		return "running, s"
	case notebook.WallThrottled:
		return "throttled"
	case notebook.WallCore:
		return "for a core"
	case notebook.WallMemory:
		return "for memory"
	}
	return "for disks"
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
	return fmt.Sprintf("%s of threads more with --format json.", Count(n, "group"))
}
