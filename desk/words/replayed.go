package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/desk/observed"
	"tare/notebook"
	"tare/stats"
)

// Heads of the table of changes.
const (
	ChangeTo      = "  change"
	MeanTime      = "mean"
	TailTime      = "99th percentile"
	Interval95    = "95 %"
	AsMeasured    = "no change (measured)"
	AsItIs        = "no change"
	ToApplyIt     = "To make this change until the target restarts:"
	AsReplayed    = "no change (replayed)"
	WouldThrottle = "throttled"
	WouldQueue    = "run queue"
)

// Heads of the table of requests.
const (
	PartOf     = "  part"
	MedianTime = "median"
)

// RequestKeys are the keys of an account of requests, in the order of reports.
var RequestKeys = append([]string{notebook.RequestQueued}, notebook.ObservedWalls...)

// RequestPart labels a key of an account of requests.
func RequestPart(key string) string {
	switch key {
	case notebook.RequestQueued:
		return "before it was read"
	case notebook.WallUser:
		return "running"
	case notebook.WallNetwork:
		return "waiting for other hosts or services"
	}
	return ObservedPart(key)
}

// RequestTime is a part of the time of a request.
func RequestTime(s float64) string {
	if s == 0 {
		return "0"
	}
	return Duration(s)
}

// RequestsOf is the head of the table of requests.
func RequestsOf(r *notebook.Requests) string {
	text := fmt.Sprintf("Where the time of %s went, from arrival at the socket to the end of the answer", Count(r.N, "request"))
	if r.P99 == nil {
		text += fmt.Sprintf(" (99th percentile: %s; its time breakdown needs 500 requests)", Duration(r.Tail))
	}
	return text
}

// replayedOf names what a replay times.
func replayedOf(r *notebook.ObservedReplay) string {
	if r.Of == notebook.RequestsServed {
		return Count(r.N, "request")
	}
	return Count(r.N, "wakeup")
}

// replayedKind names what a replay times, without how many.
func replayedKind(r *notebook.ObservedReplay) string {
	if r.Of == notebook.RequestsServed {
		return "requests"
	}
	return "wakeups"
}

// Replayed says what was replayed, as the head of the table of changes.
func Replayed(r *notebook.ObservedReplay) string {
	what := "from arrival at the socket to the end of the answer"
	if r.Of == notebook.RequestsWakes {
		what = "from when a timer or the network wakes a thread until it waits for one again"
	}
	return fmt.Sprintf("What a change would gain: %s, timed %s", replayedOf(r), what)
}

// ObservedChange names a change in a table: "CPU limit of 2 cores, period of 10 ms".
func ObservedChange(a *observed.Answer, c notebook.ObservedChange) string {
	if parts := differences(a, c); len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	return AsItIs
}

// changeIn names a change in a sentence: "a CPU limit of 2 cores with a period of 10 ms".
func changeIn(a *observed.Answer, c notebook.ObservedChange) string {
	parts := differences(a, c)
	for i, p := range parts {
		if !strings.HasPrefix(p, noLimit) {
			parts[i] = "a " + p
		}
	}
	if len(parts) == 0 {
		return AsItIs
	}
	return strings.Join(parts, " with ")
}

const noLimit = "no CPU limit"

// differences are the parts of a platform in which a change differs from the present.
func differences(a *observed.Answer, c notebook.ObservedChange) (parts []string) {
	var now notebook.ObservedQuota
	if a.Quota != nil {
		now = *a.Quota
	}
	switch {
	case c.Limit == 0 && now.Cores > 0:
		parts = append(parts, noLimit)
	case c.Limit != now.Cores:
		parts = append(parts, "CPU limit of "+cores(c.Limit))
	}
	if c.Limit > 0 && c.PeriodS != now.PeriodS && (now.PeriodS > 0 || c.PeriodS != notebook.UsualPeriodS) {
		parts = append(parts, "period of "+rounded(c.PeriodS))
	}
	if c.Limit > 0 && c.BurstS != now.BurstS {
		parts = append(parts, "burst of up to "+rounded(c.BurstS))
	}
	if c.CPUs != cpusOf(a.Target.CPUs) {
		parts = append(parts, "CPU set of "+Count(c.CPUs, "CPU"))
	}
	return parts
}

// rounded is a duration that somebody has chosen: "10 ms".
func rounded(s float64) string {
	unit, by := Scale(s)
	return strconv.FormatFloat(math.Round(s*by*1000)/1000, 'f', -1, 64) + " " + unit
}

// cpusOf counts the CPUs of a list.
func cpusOf(list string) int {
	cpus, err := notebook.ParseCPUList(list)
	if err != nil {
		return 0
	}
	return len(cpus)
}

// ObservedTime is a time: "65 ms".
func ObservedTime(t notebook.ObservedTime) string { return Duration(t.Seconds) }

// ObservedTimeBounds are the ends of its interval: "63 to 68 ms".
func ObservedTimeBounds(t notebook.ObservedTime) string {
	return between(stats.Estimate{Low: t.Low, High: t.High})
}

// ObservedAdvice says which change to make and what it is predicted to give, or that none is worth it; empty if nothing was replayed.
func ObservedAdvice(a *observed.Answer) string {
	if a.Advice == nil {
		return ""
	}
	r, c := a.Replay, a.Advice.Change
	if c == nil {
		return fmt.Sprintf("None of the changes below is worth it. For each, the predicted cut of the 99th percentile (%s: %s) is less than %s, or its interval includes zero.",
			replayedOf(r), Duration(r.Seen.P99.Seconds), Percent(observed.WorthChange, 0))
	}
	text := fmt.Sprintf("Advice: %s. For %s, Tare predicts a 99th percentile of %s (%s) instead of %s. The predicted mean is %s (%s) instead of %s.",
		changeIn(a, *c), replayedOf(r), ObservedTime(c.Times.P99), ObservedTimeBounds(c.Times.P99), Duration(r.Seen.P99.Seconds),
		ObservedTime(c.Times.Mean), ObservedTimeBounds(c.Times.Mean), Duration(r.Seen.Mean.Seconds))
	if useless := noHelp(a); len(useless) > 0 {
		text += " Changes that would cut the 99th percentile by less than " + Percent(observed.WorthChange, 0) + ", or not at all: " + strings.Join(useless, "; ") + "."
	}
	return text
}

// noHelp names the changes whose predicted cut of the 99th percentile is too small. A larger cut that is uncertain is not among them.
func noHelp(a *observed.Answer) (all []string) {
	for _, c := range a.Replay.Changes {
		if c.Times.P99.Seconds > (1-observed.WorthChange)*a.Replay.Seen.P99.Seconds {
			all = append(all, changeIn(a, c))
		}
	}
	return all
}

// ObservedCommand is the command that makes the advised change; empty if there is none.
func ObservedCommand(a *observed.Answer) string {
	if a.Advice == nil || a.Advice.Change == nil {
		return ""
	}
	q, c := a.Quota, *a.Advice.Change
	if q == nil || c.CPUs != cpusOf(a.Target.CPUs) {
		return ""
	}
	path := quoted(q.Cgroup)
	if path == "" {
		return ""
	}
	us := func(seconds float64) string { return strconv.FormatInt(int64(math.Round(seconds*1e6)), 10) }
	write := func(value, file string) string { return "echo " + value + " | sudo tee " + path + "/" + file }
	quota, period := "max", q.PeriodS
	if c.Limit > 0 {
		quota, period = us(c.Limit*c.PeriodS), c.PeriodS
	}
	var limits []string
	burst := "cpu.max.burst"
	if q.Version == 2 {
		limits = []string{write("'"+quota+" "+us(period)+"'", "cpu.max")}
	} else {
		burst = "cpu.cfs_burst_us"
		if quota == "max" {
			quota = "-1"
		}
		limits = []string{write(quota, "cpu.cfs_quota_us")}
		switch { // the share of a group must not exceed that of the group above on the way
		case period < q.PeriodS:
			limits = append(limits, write(us(period), "cpu.cfs_period_us"))
		case period > q.PeriodS:
			limits = append([]string{write(us(period), "cpu.cfs_period_us")}, limits...)
		}
	}
	if c.Limit == q.Cores && c.PeriodS == q.PeriodS {
		limits = nil // only the burst changes
	}
	switch { // the kernel refuses a limit below the burst
	case c.Limit > 0 && c.BurstS < q.BurstS:
		limits = append([]string{write(us(c.BurstS), burst)}, limits...)
	case c.Limit > 0 && c.BurstS > q.BurstS:
		limits = append(limits, write(us(c.BurstS), burst))
	}
	return strings.Join(limits, " && ")
}

// quoted is a path for a shell; empty if it is not one that can be printed as it is.
func quoted(path string) string {
	switch {
	case Plain(path) != path:
		return ""
	case !strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:@+", r))
	}):
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
