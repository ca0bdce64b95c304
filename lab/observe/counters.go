//go:build linux

package observe

import (
	"strconv"
	"time"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/proc"
	"tare/notebook"
)

// counters is the account from what the kernel counts anyway of each thread that exists. It says how long, not when.
type counters struct {
	w         *watch
	began     time.Time
	throttled time.Duration       // of the target's cgroups, at the beginning
	used      cpuUse              // of the target at the beginning
	threads   map[int]threadTimes // at the first look at each
	last      map[int]threadTimes // at the last
	gone      threadTimes         // of threads that have ended, as far as they were seen
}

// threadTimes are times of a thread since its beginning, or since a look.
type threadTimes struct{ ran, waited, blocked time.Duration }

func (t threadTimes) since(before threadTimes) threadTimes {
	return threadTimes{t.ran - before.ran, t.waited - before.waited, t.blocked - before.blocked}
}

func (t *threadTimes) add(o threadTimes) {
	t.ran, t.waited, t.blocked = t.ran+o.ran, t.waited+o.waited, t.blocked+o.blocked
}

// cpuUse is CPU time.
type cpuUse struct{ user, system time.Duration }

// counting begins an account from counters.
func (w *watch) counting(threads []engine.Thread) (account, error) {
	c := &counters{w: w, began: time.Now(), threads: map[int]threadTimes{}, last: map[int]threadTimes{}}
	var err error
	if c.throttled, err = cgroup.Throttled(w.target.PID); err != nil {
		return nil, err
	}
	if c.used, err = c.use(); err != nil {
		return nil, err
	}
	if err := c.add(threads); err != nil {
		return nil, err
	}
	w.o.Tier = notebook.TierCounters
	on, err := proc.Setting("/proc/sys/kernel/task_delayacct")
	if err != nil || on == "0" {
		w.note(notebook.Say("disk-waits-uncounted"))
	}
	return c, nil
}

func (c *counters) add(threads []engine.Thread) error {
	for _, th := range threads {
		t, err := timesOf(th.ID)
		if proc.Ended(err) {
			continue
		}
		if err != nil {
			return err
		}
		c.threads[th.ID], c.last[th.ID] = t, t
	}
	return nil
}

// timesOf reads what the kernel counts for a thread.
func timesOf(tid int) (t threadTimes, err error) {
	if t.ran, t.waited, err = proc.Host.RunAndWait(tid); err != nil {
		return t, err
	}
	t.blocked, err = proc.Host.Blocked(tid)
	return t, err
}

// use is the CPU time of the target's processes and of the children for which they have waited.
func (c *counters) use() (u cpuUse, err error) {
	for _, pid := range c.w.pids {
		own, children, err := proc.Host.Usage("/proc/" + strconv.Itoa(pid))
		if proc.Ended(err) {
			continue
		}
		if err != nil {
			return u, err
		}
		u.user += own.User + children.User
		u.system += own.System + children.System
	}
	return u, nil
}

func (c *counters) slice() (map[string]float64, float64, error) {
	elapsed := time.Since(c.began).Seconds()
	sum := c.gone
	for tid := range c.last {
		now, err := timesOf(tid)
		if proc.Ended(err) {
			c.gone.add(c.last[tid].since(c.threads[tid]))
			sum.add(c.last[tid].since(c.threads[tid]))
			delete(c.last, tid)
			delete(c.threads, tid)
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		c.last[tid] = now
		sum.add(now.since(c.threads[tid]))
	}
	throttled, err := cgroup.Throttled(c.w.target.PID)
	if err != nil { // it has ended
		throttled = c.throttled
	}
	wall := measure.Counted(elapsed, float64(len(c.w.cpus)), sum.ran.Seconds(), sum.waited.Seconds(), (throttled - c.throttled).Seconds(), sum.blocked.Seconds())
	u, err := c.use()
	if err != nil {
		return nil, 0, err
	}
	return measure.Split(wall, (u.user - c.used.user).Seconds(), (u.system - c.used.system).Seconds()), elapsed, nil
}

func (c *counters) end(o *notebook.Observation, names func(int) labels) error {
	all := gathered{}
	for tid, now := range c.last {
		did := now.since(c.threads[tid])
		wall := map[string]float64{notebook.WallUser: did.ran.Seconds(), notebook.WallCore: did.waited.Seconds(), notebook.WallBlock: did.blocked.Seconds()}
		of := names(tid)
		if of.thread == "" {
			continue // it has ended
		}
		all.add(of, 1, wall)
	}
	o.Threads = all.list()
	if throttled, err := cgroup.Throttled(c.w.target.PID); err == nil {
		o.Figures["throttled_s"] = (throttled - c.throttled).Seconds()
	}
	return nil
}

func (c *counters) close() error { return nil }
