package replay

import (
	"time"

	"tare/notebook"
)

// none is the number of no step.
const none = -1

// step is a piece of a thread's work without a wait in it. It can begin when the last step of its chain has ended, when the step that wakes
// it has ended, and when its time has come.
type step struct {
	chain int32         // its number in the Work
	next  int32         // the chain's next step; none
	wakes int32         // the step that is woken when this one ends; none
	by    int32         // the step that wakes it; none
	group int32         // of steps that one thread woke at once; none
	from  time.Duration // it does not begin before this time after the beginning
	pause time.Duration // nor so soon after the last step of the chain has ended
	work  time.Duration // on a CPU
}

// group is the steps that one thread woke at once. Their threads may have waited for each other, as at a barrier: whoever comes last wakes
// the others. So none of them goes on before all have come.
type group struct {
	first int32 // the step by which it woke the first of them
	steps []int32
}

// span is a request, or a thread's work from a wake until it waits again.
type span struct {
	arrived time.Duration // when it came, after the beginning; for work that a timer starts, see first
	first   int32         // the step whose time is its beginning; none: it began at arrived
	last    int32         // the step that ended it
	took    time.Duration // as it was recorded
}

// Work is what threads did, by which a replay is made.
type Work struct {
	Requests bool // the spans are requests that came to the target's sockets; otherwise they are what threads did from a wake to the next wait
	Seconds  float64

	steps   []step
	heads   []int32 // the first step of each chain: of a thread, or of a request that any thread could have taken
	foreign []bool  // the chain is of what others did
	shared  []bool  // the chain is of a request that any thread could have taken
	slots   int     // how many of these can be ready or run at once, because so many threads take them
	groups  []group
	spans   []span
	began   time.Duration

	Account    *notebook.Requests // of the requests; nil: there are none
	ClosedLoop bool               // clients seem to send the next request only after the answer
}

// Spans is how many requests there are, or wakes without requests.
func (w *Work) Spans() int { return len(w.spans) }

// builder makes a Work from events.
type builder struct {
	w        *Work
	threads  map[int32]*thread
	all      []*thread // by number
	served   []served
	pool     bool            // any thread can take a request
	takers   map[int32]bool  // threads that do so
	able     int             // of them that are ready or run
	busy     []time.Duration // for how long so many were
	open     map[uint64]*request
	cycles   map[int32]*cycles
	foreign  map[uint16]*chain // by CPU
	now      time.Duration
	waits    map[int32][]external
	gaps     []float64                // seconds from an answer to the next request on its connection
	apart    []float64                // seconds from a request to the next one on its connection
	arrivals map[uint16]time.Duration // the last one on each CPU that has woken nobody yet
}

// thread is one thread while the Work is built.
type thread struct {
	number  int32
	did     []interval
	entered time.Duration // when it entered its CPU, for did
	waker   int32         // the thread that woke it, by number; none
	takes   bool          // it takes requests
	able    bool          // it is ready or runs
	since   time.Duration // when run began
	own     *chain
	at      *chain // where its next step belongs: its own chain, or that of the request that it serves
	run     int32  // the first step since it waited, took a request or answered one
	before  int32  // the one before it; none
	on      bool
	in      time.Duration // when it entered its CPU
	out     time.Duration // when it left its last one
	cpu     time.Duration // its CPU time then
	state   State         // while it is off
	wait    string        // what it waited for last, as Event.Wait has it
	woken   time.Duration // when; 0: nobody is known to
	by      int32         // the step that wakes it; none
	group   int32         // of those that are woken with it; none
	roused  int32         // the group of those that it wakes; none
	rousing time.Duration // when it woke the last of them
	arrival bool          // bytes for a service woke it
	timed   bool          // a timer, or something else outside, has woken it
	byTimer bool          // and so it was with the thread that wakes this one
	serves  *request      // the request that it works at
}

// others notes what those who are not the target did on a CPU, which takes as long in a replay.
func (b *builder) others(e *Event, at time.Duration) {
	c := b.foreign[e.CPU]
	if c == nil {
		c = b.chain()
		b.foreign[e.CPU] = c
		b.w.foreign[c.number] = true
	}
	took := time.Duration(e.Value)
	b.add(c, step{by: none, from: max(0, at-took), work: min(took, at)})
}

// chain is steps one after another.
type chain struct {
	number int32
	last   int32 // its last step; none
}

// Build makes a Work from the events of a timeline that began at a time. They are in the order in which they happened; their times, which are
// of two clocks, may not be.
func Build(events []Event, began time.Duration) *Work {
	b := build(events, began)
	b.timers()
	b.spans()
	b.w.Account = b.accounts()
	b.w.slots = b.slots()
	b.w.ClosedLoop = b.closedLoop()
	return b.w
}

// build follows all events.
func build(events []Event, began time.Duration) *builder {
	b := &builder{w: &Work{began: began}, threads: map[int32]*thread{}, open: map[uint64]*request{}, cycles: map[int32]*cycles{}, foreign: map[uint16]*chain{}, arrivals: map[uint16]time.Duration{}, waits: map[int32][]external{}}
	b.takers, b.pool = pooled(events)
	for i := range events {
		b.event(&events[i])
	}
	if len(events) > 0 {
		b.w.Seconds = (events[len(events)-1].At - began).Seconds()
	}
	for _, r := range b.open {
		b.finish(r)
	}
	for _, t := range b.all {
		if t.on {
			t.note(t.entered, b.now, ran, none)
		}
	}
	return b
}

func (b *builder) thread(id int32) *thread {
	t := b.threads[id]
	if t == nil {
		t = &thread{number: int32(len(b.all)), own: b.chain(), takes: b.takers[id], waker: none, by: none, group: none, roused: none}
		t.at = t.own
		b.threads[id] = t
		b.all = append(b.all, t)
	}
	return t
}

func (b *builder) chain() *chain {
	b.w.heads = append(b.w.heads, none)
	b.w.foreign, b.w.shared = append(b.w.foreign, false), append(b.w.shared, false)
	return &chain{number: int32(len(b.w.heads) - 1), last: none}
}

func (b *builder) event(e *Event) {
	at := max(b.now, e.At-b.w.began)
	for len(b.busy) <= b.able {
		b.busy = append(b.busy, 0)
	}
	b.busy[b.able] += at - b.now
	b.now = at
	switch e.Kind {
	case Enters:
		b.enters(b.thread(e.Thread), e, at)
	case Leaves:
		b.leaves(b.thread(e.Thread), e, at)
	case Wakes:
		b.wakes(e, at)
	case Arrives:
		b.arrives(e, at)
	case Others:
		b.others(e, at)
	case Takes, Sends:
		t := b.thread(e.Thread)
		b.runs(t, at)
		b.transfers(t, e, at)
	}
}

// add puts a new step at the end of a chain.
func (b *builder) add(c *chain, s step) int32 {
	s.chain, s.next, s.wakes, s.group = c.number, none, none, none
	n := int32(len(b.w.steps))
	b.w.steps = append(b.w.steps, s)
	b.link(c, n)
	return n
}

// anew begins a new step of a thread that has waited, or that turns to another request than the last one, or to none.
func (b *builder) anew(t *thread, s step) int32 {
	t.before, t.since = t.at.last, b.now
	t.run = b.add(t.at, s)
	return t.run
}

// link puts a step at the end of a chain.
func (b *builder) link(c *chain, n int32) {
	if c.last == none {
		b.w.heads[c.number] = n
	} else {
		b.w.steps[c.last].next = n
	}
	c.last = n
}

// stop ends a running thread's step for now, and returns it.
func (b *builder) stop(t *thread, at time.Duration) int32 {
	b.w.steps[t.at.last].work += max(0, at-t.in)
	t.in = max(t.in, at)
	return t.at.last
}

func (b *builder) enters(t *thread, e *Event, at time.Duration) {
	woken := t.woken
	if woken == 0 {
		woken = at
	}
	switch e.State {
	case Throttled:
		t.note(t.out, at, held, none)
	case Ready:
		t.note(t.out, at, stood, none)
	default:
		t.note(t.out, woken, waitedFor(e.Wait), t.waker)
		t.note(woken, at, stood, none)
		t.wait = e.Wait
	}
	t.entered, t.waker = at, none
	b.changes(t, 1)
	switch {
	case t.at.last == none:
		b.anew(t, step{by: none, from: at})
	case e.State != Throttled && e.State != Ready:
		b.woke(t, e, woken)
	}
	t.on, t.in, t.by, t.woken, t.arrival, t.state = true, at, none, 0, false, Unknown
}

// woke begins the step of a thread that waited and was woken.
func (b *builder) woke(t *thread, e *Event, woken time.Duration) {
	last := t.at.last
	if t.arrival { // it waited for the next request
		t.serves = nil
	}
	if t.serves == nil {
		t.at = t.own
	}
	s := step{by: none}
	outside := t.by == none
	switch {
	case !outside && t.serves != nil && b.pool && t.byTimer:
		// A thread of the runtime that looks after the others now and then. It found that this one could go on.
	case !outside:
		s.by = t.by
	case e.Wait == notebook.WallBlock || e.Wait == notebook.WallMemory || t.serves != nil:
		s.pause = max(0, woken-t.out)
	default:
		s.from = woken
	}
	n := b.anew(t, s)
	if s.by != none {
		b.w.steps[s.by].wakes = n
		if g := t.group; g != none {
			b.w.steps[n].group = g
			b.w.groups[g].steps = append(b.w.groups[g].steps, n)
		}
	}
	t.timed = s.from > 0 && !t.arrival
	if t.timed {
		b.waits[t.own.number] = append(b.waits[t.own.number], external{n, t.out, woken})
	}
	if s.from > 0 && (e.Wait == notebook.WallSleep || e.Wait == notebook.WallNetwork) {
		b.cycle(t, last, n, woken)
	}
}

func (b *builder) leaves(t *thread, e *Event, at time.Duration) {
	cpu := time.Duration(e.Value)
	switch {
	case t.at.last == none: // it ran when the timeline began, or when it was found
		t.in = at - min(at, cpu)
		t.entered = t.in
		b.anew(t, step{by: none, from: t.in})
	case !t.on: // some kernels do not show every switch, but count each thread's time
		b.enters(t, t.unseen(), max(t.out, at-max(0, cpu-t.cpu)))
	}
	b.w.steps[t.at.last].work += max(0, at-t.in)
	t.note(t.entered, at, ran, none)
	t.cpu = cpu
	t.on, t.out, t.state = false, at, e.State
	if e.State == Waits || e.State == Ended {
		b.changes(t, -1)
	}
	t.roused = none
	t.woken, t.by, t.waker = 0, none, none // a wake before it left the CPU did not count
}

// runs sees to it that a thread is on a CPU, because it does something. Some kernels do not show every switch.
func (b *builder) runs(t *thread, at time.Duration) {
	if !t.on {
		b.enters(t, t.unseen(), at)
	}
}

// unseen is a switch to the thread that the kernel did not show. What the thread waited for is not known then: it is taken to be what it waited for
// before, because a thread of a loop waits for the same again and again.
func (t *thread) unseen() *Event { return &Event{Kind: Enters, State: t.state, Wait: t.wait} }

func (b *builder) wakes(e *Event, at time.Duration) {
	t := b.thread(e.Thread)
	b.changes(t, 1)
	t.woken, t.by, t.waker = at, none, none
	came, is := b.arrivals[e.CPU]
	t.arrival = is && e.Value == 0 && at-came < soon
	delete(b.arrivals, e.CPU) // the next one is woken by something else
	if e.Value == 0 || t.arrival {
		return
	}
	if by := b.thread(int32(e.Value)); by != t {
		b.runs(by, at)
		t.byTimer, t.waker = by.timed, by.number
		t.by = b.stop(by, at)
		b.add(by.at, step{by: none})
		if by.roused == none || at-by.rousing > atOnce {
			by.roused = int32(len(b.w.groups))
			b.w.groups = append(b.w.groups, group{first: t.by})
		}
		by.rousing = at
		if t.group = none; !t.on && t.at.last < b.w.groups[by.roused].first { // it waited already
			t.group = by.roused
		}
	}
}

// soon is in which time bytes that come wake a thread.
const soon = 100 * time.Microsecond

// atOnce is in which time a thread that wakes several wakes the next one.
const atOnce = 50 * time.Microsecond
