//go:build linux

package observe

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
	"tare/lab/replay"
	"tare/notebook"
	"tare/stats"
)

// timeline is what is recorded for a replay.
type timeline struct {
	began  time.Duration // by the monotonic clock
	events []replay.Event
	full   bool // the rest is not recorded
}

// mostEvents bounds a timeline in memory, to some 50 MB.
const mostEvents = 1 << 20

// read reads what happened since the last look, until the timeline is full. What follows a gap cannot be replayed.
func (e *events) read() error {
	t := &e.timeline
	if t.full {
		return nil
	}
	var unseen bool
	var err error
	if t.events, unseen, err = e.trace.Timeline(t.events, mostEvents); err != nil {
		return err
	}
	if t.full = unseen || len(t.events) >= mostEvents; t.full {
		return e.trace.EndTimeline()
	}
	return nil
}

// fewestTimed is how many requests a prediction of their 99th percentile needs.
const fewestTimed = 50

// mostReplayOff is how far a replay of the platform as it is may be from what was measured for predictions to be made. The 99th percentile is of
// few requests, so it may be off by more.
var mostReplayOff = replay.Offset{Mean: 0.25, P99: 0.5}

// whatIf predicts what changes would give.
func (e *events) whatIf(ctx context.Context, o *notebook.Observation) error {
	t := &e.timeline
	if e.w.target.Kind == notebook.TargetVM {
		e.w.note(notebook.Say("replay-of-vm"))
		return nil
	}
	work := replay.Build(t.events, t.began)
	if t.full {
		e.w.note(notebook.Say("timeline-full", "seconds", work.Seconds))
	}
	t.events = nil
	o.Requests = work.Account
	if n := work.Spans(); n < fewestTimed {
		e.w.note(notebook.Say("replay-too-few", "n", n, "least", fewestTimed))
		return nil
	}
	kernel, err := scheduling()
	if err != nil {
		e.w.note(notebook.Say("replay-failed", "why", err))
		return nil
	}
	if q := o.Quota; q != nil && strings.HasPrefix(q.Cgroup, e.w.target.Dir+"/") && e.w.target.Dir != "" {
		e.w.note(notebook.Say("replay-of-part", "cgroup", q.Cgroup))
		return nil
	}
	now := platform{CPUs: len(e.w.cpus)}
	if q := o.Quota; q != nil {
		now = platform{Limit: q.Cores, PeriodS: q.PeriodS, BurstS: q.BurstS, CPUs: len(e.w.cpus)}
	}
	phases := work.Phases(now.replayed(o.Target.HostCPUs), kernel)
	seen, checked := work.Measured(), work.Predict(now.replayed(o.Target.HostCPUs), phases, kernel)
	o.Replay = &notebook.ObservedReplay{Of: notebook.RequestsWakes, N: work.Spans(), Seconds: work.Seconds, Seen: times(seen), Checked: times(checked), Changes: []notebook.ObservedChange{}}
	if work.Requests {
		o.Replay.Of = notebook.RequestsServed
	}
	off := replay.Off(seen, checked)
	if !(off.Mean <= mostReplayOff.Mean && off.P99 <= mostReplayOff.P99) {
		e.w.note(notebook.Say("replay-off", "mean", seen.Mean.Value, "replayed_mean", checked.Mean.Value, "p99", seen.P99.Value, "replayed_p99", checked.P99.Value))
		return nil
	}
	all := changes(now, o.Target.HostCPUs)
	for _, change := range e.w.options.If {
		switch c := with(now, change); {
		case c == notebook.ObservedChange(now):
			e.w.note(notebook.Say("change-changes-nothing"))
		case !slices.Contains(all, c):
			all = append(all, c)
		}
	}
	possible := slices.DeleteFunc(slices.Clone(all), func(c notebook.ObservedChange) bool { return !accepted(c) })
	if len(possible) < len(all) {
		e.w.note(notebook.Say("changes-refused"))
	}
	if q := o.Quota; q != nil && q.NextCores > 0 {
		e.w.note(notebook.Say("limit-above", "cores", q.NextCores))
	}
	if work.ClosedLoop {
		e.w.note(notebook.Say("replay-closed-loop"))
	}
	for _, p := range possible {
		if ctx.Err() != nil {
			return nil // the changes until then are predicted
		}
		likely := phases
		if p.PeriodS != now.PeriodS {
			likely = nil
		}
		p.Times = times(work.Predict(platform(p).replayed(o.Target.HostCPUs), likely, kernel).Widened(off.AtLeast()))
		o.Replay.Changes = append(o.Replay.Changes, p)
	}
	return nil
}

// platform is a CPU limit and CPUs.
type platform notebook.ObservedChange

func (p platform) replayed(host int) replay.Platform {
	return replay.Platform{CPUs: p.CPUs, Host: host, Quota: duration(p.Limit * p.PeriodS), Period: duration(p.PeriodS), Burst: duration(p.BurstS)}
}

func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// shortPeriod is the period that Tare tries in addition to the present one, in seconds.
const shortPeriod = 0.01

// leastQuota is the least CPU time in a period that the kernel accepts as a limit (kernel/sched/core.c), in seconds.
const leastQuota = 0.001

// accepted reports whether the kernel accepts a limit.
func accepted(c notebook.ObservedChange) bool {
	const rounding = 1e-9
	quota := c.Limit * c.PeriodS
	return c.Limit == 0 || quota >= leastQuota-rounding && c.BurstS <= quota+rounding
}

// with is a platform with a change.
func with(now platform, change Change) notebook.ObservedChange {
	c := notebook.ObservedChange(now)
	change(&c)
	return c
}

// changes are those that are tried on every target.
func changes(now platform, host int) (all []notebook.ObservedChange) {
	add := func(change Change) { all = append(all, with(now, change)) }
	if now.Limit == 0 {
		if now.CPUs < host {
			add(func(c *notebook.ObservedChange) { c.CPUs = host })
		}
		if now.CPUs > 1 {
			add(func(c *notebook.ObservedChange) { c.CPUs = now.CPUs / 2 })
		}
		return all
	}
	unlimited := func(c *notebook.ObservedChange) { c.Limit, c.PeriodS, c.BurstS = 0, 0, 0 }
	add(unlimited)
	add(func(c *notebook.ObservedChange) { c.Limit *= 2 })
	if now.BurstS == 0 {
		add(func(c *notebook.ObservedChange) { c.BurstS = c.Limit * c.PeriodS })
	}
	if now.PeriodS > shortPeriod {
		add(func(c *notebook.ObservedChange) {
			c.PeriodS, c.BurstS = shortPeriod, min(c.BurstS, c.Limit*shortPeriod)
		})
	}
	if cpus := int(math.Ceil(now.Limit)); cpus < now.CPUs {
		add(func(c *notebook.ObservedChange) { unlimited(c); c.CPUs = cpus })
	}
	return all
}

func times(p replay.Prediction) notebook.ObservedTimes {
	of := func(e stats.Estimate) notebook.ObservedTime {
		return notebook.ObservedTime{Seconds: e.Value, Low: e.Low, High: e.High}
	}
	return notebook.ObservedTimes{Mean: of(p.Mean), P99: of(p.P99), ThrottledS: p.Throttled, QueuedS: p.Queued}
}

// scheduling is how the host's kernel schedules.
func scheduling() (k replay.Kernel, err error) {
	// This clock is read at each tick only, so its resolution is the time between two.
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return k, fmt.Errorf("clock_getres: %w", err)
	}
	online, err := proc.OnlineCPUs()
	if err != nil {
		return k, err
	}
	const mostCounted = 8
	// kernel/sched/fair.c: sysctl_sched_base_slice, and the default of sched_cfs_bandwidth_slice_us.
	k = replay.Kernel{Tick: time.Duration(tick.Nano()), Slice: 5 * time.Millisecond,
		Turn: 700 * time.Microsecond * time.Duration(bits.Len(uint(min(len(online), mostCounted))))}
	if text, err := proc.Setting("/proc/sys/kernel/sched_cfs_bandwidth_slice_us"); err == nil {
		us, err := strconv.Atoi(text)
		if err != nil || us <= 0 {
			return k, fmt.Errorf("/proc/sys/kernel/sched_cfs_bandwidth_slice_us: %.20q: must be a number of µs", text)
		}
		k.Slice = time.Duration(us) * time.Microsecond
	}
	return k, nil
}

// Change makes another platform of one.
type Change func(*notebook.ObservedChange)

// ParseChange parses a change: "limit=2,period=10ms,burst=5ms,cpus=1". What it does not name stays as it is.
func ParseChange(text string) (Change, error) {
	online, err := proc.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	var all []Change
	given := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		c, err := parsePart(name, value, len(online))
		if _, twice := given[name]; err == nil && twice {
			err = fmt.Errorf("%s is there twice; give one value, and repeat --if for another change", name)
		}
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", text, err)
		}
		given[name] = value
		all = append(all, c)
	}
	_, periods := given["period"]
	_, bursts := given["burst"]
	if given["limit"] == "none" && (periods || bursts) {
		return nil, fmt.Errorf("%.80q: limit=none has no period and no burst; leave them out, or give a limit in cores", text)
	}
	return func(o *notebook.ObservedChange) {
		for _, c := range all {
			c(o)
		}
		switch {
		case o.Limit == 0:
			o.PeriodS, o.BurstS = 0, 0
		case o.PeriodS == 0:
			o.PeriodS = notebook.UsualPeriodS
		}
		if !bursts {
			o.BurstS = min(o.BurstS, o.Limit*o.PeriodS) // as much as the kernel accepts
		}
	}, nil
}

func parsePart(name, value string, host int) (Change, error) {
	switch name {
	case "limit":
		if value == "none" {
			return func(o *notebook.ObservedChange) { o.Limit = 0 }, nil
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n >= 0.01 && n <= 1024) {
			return nil, fmt.Errorf("limit=%s: must be from 0.01 to 1024 cores, or none", value)
		}
		return func(o *notebook.ObservedChange) { o.Limit = n }, nil
	case "period":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Millisecond || d > time.Second { // as the kernel allows
			return nil, fmt.Errorf("period=%s: must be a time with its unit, from 1ms to 1s", value)
		}
		return func(o *notebook.ObservedChange) { o.PeriodS = d.Seconds() }, nil
	case "burst":
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d > 10*time.Second {
			return nil, fmt.Errorf("burst=%s: must be a time with its unit, from 0s to 10s", value)
		}
		return func(o *notebook.ObservedChange) { o.BurstS = d.Seconds() }, nil
	case "cpus":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > host {
			return nil, fmt.Errorf("cpus=%s: must be a whole number from 1 to %d, the number of online CPUs of this host", value, host)
		}
		return func(o *notebook.ObservedChange) { o.CPUs = n }, nil
	}
	return nil, fmt.Errorf("%q: must be limit, period, burst or cpus, each with = and a value", name)
}
