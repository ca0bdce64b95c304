//go:build linux

// Package observe looks at something that runs on the host, whoever started it, and changes nothing of it. It says what its time went on
// and for whom it waited, and which facts of its platform matter.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/live"
	"tare/lab/proc"
	"tare/notebook"
)

// Options say how to observe.
type Options struct {
	For      time.Duration
	Counters bool                     // only what the kernel counts anyway, which costs the target less
	Calls    bool                     // also count system calls by kind, which costs the target more
	If       []Change                 // changes to predict besides the usual ones
	Began    func()                   // called when the observation has begun; may be nil
	Say      func(done time.Duration) // called after each part of the time; may be nil
}

// ErrEnded is in the error of a target that has ended before anything was seen of it.
var ErrEnded = errors.New("it has just ended")

// parts is into how many parts the time is divided: the intervals are made of their differences.
const parts = 20

// least is the shortest time to observe. In less, a CPU quota has too few periods.
const least = time.Second

// most is the longest: the programs' clock begins again after less than five hours.
const most = 4 * time.Hour

// mostThreads bounds the threads of a target, as the programs do (bpf/trace.h).
const mostThreads = 16000

// mostAble is how many threads can be ready at once in the account (bpf/scheduler.c).
const mostAble = 1023

// watch is one observation under way.
type watch struct {
	target  *live.Target
	options Options
	seen    map[int]string // threads that are observed, with their processes' names
	pids    []int          // the target's processes at the last look
	cpus    []int          // that it may use
	o       *notebook.Observation
	of      account
	used    cpuTimes
	guests  []live.Guest // that run on the host, for their names

	memory, lastMemory *cgroup.Memory // when the observation began, and at the last look
	quotas             []limited
	off                float64 // see mostOff: of the part that was off most
}

// account is a way to see what the target's time goes on.
type account interface {
	add(threads []engine.Thread) error                                // further threads of the target
	slice() (wall map[string]float64, seconds float64, err error)     // since the beginning
	end(o *notebook.Observation, names func(thread int) labels) error // completes the observation
	whatIf(ctx context.Context, o *notebook.Observation) error        // predicts from it, when the target is no longer traced
	close() error
}

// labels are the names of a thread.
type labels struct{ process, thread string }

// Watch observes the target until the time is over, it has ended, or ctx is done, and returns what it saw until then.
func Watch(ctx context.Context, target *live.Target, options Options) (_ *notebook.Observation, err error) {
	if options.For < least {
		return nil, fmt.Errorf("--for %v: must be at least %v", options.For, least)
	}
	if options.For > most {
		return nil, fmt.Errorf("--for %v: must be at most %v; --watch observes again and again", options.For, most)
	}
	w := &watch{target: target, options: options}
	w.o = &notebook.Observation{Format: notebook.ObservationFormat, Figures: map[string]float64{}, Threads: []notebook.ObservedThreads{},
		Ahead: []notebook.ObservedAhead{}, Runtimes: []notebook.ObservedRuntime{}, Said: []*notebook.Message{}}
	w.o.Target = notebook.ObservedTarget{Name: target.Name, Kind: target.Kind, ID: target.ID, Cgroup: target.Dir}
	if _, err := w.all(); err != nil {
		return nil, err
	}
	if target.Dir != "" && !slices.Contains(w.pids, target.PID) {
		target.PID = w.pids[0]
	}
	if err := w.limits(); err != nil {
		return nil, err
	}
	if w.guests, _, err = live.Now(ctx); err != nil {
		return nil, err
	}
	w.facts(ctx)
	if w.of, err = w.begin(); err != nil {
		return nil, err
	}
	w.o.At = time.Now() // loading the programs takes many seconds in an emulated VM
	defer func() { err = errors.Join(err, w.of.close()) }()
	if err := w.baseline(); err != nil {
		return nil, err
	}
	if options.Began != nil {
		options.Began()
	}
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	if err := w.of.end(w.o, w.names); err != nil {
		return nil, err
	}
	w.finish()
	if err := w.of.whatIf(ctx, w.o); err != nil {
		return nil, err
	}
	return w.o, nil
}

// begin begins with the account that the host supports: from events, unless only counters are wanted or the host has no more.
func (w *watch) begin() (account, error) {
	if w.options.Counters {
		return w.counting()
	}
	a, why, err := w.tracing()
	if err != nil || a != nil {
		return a, err
	}
	w.note(notebook.Say("observed-by-counters", "why", why))
	return w.counting()
}

// all are the target's threads now, from when on its CPU times count.
func (w *watch) all() ([]engine.Thread, error) {
	w.seen = map[int]string{}
	threads, err := w.fresh()
	if err == nil && len(threads) == 0 {
		err = fmt.Errorf("%s: %w", w.target.Name, ErrEnded)
	}
	if err != nil {
		return nil, err
	}
	return threads, w.used.begin(w.target, w.pids)
}

// note adds what could not be seen, once.
func (w *watch) note(m *notebook.Message) {
	if !slices.ContainsFunc(w.o.Said, m.Equal) {
		w.o.Said = append(w.o.Said, m)
	}
}

// fresh looks for the target's processes, and returns those of their threads that were not seen before.
func (w *watch) fresh() (threads []engine.Thread, err error) {
	if w.pids, err = w.target.Processes(); err != nil {
		return nil, err
	}
	now, all := map[int]string{}, 0
	for _, pid := range w.pids {
		tids, err := proc.Threads(pid)
		if err != nil {
			return nil, err
		}
		name := proc.Name(pid)
		for _, tid := range tids {
			if all++; all > mostThreads {
				w.note(notebook.Say("too-many-threads", "most", mostThreads))
				break
			}
			now[tid] = name
			if _, known := w.seen[tid]; !known {
				threads = append(threads, engine.Thread{ID: tid, Role: notebook.RoleWork})
			}
		}
	}
	w.seen = now // a number that is free again may become another thread's
	if w.target.Kind == notebook.TargetVM && len(w.pids) > 0 {
		roles, err := vmThreads(w.pids)
		if err != nil {
			return nil, err
		}
		for i, th := range threads {
			if role := roles[th.ID]; role != "" {
				threads[i].Role = role
			}
		}
	}
	return threads, nil
}

// look lets the time pass in parts, and notes the account at the end of each. It ends early with ctx or with the target.
func (w *watch) look(ctx context.Context) error {
	began := time.Now()
	before, at := map[string]float64{}, 0.0
	for n := range parts {
		alive, err := w.await(ctx, began.Add(w.options.For*time.Duration(n+1)/parts))
		if err != nil {
			return err
		}
		if err := w.used.look(w.pids); err != nil {
			return err
		}
		w.recount()
		wall, seconds, err := w.of.slice()
		if err != nil {
			return err
		}
		if slice := seconds - at; slice > 0 {
			part, off := between(before, wall, slice)
			w.o.Slices = append(w.o.Slices, notebook.ObservedSlice{Seconds: slice, Wall: part})
			if off > mostOff && off*slice > leastOff {
				w.off = max(w.off, off)
			}
		}
		before, at = wall, seconds
		if w.options.Say != nil {
			w.options.Say(time.Since(began))
		}
		if !alive {
			w.o.Ended = true
			return nil
		}
		threads, err := w.fresh()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			w.o.Cut = true
			return nil
		}
		if len(threads) > 0 {
			if err := w.of.add(threads); err != nil {
				w.note(notebook.Say("threads-unseen", "why", err))
			}
		}
	}
	return nil
}

// What a part of the account may be off, as a share of its seconds and in seconds, before a note says so.
const (
	mostOff  = 0.02
	leastOff = 0.002
)

// between is what an account grew by. A program of the kernel corrects its account now and then, so a part may fall by a little: then it did
// not grow, and the others are made to add up to the seconds that passed. off is by which share of the seconds they did not.
func between(before, after map[string]float64, seconds float64) (wall map[string]float64, off float64) {
	wall = map[string]float64{}
	sum := 0.0
	for key, v := range after {
		if grew := v - before[key]; grew > 0 {
			wall[key] = grew
			sum += grew
		}
	}
	if sum == 0 {
		return map[string]float64{notebook.WallOther: seconds}, 1
	}
	for key := range wall {
		wall[key] *= seconds / sum
	}
	return wall, math.Abs(sum-seconds) / seconds
}

// await waits until the time has come, and reports whether the target still runs. It returns early if it has ended, or if ctx is done.
func (w *watch) await(ctx context.Context, until time.Time) (alive bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		pids, err := w.target.Processes()
		if err != nil || len(pids) == 0 {
			return false, err
		}
		fd, err := unix.PidfdOpen(pids[0], 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("process %d: pidfd_open: %w", pids[0], err)
		}
		err = proc.AwaitEnd(ctx, fd)
		if cerr := unix.Close(fd); cerr != nil {
			return false, cerr
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			pids, err := w.target.Processes()
			return len(pids) > 0, err
		}
		if err != nil {
			return false, err
		}
		select { // it has ended; the kernel may list it a little longer
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// pause is how long the kernel is given to forget a process that has ended.
const pause = 5 * time.Millisecond

// names are the names of a thread; empty if it has ended.
func (w *watch) names(thread int) labels {
	return labels{process: w.seen[thread], thread: proc.Name(thread)}
}

// finish completes what is known of the whole time.
func (w *watch) finish() {
	for _, s := range w.o.Slices {
		w.o.Seconds += s.Seconds
	}
	w.o.Target.Processes, w.o.Target.Threads = len(w.pids), len(w.seen)
	w.tightest()
	if w.off > 0 {
		w.note(notebook.Say("account-off", "share", w.off))
	}
	if len(w.pids) > 0 {
		paused, err := cgroup.Frozen(w.pids[0])
		w.o.Paused = err == nil && paused // it may have ended
	}
	for _, pid := range w.pids[:min(len(w.pids), mostAsked)] {
		if stopped, err := proc.Stopped(pid); err == nil && stopped {
			w.o.Stopped++
		}
	}
	if now := w.lastMemory; now != nil {
		w.o.Memory = &notebook.ObservedMemory{Cgroup: now.Dir, Limit: now.Limit, Used: now.Used, Files: now.Files,
			AtLimit: now.AtLimit - w.memory.AtLimit, Refaults: -1, Killed: max(0, now.Killed-w.memory.Killed)}
		if now.Refaults >= 0 && w.memory.Refaults >= 0 {
			w.o.Memory.Refaults = now.Refaults - w.memory.Refaults
		}
	}
	if len(w.seen) > mostAble && w.o.Tier == notebook.TierEvents {
		w.note(notebook.Say("threads-beyond-account", "threads", len(w.seen), "most", mostAble))
	}
}

// gathered are threads with the same names, and what they did.
type gathered map[labels]*notebook.ObservedThreads

// mostGroups is how many groups of threads are told apart; the others are added up.
const mostGroups = 40

func (g gathered) add(names labels, threads int, wall map[string]float64) {
	names.thread = unnumbered(names.thread)
	to := g[names]
	if to == nil {
		to = &notebook.ObservedThreads{Process: names.process, Thread: names.thread, Wall: map[string]float64{}}
		g[names] = to
	}
	to.Threads += threads
	for key, seconds := range wall {
		if seconds > 0 {
			to.Wall[key] += seconds
		}
	}
}

// list has those first that wanted a core for the longest time. Groups beyond mostGroups are one, without names.
func (g gathered) list() []notebook.ObservedThreads {
	did := func(t *notebook.ObservedThreads) (sum float64) {
		for _, key := range []string{notebook.WallUser, notebook.WallStolen, notebook.WallThrottled, notebook.WallCore, notebook.WallMemory, notebook.WallBlock} {
			sum += t.Wall[key]
		}
		return sum
	}
	all := slices.SortedFunc(maps.Values(g), func(a, b *notebook.ObservedThreads) int {
		return cmp.Or(cmp.Compare(did(b), did(a)), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Thread, b.Thread))
	})
	list := []notebook.ObservedThreads{}
	for i, t := range all {
		if i < mostGroups {
			list = append(list, *t)
			continue
		}
		if i == mostGroups {
			list = append(list, notebook.ObservedThreads{Wall: map[string]float64{}})
		}
		rest := &list[mostGroups]
		rest.Threads += t.Threads
		for key, seconds := range t.Wall {
			rest.Wall[key] += seconds
		}
	}
	return list
}

// unnumbered puts * in place of the number at the end of a thread's name, so that the threads of a pool have one name.
func unnumbered(name string) string {
	end := len(name)
	for end > 0 && name[end-1] >= '0' && name[end-1] <= '9' {
		end--
	}
	if end == len(name) || end == 0 {
		return name
	}
	return name[:end] + "*"
}
