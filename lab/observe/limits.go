//go:build linux

package observe

import (
	"fmt"
	"slices"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

// mostAsked is how many of the target's processes are asked for their limits.
const mostAsked = 64

// limits notes what the target may use. A pod or a unit may have several cgroups: of their CPU limits the smallest counts, of their memory
// limits the one that is nearest to be reached.
func (w *watch) limits() error {
	if err := w.allowed(); err != nil {
		return err
	}
	for _, pid := range w.pids[:min(len(w.pids), mostAsked)] {
		q, err := cgroup.QuotaOf(pid)
		if err != nil && !w.over(pid) {
			return err
		}
		if q != nil && (w.quota == nil || q.Cores < w.quota.Cores) {
			w.quota = q
		}
		m, err := cgroup.MemoryOf(pid)
		if err != nil && !w.over(pid) {
			return err
		}
		if m != nil && (w.memory == nil || filled(m) > filled(w.memory)) {
			w.memory = m
		}
	}
	if w.target.Dir == "" && w.memory != nil && w.memory.Limit == 0 {
		w.memory = nil // a cgroup that a process shares with others says nothing about it
	}
	if q := w.quota; q != nil {
		w.o.Quota = &notebook.ObservedQuota{Cgroup: q.Dir, Cores: q.Cores, PeriodS: q.Period.Seconds(), BurstS: q.Burst.Seconds()}
		var err error
		if w.bandwidth, err = q.Counted(); err != nil {
			return err
		}
	}
	return nil
}

// filled is which part of its limit a cgroup uses.
func filled(m *cgroup.Memory) float64 {
	if m.Limit == 0 {
		return 0
	}
	return float64(m.Used) / float64(m.Limit)
}

// over reports whether a process has ended.
func (w *watch) over(pid int) bool {
	over, err := proc.Zombie(pid)
	return over || err != nil
}

// allowed notes the CPUs that any of the target's threads may use.
func (w *watch) allowed() error {
	online, err := proc.OnlineCPUs()
	if err != nil {
		return err
	}
	threads := 0
	for _, pid := range w.pids {
		tids, err := proc.Threads(pid)
		if err != nil {
			return err
		}
		for _, tid := range tids {
			if threads++; threads > mostAsked || len(w.cpus) == len(online) {
				break
			}
			cpus, err := proc.Host.AllowedCPUs(fmt.Sprintf("%d/task/%d", pid, tid))
			if proc.Ended(err) {
				continue
			}
			if err != nil {
				return err
			}
			w.cpus = append(w.cpus, cpus...)
			slices.Sort(w.cpus)
			w.cpus = slices.Compact(w.cpus)
		}
	}
	if w.cpus = proc.IntersectCPUs(online, w.cpus); len(w.cpus) == 0 {
		return fmt.Errorf("%s: %w", w.target.Name, ErrEnded)
	}
	w.o.Target.CPUs, w.o.Target.HostCPUs = notebook.FormatCPUList(w.cpus), len(online)
	return nil
}

// throttled is for how long the CPU limit has held the target back since the beginning, in seconds added over CPUs.
func (w *watch) throttled() float64 {
	if w.quota == nil {
		return 0
	}
	now, err := w.quota.Counted()
	if err != nil || now.Throttled < w.bandwidth.Throttled { // the group is gone
		return w.lastThrottled
	}
	w.lastThrottled = (now.Throttled - w.bandwidth.Throttled).Seconds()
	w.o.Quota.Periods, w.o.Quota.Exhausted = float64(now.Periods-w.bandwidth.Periods), float64(now.Exhausted-w.bandwidth.Exhausted)
	w.o.Quota.LimitedS = w.lastThrottled
	return w.lastThrottled
}

// cpuTimes are the user and system times of the target's processes since the beginning, as far as they were looked at.
type cpuTimes struct {
	last         map[int]proc.Usage
	user, system float64 // seconds
}

// look adds what the processes have used since the last look.
func (c *cpuTimes) look(pids []int) error {
	now := map[int]proc.Usage{}
	for _, pid := range pids {
		own, children, err := proc.Host.Usage(fmt.Sprintf("/proc/%d", pid))
		if proc.Ended(err) {
			continue
		}
		if err != nil {
			return err
		}
		own.Add(children)
		now[pid] = own
		if c.last != nil { // one that is new has used all of it since
			before := c.last[pid]
			c.user += max(0, (own.User - before.User).Seconds())
			c.system += max(0, (own.System - before.System).Seconds())
		}
	}
	c.last = now
	return nil
}

// split divides running seconds into user and system time.
func (c *cpuTimes) split(running float64) (user, system float64) {
	if c.user+c.system > 0 {
		system = running * c.system / (c.user + c.system)
	}
	return running - system, system
}
