//go:build linux

package trace

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/lab/engine"
)

// ThreadTime is what a thread did in a trial, or threads that have ended, in seconds. The seconds add up to the time for which they
// existed in it.
type ThreadTime struct {
	ID              int    // of a thread that exists; 0: of all of these names that have ended
	Process, Thread string // their names, of threads that have ended
	Threads         int

	Ran       float64 // on a core, by the scheduler's own count
	Stolen    float64 // on a core that an interrupt or the machine below this one used
	Core      float64 // ready, without a core
	Throttled float64 // ready, and the CPU quota was spent
	Waited    map[string]float64
}

// Ahead is who ran on a core while a thread that was watched was ready to run there.
type Ahead struct {
	Group   uint64 // the inode of its cgroup: for the CPU controller in version 1, of version 2's hierarchy otherwise; 0: none of its own
	Process int    // or Nobody, Unknown, Itself
	Seconds float64
	Count   int64
}

// Watched is what a Trace whose target says Each saw in addition.
type Watched struct {
	Threads []ThreadTime
	Ahead   []Ahead // the longest first
}

// each and the following mirror the structs of these names in bpf/trace.h and bpf/watched.c.
type each struct {
	Took [kinds]uint64
	Base uint64
}

type past struct {
	Did           each
	Exec, Threads uint64
}

type someone struct {
	Group   uint64
	Process int32
	_       uint32
}

// seat is what is read here of the struct of that name in bpf/trace.h.
type seat struct {
	Since, Ran          uint64
	ID                  uint32
	Role, State, Reason uint8
	Number              uint16
}

// reserved is the id of a seat that is being made ready.
const reserved = math.MaxUint32

// Processes of Ahead that are none.
const (
	Nobody  = 0  // the core was idle, and waking up
	Unknown = -1 // not known
	Itself  = -2 // another thread of the target
)

// States of a seat (bpf/trace.h).
const (
	stateUnknown = iota
	stateNew
	stateRuns
	stateWaits
	stateReady
	stateThrottled
)

// row is the row of each.Took that the time in a seat's present state will be added to; -1: none.
func (s seat) row() int {
	switch s.State {
	case stateNew:
		return kindRunQueue
	case stateRuns:
		return kindOn
	case stateReady:
		return kindPreempted
	case stateThrottled:
		return kindThrottled
	case stateWaits:
		if int(s.Reason) < reasonCount {
			return kindOff + int(s.Reason)
		}
	}
	return -1
}

// Watches reports whether each switch of the target's threads is seen, which what Watched and SoFar return is made of.
func (t *Trace) Watches() bool { return t.running && t.each() }

// each reports whether the programs look at each thread.
func (t *Trace) each() bool { return t.target.Each && t.kit.watch && t.kit.events() }

// Add makes further threads part of the target, such as those of a process that has joined its cgroup.
func (t *Trace) Add(threads []engine.Thread) (err error) {
	if !t.running {
		return nil
	}
	seeds := t.kit.coll.Maps["seeds"]
	if err := remove(seeds); err != nil { // a number that is free again may be another thread's
		return err
	}
	for _, th := range threads {
		if err := seeds.Put(uint32(th.ID), t.target.seed(role(th.Role))); err != nil {
			return fmt.Errorf("the target has too many threads: %w", err)
		}
	}
	if err := t.kit.iterate("seed"); err != nil {
		return err
	}
	return t.find()
}

// find determines the state of threads that have not been switched.
func (t *Trace) find() error {
	if !t.Watches() {
		return nil
	}
	return t.kit.iterate("found")
}

// room gives those who are ahead and are not known a place.
func (t *Trace) room() error {
	if !t.each() {
		return nil
	}
	return t.kit.coll.Maps["ahead"].Put(someone{Process: Unknown}, waited{})
}

// release detaches the programs, so that what they have gathered stays as it is.
func (t *Trace) release() error {
	var errs []error
	t.links = slices.DeleteFunc(t.links, func(c io.Closer) bool {
		l, is := c.(link.Link)
		if is {
			errs = append(errs, l.Close())
		}
		return is
	})
	return errors.Join(errs...)
}

// SoFar is the account from Begin until now, in seconds by notebook.Wall…, and how many seconds that is. All running time is in
// notebook.WallUser.
func (t *Trace) SoFar() (wall map[string]float64, elapsed float64, err error) {
	s, l, state, err := t.snapshot()
	if err != nil {
		return nil, 0, err
	}
	reason, err := t.latest()
	if err != nil {
		return nil, 0, err
	}
	s.last(l, state, reason)
	s.settle()
	return s.wall(), float64(l.End-l.Begin) * nano, nil
}

// attempts is how often a snapshot is tried that no change of the target's state divides.
const attempts = 10

// snapshot reads the sums, and the state since the last change of which they do not know.
func (t *Trace) snapshot() (s *span, l look, state uint64, err error) {
	for range attempts {
		var before, after [8]uint64
		now := clock()
		if err := errors.Join(t.kit.get("state", &before), t.kit.get("look", &l)); err != nil {
			return nil, l, 0, err
		}
		var all []sums
		if err := t.kit.coll.Maps["all"].Lookup(uint32(0), &all); err != nil {
			return nil, l, 0, fmt.Errorf("reading the programs' sums: %w", err)
		}
		s = &span{}
		for i := range all {
			s.add(&all[i].Span[(l.Spans-1)%spans])
		}
		if err := t.kit.get("state", &after); err != nil {
			return nil, l, 0, err
		}
		if l.Open != 0 {
			l.End = now
		}
		if state = before[0]; state == after[0] {
			break
		}
	}
	return s, l, state, nil
}

// latest is what the followed thread waits for that began to wait last.
func (t *Trace) latest() (reason int, err error) {
	if !t.Watches() {
		return forOther, nil
	}
	all, err := t.seats()
	if err != nil {
		return forOther, err
	}
	follow, since := followed(t.target.Threads), uint64(0)
	for _, s := range all {
		if s.State == stateWaits && s.Since >= since && follow>>s.Role&1 == 1 && int(s.Reason) < reasonCount {
			reason, since = int(s.Reason), s.Since
		}
	}
	return reason, nil
}

// seats are those that threads have.
func (t *Trace) seats() (taken []seat, err error) {
	all := make([]byte, seats*seatSize)
	if _, err := t.kit.memory.ReadAt(all, int64(t.kit.at["seats"])); err != nil {
		return nil, fmt.Errorf("the programs' variable seats: %w", err)
	}
	for b := range slices.Chunk(all, seatSize) {
		if s := readSeat(b); s.ID != 0 && s.ID != reserved && s.Role < roles {
			taken = append(taken, s)
		}
	}
	return taken, nil
}

// readSeat decodes a seat.
func readSeat(b []byte) seat {
	n := binary.NativeEndian
	return seat{Since: n.Uint64(b), Ran: n.Uint64(b[8:]), ID: n.Uint32(b[40:]), Role: b[52], State: b[53], Reason: b[54], Number: n.Uint16(b[60:])}
}

// Watched reads it, between Begin and Stop.
func (t *Trace) Watched() (*Watched, error) {
	now := clock()
	var l look
	did := make([]each, seats)
	if err := errors.Join(t.kit.get("look", &l), t.kit.get("eaches", did)); err != nil {
		return nil, err
	}
	taken, err := t.seats()
	if err != nil {
		return nil, err
	}
	if l.Open != 0 {
		l.End = now
	}
	w := &Watched{}
	for _, s := range taken {
		e := did[int(s.Number)%seats]
		th := e.time(s.Ran - e.Base)
		lasts := float64(max(0, int64(l.End)-int64(max(s.Since, l.Begin)))) * nano
		th.add(s.row(), lasts)
		th.ID, th.Threads = int(s.ID), 1
		w.Threads = append(w.Threads, th)
	}
	var names [2][16]byte
	var p past
	ended := t.kit.coll.Maps["ended"].Iterate()
	for ended.Next(&names, &p) {
		th := p.Did.time(p.Exec)
		th.Process, th.Thread, th.Threads = name(names[0][:]), name(names[1][:]), int(p.Threads)
		w.Threads = append(w.Threads, th)
	}
	if err := ended.Err(); err != nil {
		return nil, fmt.Errorf("reading what ended threads did: %w", err)
	}
	w.Ahead, err = aheadOf(t.kit.coll.Maps["ahead"])
	return w, err
}

func aheadOf(m *ebpf.Map) (all []Ahead, err error) {
	var key someone
	var n waited
	it := m.Iterate()
	for it.Next(&key, &n) {
		if n.NS == 0 {
			continue
		}
		all = append(all, Ahead{Group: key.Group, Process: int(key.Process), Seconds: float64(n.NS) * nano, Count: int64(n.Count)})
	}
	slices.SortFunc(all, func(a, b Ahead) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Process, b.Process))
	})
	return all, it.Err()
}

// name is a name of the kernel's, which ends with a zero byte.
func name(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// time is what was gathered in seconds, up to when the thread last left its state. Until it last left a core, it ran for exec ns as the
// scheduler counts it, which leaves out the time of interrupts and of the machine below.
func (e each) time(exec uint64) ThreadTime {
	s := func(kind int) float64 { return float64(e.Took[kind]) * nano }
	on := s(kindOn)
	th := ThreadTime{Core: s(kindRunQueue) + s(kindPreempted), Throttled: s(kindThrottled), Waited: map[string]float64{}}
	th.Ran = math.Min(on, float64(exec)*nano)
	th.Stolen = on - th.Ran
	for r, of := range waits {
		if n := s(kindOff + r); n > 0 {
			th.Waited[of] = n
		}
	}
	return th
}

// add adds a time in the state of a row.
func (t *ThreadTime) add(row int, seconds float64) {
	switch {
	case row == kindOn:
		t.Ran += seconds
	case row == kindRunQueue || row == kindPreempted:
		t.Core += seconds
	case row == kindThrottled:
		t.Throttled += seconds
	case row >= kindOff && row-kindOff < reasonCount:
		t.Waited[waits[row-kindOff]] += seconds
	}
}

// Cost is what the programs themselves took.
type Cost struct {
	Seconds float64 // of CPU time, added over all CPUs
	Runs    int64
	Of      time.Duration // how long that was counted
}

// Counting counts what the programs take from now on. The kernel then reads two clocks for each run of a program, which costs as much
// again, so it should be counted for a part of the time only.
func (t *Trace) Counting() (end func() (Cost, error), err error) {
	if !t.running {
		return nil, errors.New("no program is attached")
	}
	took := func() (c Cost, err error) {
		for _, p := range t.kit.coll.Programs {
			s, err := p.Stats()
			if err != nil {
				return c, fmt.Errorf("what a program took: %w", err)
			}
			c.Seconds += s.Runtime.Seconds()
			c.Runs += int64(s.RunCount)
		}
		return c, nil
	}
	counter, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("the kernel does not count what programs take: %w", err)
	}
	before, err := took()
	if err != nil {
		return nil, errors.Join(err, counter.Close())
	}
	since := time.Now()
	return func() (Cost, error) {
		after, err := took()
		after.Seconds, after.Runs, after.Of = after.Seconds-before.Seconds, after.Runs-before.Runs, time.Since(since)
		return after, errors.Join(err, counter.Close())
	}, nil
}
