//go:build linux

package observe

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

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

// cpuTimes are the CPU times of the target since the beginning. They are those of its cgroup. Without one they are those of its processes and of the
// children for which these have waited.
type cpuTimes struct {
	group  *cgroup.Counter // nil: none counts only the target
	from   cgroup.Spent    // when the observation began
	last   map[int]cgroup.Spent
	now    cgroup.Spent // since the beginning, at the last look
	before cgroup.Spent // at the one before
}

// begin begins to count.
func (c *cpuTimes) begin(target *live.Target, pids []int) (err error) {
	*c = cpuTimes{}
	if target.Dir != "" {
		if c.group, err = cgroup.CounterOf(pids[0], path.Base(target.Dir)); err != nil && !proc.Ended(err) {
			return err
		}
	}
	if c.group != nil {
		c.from, err = c.group.Spent()
		return err
	}
	c.last, err = spentBy(pids)
	return err
}

// look adds what was used since the last look.
func (c *cpuTimes) look(pids []int) error {
	c.before = c.now
	if c.group != nil {
		if all, err := c.group.Spent(); err == nil { // a group that is gone keeps its last numbers
			c.now = less(all, c.from)
		}
		return nil
	}
	now, err := spentBy(pids)
	if err != nil {
		return err
	}
	var more cgroup.Spent
	for pid, of := range now { // one that is new has used all of it since
		more = plus(more, less(of, c.last[pid]))
	}
	for pid, of := range c.last {
		if _, is := now[pid]; !is { // it has ended: its parent, which may be one of them, has its time
			more = less(more, of)
		}
	}
	c.now, c.last = plus(c.now, cgroup.Spent{All: max(0, more.All), User: max(0, more.User), System: max(0, more.System)}), now
	return nil
}

// spentBy is what each of the processes has used, with the children for which it has waited.
func spentBy(pids []int) (map[int]cgroup.Spent, error) {
	all := map[int]cgroup.Spent{}
	for _, pid := range pids {
		own, children, err := proc.Host.Usage(fmt.Sprintf("/proc/%d", pid))
		if proc.Ended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		own.Add(children)
		all[pid] = cgroup.Spent{All: own.User + own.System, User: own.User, System: own.System}
	}
	return all, nil
}

func plus(a, b cgroup.Spent) cgroup.Spent {
	return cgroup.Spent{All: a.All + b.All, User: a.User + b.User, System: a.System + b.System}
}

func less(a, b cgroup.Spent) cgroup.Spent {
	return cgroup.Spent{All: a.All - b.All, User: a.User - b.User, System: a.System - b.System}
}

// since is the CPU time since the look before the last one.
func (c *cpuTimes) since() time.Duration { return less(c.now, c.before).All }

// split divides seconds that the target ran since the look before the last one into user and system time.
func (c *cpuTimes) split(running float64) (user, system float64) {
	of := less(c.now, c.before)
	if of.User+of.System <= 0 { // the kernel took no sample
		of = c.now
	}
	if sampled := of.User + of.System; sampled > 0 {
		system = running * of.System.Seconds() / sampled.Seconds()
	}
	return running - system, system
}
