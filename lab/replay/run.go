package replay

import (
	"math"
	"slices"
	"time"
)

// Platform is what the target is replayed on.
type Platform struct {
	CPUs   int           // that it may use
	Host   int           // CPUs of the host, which others may use too
	Quota  time.Duration // CPU time in each period; 0: no limit
	Period time.Duration
	Burst  time.Duration // unused quota that may be saved up
	Phase  time.Duration // when after the beginning a period begins
}

// Kernel is what the replay must know of the kernel.
type Kernel struct {
	Tick  time.Duration // how often a running thread's use of the quota is settled
	Slice time.Duration // how much of the quota a CPU takes at once
	Turn  time.Duration // for how long a thread may keep a CPU that another one waits for
}

// kept is how much of the quota an idle CPU keeps, and slack how much later what it gave back is given to others (kernel/sched/fair.c).
const (
	kept  = time.Millisecond
	slack = 5 * time.Millisecond
)

// Outcome is what a replay came to.
type Outcome struct {
	Took      []float64     // seconds, of each of the Work's spans that ended
	At        []float64     // when each came, in seconds after the beginning
	Of        []int         // which of the Work's spans each is
	Throttled time.Duration // CPUs that stood still because of the limit, added over CPUs
	Queued    time.Duration // threads that were ready without a CPU, added over threads; of those whose CPU was throttled, only some
}

type happening uint8

const (
	released happening = iota // a step's time has come
	due                       // a CPU's running thread has done its step, or had its turn, or must settle its use
	refill                    // a period begins
	spread                    // what idle CPUs gave back is given to others
)

type event struct {
	at   time.Duration
	what happening
	of   int32
	gen  uint32
}

// cpu is a CPU of the replay.
type cpu struct {
	thread  int32 // that runs; none
	since   time.Duration
	turned  time.Duration // when its turn began
	left    time.Duration // of the quota it has taken
	due     time.Duration // when it is looked after next
	gen     uint32
	stopped bool // throttled, with the threads of held
	at      time.Duration
	held    []int32
}

// run is a replay under way.
type run struct {
	w       *Work
	p       Platform
	k       Kernel
	now     time.Duration
	queue   heap
	cpus    []cpu
	ready   []int32 // the target's threads, the first to run first
	others  []int32 // those that are not the target's
	lined   []int32 // those that wait for a slot
	used    int     // slots
	since   []time.Duration
	current []int32         // the step of each thread
	todo    []time.Duration // of that step
	ended   []time.Duration // of each step; -1: not yet
	began   []time.Duration // when each step could begin
	woken   []bool          // the step's waker has ended
	come    []int32         // of each group: how many of its threads have come
	pool    time.Duration   // of the quota
	late    bool            // a spread is due
	out     Outcome
}

// Run replays the Work.
func (w *Work) Run(p Platform, k Kernel) Outcome {
	r := &run{w: w, p: p, k: k, cpus: make([]cpu, max(p.CPUs, p.Host)), since: make([]time.Duration, len(w.heads)), current: slices.Clone(w.heads),
		todo: make([]time.Duration, len(w.heads)), ended: make([]time.Duration, len(w.steps)), began: make([]time.Duration, len(w.steps)), woken: make([]bool, len(w.steps)), come: make([]int32, len(w.groups))}
	for i := range r.ended {
		r.ended[i] = -1
	}
	for i := range r.cpus {
		r.cpus[i].thread = none
	}
	if p.Quota > 0 {
		r.pool = p.Quota
		r.queue.push(event{at: p.Phase, what: refill})
	}
	for _, s := range w.heads {
		if s != none && r.may(s, 0) {
			r.enqueue(w.steps[s].chain)
		}
	}
	for len(r.queue) > 0 {
		e := r.queue.pop()
		if e.what == refill && len(r.queue) == 0 && !r.stopped() {
			break // nothing will happen any more
		}
		r.now = max(r.now, e.at)
		r.happens(e)
	}
	r.outcome()
	return r.out
}

// stopped reports whether a CPU is throttled.
func (r *run) stopped() bool {
	return slices.ContainsFunc(r.cpus, func(c cpu) bool { return c.stopped })
}

func (r *run) happens(e event) {
	switch e.what {
	case released:
		r.enqueue(r.w.steps[e.of].chain)
	case due:
		if c := &r.cpus[e.of]; c.gen == e.gen && c.thread != none {
			r.settle(c)
			r.proceed(int(e.of))
		}
	case refill:
		r.pool = min(r.pool+r.p.Quota, r.p.Quota+r.p.Burst)
		r.queue.push(event{at: r.now + r.p.Period, what: refill})
		r.lift()
	case spread:
		r.late = false
		r.lift()
	}
}

// may lets a step begin if all that it waits for has happened. prev is when the last step of its thread ended.
func (r *run) may(n int32, prev time.Duration) (now bool) {
	s := &r.w.steps[n]
	if s.by != none {
		r.current[s.chain] = n
		r.began[n] = -1 - prev // waits for its waker, and for those who are woken with it
		r.comes(s.group, n)
		if !r.woken[n] || !r.complete(s.group) {
			return false
		}
	}
	return r.release(n, prev)
}

// release lets a step begin when its time has come.
func (r *run) release(n int32, prev time.Duration) (now bool) {
	s := &r.w.steps[n]
	at := max(prev+s.pause, s.from, r.now)
	r.current[s.chain], r.todo[s.chain], r.began[n] = n, s.work, at
	if at <= r.now {
		return true
	}
	r.queue.push(event{at: at, what: released, of: n})
	return false
}

// enqueue makes a thread ready, and gives it a CPU if one is free. If it serves a request, it needs one of the slots for that.
func (r *run) enqueue(t int32) {
	if r.w.shared[t] {
		if r.used == r.w.slots {
			r.lined = append(r.lined, t)
			return
		}
		r.used++
	}
	r.queues(t)
	r.share()
}

// share gives free CPUs to ready threads, and sees to it that whoever has had its turn makes room for the others.
func (r *run) share() {
	r.assign()
	if len(r.ready)+len(r.others) == 0 {
		return
	}
	for i := range r.cpus {
		if c := &r.cpus[i]; c.thread != none && c.due > max(r.now, c.turned+r.k.Turn) && r.next(i) != nil {
			r.plan(i)
		}
	}
}

// queues puts a thread at the end of its queue.
func (r *run) queues(t int32) {
	r.since[t] = r.now
	if r.w.foreign[t] {
		r.others = append(r.others, t)
	} else {
		r.ready = append(r.ready, t)
	}
}

// next is the queue from which a CPU takes its next thread; nil: none of them has one for it.
func (r *run) next(i int) *[]int32 {
	own := len(r.ready) > 0 && i < r.p.CPUs && !r.cpus[i].stopped
	switch {
	case own && (len(r.others) == 0 || r.since[r.ready[0]] <= r.since[r.others[0]]):
		return &r.ready
	case len(r.others) > 0:
		return &r.others
	}
	return nil
}

// assign gives free CPUs to ready threads. Others take those first that the target may not use.
func (r *run) assign() {
	for i := len(r.cpus) - 1; i >= 0 && len(r.ready)+len(r.others) > 0; i-- {
		for r.cpus[i].thread == none {
			q := r.next(i)
			if q == nil {
				break
			}
			r.start(i, take(q))
		}
	}
}

// take takes the first thread from a queue.
func take(q *[]int32) int32 {
	t := (*q)[0]
	*q = (*q)[1:]
	return t
}

// start gives a CPU to a thread.
func (r *run) start(i int, t int32) {
	c := &r.cpus[i]
	if !r.w.foreign[t] {
		if !r.funded(c) {
			r.stop(i, t)
			return
		}
		r.out.Queued += r.now - r.since[t]
	}
	c.thread, c.since, c.turned = t, r.now, r.now
	r.plan(i)
}

// funded reports whether a CPU has some of the quota, and takes more if not.
func (r *run) funded(c *cpu) bool {
	if r.p.Quota == 0 || c.left > 0 {
		return true
	}
	take := min(r.pool, r.k.Slice-c.left)
	r.pool -= take
	c.left += take
	return c.left > 0
}

// stop throttles a CPU and the thread that would run there.
func (r *run) stop(i int, t int32) {
	c := &r.cpus[i]
	c.thread, c.stopped, c.at = none, true, r.now
	c.held = append(c.held, t)
	c.gen++
}

// settle charges the running thread for its time.
func (r *run) settle(c *cpu) {
	ran := r.now - c.since
	r.todo[c.thread] -= ran
	c.since = r.now
	if r.p.Quota > 0 && !r.w.foreign[c.thread] {
		c.left -= ran
	}
}

// proceed looks after a CPU whose thread has been charged.
func (r *run) proceed(i int) {
	c := &r.cpus[i]
	t := c.thread
	for r.todo[t] <= 0 {
		n := r.current[t]
		r.ends(n)
		next := r.w.steps[n].next
		if next == none || !r.may(next, r.now) {
			r.leave(i)
			return
		}
		r.todo[t] = r.w.steps[next].work
	}
	if !r.w.foreign[t] && !r.funded(c) {
		r.stop(i, t)
		r.assign()
		return
	}
	if q := r.next(i); q != nil && r.now-c.turned >= r.k.Turn {
		next := take(q)
		r.queues(t)
		c.thread = none
		r.start(i, next)
		r.share()
		return
	}
	r.plan(i)
}

// leave frees a CPU whose thread waits.
func (r *run) leave(i int) {
	c := &r.cpus[i]
	foreign := r.w.foreign[c.thread]
	if r.w.shared[c.thread] {
		r.used--
	}
	c.thread = none
	c.gen++
	if len(r.lined) > 0 && r.used < r.w.slots {
		r.enqueue(take(&r.lined))
	}
	if r.p.Quota == 0 || foreign {
		r.assign()
		return
	}
	r.funded(c) // the kernel lets an empty queue pay its debts too
	r.assign()
	if back := c.left - kept; (c.thread == none || r.w.foreign[c.thread]) && back > 0 {
		c.left -= back
		r.pool += back
		if r.pool > r.k.Slice && r.stopped() && !r.late {
			r.late = true
			r.queue.push(event{at: r.now + slack, what: spread})
		}
	}
}

// ends notes that a step has ended, and wakes the one that waits for it.
func (r *run) ends(n int32) {
	r.ended[n] = r.now
	w := r.w.steps[n].wakes
	if w == none {
		return
	}
	r.woken[w] = true
	if r.complete(r.w.steps[w].group) {
		r.rouse(w)
	}
}

// rouse lets a step begin that waits for nothing any more.
func (r *run) rouse(n int32) {
	s := &r.w.steps[n]
	if !r.woken[n] || r.current[s.chain] != n || r.began[n] >= 0 {
		return
	}
	if r.release(n, -1-r.began[n]) {
		r.enqueue(s.chain)
	}
}

// comes notes that the thread of a step has come to where it waits to be woken with the others of its group.
func (r *run) comes(g, n int32) {
	if g == none {
		return
	}
	if r.come[g]++; r.complete(g) {
		for _, other := range r.w.groups[g].steps {
			if other != n {
				r.rouse(other)
			}
		}
	}
}

func (r *run) complete(g int32) bool { return g == none || int(r.come[g]) >= len(r.w.groups[g].steps) }

// plan determines when a CPU must be looked after next.
func (r *run) plan(i int) {
	c := &r.cpus[i]
	at := c.since + max(0, r.todo[c.thread])
	if r.next(i) != nil {
		at = min(at, max(r.now, c.turned+r.k.Turn))
	}
	if r.p.Quota > 0 && !r.w.foreign[c.thread] {
		at = min(at, (r.now/r.k.Tick+1)*r.k.Tick)
	}
	c.gen++
	c.due = at
	r.queue.push(event{at: at, what: due, of: int32(i), gen: c.gen})
}

// lift gives CPUs that are throttled just enough to go on, as the kernel does.
func (r *run) lift() {
	for i := range r.cpus {
		c := &r.cpus[i]
		if !c.stopped {
			continue
		}
		give := min(r.pool, 1-c.left)
		r.pool -= give
		if c.left += give; c.left <= 0 {
			continue
		}
		r.out.Throttled += r.now - c.at
		c.stopped = false
		for _, t := range c.held {
			r.since[t] = r.now
		}
		r.ready = append(c.held, r.ready...)
		c.held = nil
	}
	r.share()
}

// outcome collects how long the spans took.
func (r *run) outcome() {
	for i, s := range r.w.spans {
		end := r.ended[s.last]
		if end < 0 {
			continue
		}
		began := s.arrived
		if s.first != none {
			if r.ended[s.first] < 0 {
				continue
			}
			if began = r.w.steps[s.first].from; began == 0 { // not at a fixed time
				began = r.began[s.first]
			}
		}
		r.out.Took = append(r.out.Took, math.Max(0, (end-began).Seconds()))
		r.out.At = append(r.out.At, began.Seconds())
		r.out.Of = append(r.out.Of, i)
	}
}

// heap has the event that comes first at its top.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up].at <= a[i].at {
			break
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *heap) pop() event {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	*h = a
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && a[c+1].at < a[c].at {
			c++
		}
		if a[i].at <= a[c].at {
			break
		}
		a[i], a[c] = a[c], a[i]
		i = c
	}
	return top
}
