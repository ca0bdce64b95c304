//go:build linux

package observe

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"tare/lab/cgroup"
	"tare/lab/live"
	"tare/lab/proc"
	"tare/notebook"
)

// mostAsked is how many of the target's processes are asked for their limits.
const mostAsked = 64

// limits notes what the target may use. A pod or a unit may have several cgroups: of their memory limits the one counts that is nearest to be
// reached. Of a process its own limits count, not those of its descendants.
func (w *watch) limits() error {
	if err := w.allowed(); err != nil {
		return err
	}
	pids := w.pids[:min(len(w.pids), mostAsked)]
	if w.target.Dir == "" {
		pids = []int{w.target.PID}
	}
	for _, pid := range pids {
		q, err := cgroup.QuotaOf(pid)
		if err != nil && !w.over(pid) {
			return err
		}
		if q != nil && !slices.ContainsFunc(w.quotas, func(o limited) bool { return o.Dir == q.Dir }) {
			w.quotas = append(w.quotas, limited{Quota: q})
		}
		m, err := cgroup.MemoryOf(pid)
		if err != nil && !w.over(pid) {
			return err
		}
		if m != nil && (w.memory == nil || filled(m) > filled(w.memory)) {
			w.memory = m
		}
	}
	if m := w.memory; m != nil && m.Limit == 0 && (w.target.Dir == "" || !strings.Contains(m.Dir+"/", "/"+path.Base(w.target.Dir)+"/")) {
		w.memory = nil // others are in that cgroup too
	}
	w.lastMemory = w.memory
	return nil
}

// limited is a CPU limit, and what the kernel counted of it.
type limited struct {
	*cgroup.Quota
	first, last cgroup.Bandwidth // when the observation began, and at the last look
}

// baseline reads what the kernel has counted until the observation begins.
func (w *watch) baseline() error {
	for i := range w.quotas {
		q := &w.quotas[i]
		var err error
		if q.first, err = q.Counted(); err != nil {
			return err
		}
		q.last = q.first
	}
	if w.memory != nil {
		m, err := w.memory.Again()
		if err != nil {
			return err
		}
		w.memory, w.lastMemory = m, m
	}
	return nil
}

// recount reads it again. A cgroup that is gone keeps its last numbers.
func (w *watch) recount() {
	for i := range w.quotas {
		if now, err := w.quotas[i].Counted(); err == nil {
			w.quotas[i].last = now
		}
	}
	if w.memory != nil {
		if now, err := w.memory.Again(); err == nil {
			w.lastMemory = now
		}
	}
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

// throttled is for how long CPU limits have held the target back since the beginning, in seconds added over CPUs.
func (w *watch) throttled() (sum float64) {
	for _, q := range w.quotas {
		sum += (q.last.Throttled - q.first.Throttled).Seconds()
	}
	return sum
}

// tightest notes the CPU limit that held the target back for the longest time or, if none did, the smallest.
func (w *watch) tightest() {
	if len(w.quotas) == 0 {
		return
	}
	q := slices.MaxFunc(w.quotas, func(a, b limited) int {
		return cmp.Or(cmp.Compare(a.last.Throttled-a.first.Throttled, b.last.Throttled-b.first.Throttled), cmp.Compare(b.Cores, a.Cores))
	})
	w.o.Quota = &notebook.ObservedQuota{Cgroup: q.Dir, Version: q.Version, Cores: q.Cores, NextCores: q.Next, PeriodS: q.Period.Seconds(), BurstS: q.Burst.Seconds(),
		Periods: float64(q.last.Periods - q.first.Periods), Exhausted: float64(q.last.Exhausted - q.first.Exhausted), LimitedS: (q.last.Throttled - q.first.Throttled).Seconds()}
}

// cpuTimes are the CPU times of the target. They are those of its cgroup. Without one they are those of its processes and of the children for which
// these have waited.
type cpuTimes struct {
	group *cgroup.Counter // nil: none counts only the target
	last  cgroup.Spent    // as they were read at the last look
	more  cgroup.Spent    // what was used between the last two looks
	all   cgroup.Spent    // what was used since the beginning
}

// begin begins to count.
func (c *cpuTimes) begin(target *live.Target, pids []int) (err error) {
	*c = cpuTimes{}
	if target.Dir != "" {
		if c.group, err = cgroup.CounterOf(pids[0], path.Base(target.Dir)); err != nil && !proc.Ended(err) {
			return err
		}
	}
	c.last, err = c.read(pids)
	return err
}

// look adds what was used since the last look.
func (c *cpuTimes) look(pids []int) error {
	c.more = cgroup.Spent{}
	now, err := c.read(pids)
	if err != nil && c.group != nil {
		return nil // a group that is gone has used no more
	}
	if err != nil {
		return err
	}
	c.more = now.Since(c.last) // less than nothing if a process has ended for which none of the others waited
	c.more = cgroup.Spent{All: max(0, c.more.All), User: max(0, c.more.User), System: max(0, c.more.System)}
	c.all = cgroup.Spent{All: c.all.All + c.more.All, User: c.all.User + c.more.User, System: c.all.System + c.more.System}
	c.last = now
	return nil
}

// read is what was used until now, since before the beginning.
func (c *cpuTimes) read(pids []int) (cgroup.Spent, error) {
	if c.group != nil {
		return c.group.Spent()
	}
	u, err := proc.UsageOf(pids)
	return cgroup.Spent{All: u.User + u.System, User: u.User, System: u.System}, err
}

// split divides seconds that the target ran between the last two looks into user and system time.
func (c *cpuTimes) split(running float64) (user, system float64) {
	of := c.more
	if of.User+of.System <= 0 { // the kernel took no sample
		of = c.all
	}
	if sampled := of.User + of.System; sampled > 0 {
		system = running * of.System.Seconds() / sampled.Seconds()
	}
	return running - system, system
}
