//go:build linux

package observe

import (
	"context"
	"time"

	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/proc"
	"tare/notebook"
)

// counters is the account from what the kernel counts anyway of each thread that exists. It says how long, not when.
type counters struct {
	w         *watch
	began     time.Time
	at        float64             // seconds until the last look
	throttled float64             // seconds until the last look
	first     map[int]threadTimes // at the first look at each thread
	last      map[int]threadTimes // at the last
	wall      map[string]float64  // until the last look
}

// threadTimes are times of a thread since its beginning, or since a look.
type threadTimes struct{ ran, waited, blocked time.Duration }

func (t threadTimes) since(before threadTimes) threadTimes {
	return threadTimes{t.ran - before.ran, t.waited - before.waited, t.blocked - before.blocked}
}

func (t *threadTimes) add(o threadTimes) {
	t.ran, t.waited, t.blocked = t.ran+o.ran, t.waited+o.waited, t.blocked+o.blocked
}

// counting begins an account from counters.
func (w *watch) counting() (account, error) {
	threads, err := w.all()
	if err != nil {
		return nil, err
	}
	c := &counters{w: w, began: time.Now(), first: map[int]threadTimes{}, last: map[int]threadTimes{}, wall: map[string]float64{}}
	if err := c.add(threads); err != nil {
		return nil, err
	}
	w.o.Tier = notebook.TierCounters
	w.note(notebook.Say("short-threads-unseen"))
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
		c.first[th.ID], c.last[th.ID] = t, t
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

func (c *counters) slice() (map[string]float64, float64, error) {
	at := time.Since(c.began).Seconds()
	var sum threadTimes // since the last look
	for tid, before := range c.last {
		now, err := timesOf(tid)
		if proc.Ended(err) {
			delete(c.last, tid)
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		c.last[tid] = now
		sum.add(now.since(before))
	}
	sum.ran = max(sum.ran, c.w.used.more.All) // threads that have ended are in it
	throttled := c.w.throttled()
	sum.waited = max(sum.waited, time.Duration((throttled-c.throttled)*float64(time.Second))) // where the limit was spent, a thread waited
	wall := measure.Counted(at-c.at, float64(len(c.w.cpus)), sum.ran.Seconds(), sum.waited.Seconds(), throttled-c.throttled, sum.blocked.Seconds())
	if len(c.last) > 1 { // when one of several threads waited for a core, others of them may have run
		wall[notebook.WallOther] += wall[notebook.WallCore]
		delete(wall, notebook.WallCore)
		c.w.note(notebook.Say("core-waits-untimed"))
	}
	wall[notebook.WallUser], wall[notebook.WallSystem] = c.w.used.split(wall[notebook.WallUser])
	all := map[string]float64{}
	for _, of := range []map[string]float64{c.wall, wall} {
		for key, seconds := range of {
			all[key] += seconds
		}
	}
	c.wall, c.at, c.throttled = all, at, throttled
	c.w.o.Figures["run_s"] += sum.ran.Seconds()
	return all, at, nil
}

func (c *counters) end(o *notebook.Observation, names func(int) labels) error {
	all := gathered{}
	for tid, now := range c.last {
		did := now.since(c.first[tid])
		wall := map[string]float64{notebook.WallUser: did.ran.Seconds(), notebook.WallCore: did.waited.Seconds(), notebook.WallBlock: did.blocked.Seconds()}
		of := names(tid)
		if of.thread == "" {
			continue // it has ended
		}
		all.add(of, 1, wall)
	}
	o.Threads = all.list()
	return nil
}

// whatIf predicts nothing: counters do not say when.
func (c *counters) whatIf(context.Context, *notebook.Observation) error { return nil }

func (c *counters) close() error { return nil }
