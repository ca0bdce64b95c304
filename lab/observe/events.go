//go:build linux

package observe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/live"
	"tare/lab/proc"
	"tare/lab/trace"
	"tare/notebook"
)

// events is the account from every switch of the target's threads.
type events struct {
	w     *watch
	kit   *trace.Kit
	trace *trace.Trace
	ended bool

	slices     int
	count      func() (trace.Cost, error) // what the programs take, while it is counted
	ranAtCount float64
	at         string            // the hierarchy by which the kernel schedules
	names      map[uint64]string // of its cgroups, by inode
	own        map[int]bool      // processes that belonged to the target

	timeline timeline // for a replay
	divided  divided
}

// tracers are those whose figures an observation has.
var tracers = []string{notebook.TracerScheduler, notebook.TracerMemory, notebook.TracerIO}

// countedPart is the part of the time, by its number, in which the programs' own cost is counted.
const countedPart = parts / 2

// tracing begins an account from events. why says why the host has none.
func (w *watch) tracing() (_ account, why string, err error) {
	of := tracers
	if w.options.Calls {
		of = append(slices.Clone(of), notebook.TracerCalls)
	}
	kit, err := trace.OpenToWatch(of)
	if err != nil {
		return nil, "", err
	}
	for _, of := range []string{notebook.TracerScheduler, trace.Watching} {
		if why := kit.Missing()[of]; why != "" {
			kit.Close()
			return nil, why, nil
		}
	}
	if why := kit.Missing()[notebook.TracerCalls]; why != "" && w.options.Calls {
		kit.Close()
		return nil, why, nil
	}
	if why := kit.Missing()[trace.Refaulting]; why != "" {
		w.note(notebook.Say("refaults-unseen", "why", why))
	}
	e := &events{w: w, kit: kit, own: map[int]bool{}}
	h, err := cgroup.Scheduled()
	if e.at = h.At; err == nil {
		e.names, err = cgroup.Below()
	}
	if err != nil {
		w.note(notebook.Say("cgroups-unread", "why", err))
	}
	threads, err := w.all()
	if err != nil {
		kit.Close()
		return nil, "", err
	}
	e.trace = kit.Attach(trace.Target{Threads: threads, PID: w.target.PID, Cores: float64(len(w.cpus)), CPUs: w.cpus, Word: true, Each: true})
	if err := e.serves(); err != nil {
		w.note(notebook.Say("requests-unseen", "why", err))
	}
	e.trace.Begin()
	e.timeline.began = trace.Clock()
	if w.target.Kind == notebook.TargetVM {
		e.timeline.full = true // see whatIf
		if err := e.trace.EndTimeline(); err != nil {
			return nil, "", errors.Join(err, e.close())
		}
	}
	if !e.trace.Watches() {
		p, err := e.trace.Stop()
		kit.Close()
		if err != nil {
			return nil, "", err
		}
		if m := p.Missing[notebook.TracerScheduler]; m != nil {
			return nil, m.Text(), nil
		}
		return nil, "the programs were not attached", nil
	}
	w.o.Tier = notebook.TierEvents
	return e, "", nil
}

// serves lets the requests be seen that come to the ports on which the target listens. The error says why they cannot be.
func (e *events) serves() error {
	namespace, ports, err := proc.Listening(e.w.pids)
	if err != nil {
		return err
	}
	if why := e.kit.Missing()[trace.Answering]; why != "" && len(ports) > 0 {
		return errors.New(why)
	}
	return e.trace.Serves(namespace, ports)
}

func (e *events) add(threads []engine.Thread) error { return e.trace.Add(threads) }

// slice adds to the programs' account what each thread's own account says of interrupts and of the machine below.
func (e *events) slice() (map[string]float64, float64, error) {
	for _, pid := range e.w.pids {
		e.own[pid] = true
	}
	wall, seconds, err := e.trace.SoFar()
	if err != nil {
		return nil, 0, err
	}
	seen, err := e.trace.Watched()
	if err != nil {
		return nil, 0, err
	}
	ran, stolen := 0.0, 0.0
	for _, th := range seen.Threads {
		ran, stolen = ran+th.Ran, stolen+th.Stolen
	}
	e.divided.add(wall[notebook.WallUser], ran, stolen, e.w.used.split)
	maps.Copy(wall, e.divided.parts)
	if err := e.counting(ran + stolen); err != nil {
		e.w.note(notebook.Say("cost-uncounted", "why", err))
	}
	e.slices++
	return wall, seconds, e.read()
}

// divided is the running time since the beginning by its parts. Each part of the time is divided by itself, because a part that shrinks from
// one look to the next would make the account wrong.
type divided struct {
	running, ran, stolen float64 // at the last look; the last two are sums over threads
	parts                map[string]float64
}

// add divides what came since the last look.
func (d *divided) add(running, ran, stolen float64, split func(float64) (user, system float64)) {
	if d.parts == nil {
		d.parts = map[string]float64{}
	}
	more, taken := running-d.running, 0.0
	if took := stolen - d.stolen; took > 0 {
		taken = more * took / (took + max(0, ran-d.ran))
	}
	user, system := split(more - taken)
	d.parts[notebook.WallUser] += user
	d.parts[notebook.WallSystem] += system
	d.parts[notebook.WallStolen] += taken
	d.running, d.ran, d.stolen = running, ran, stolen
}

// counting counts what the programs take in one part of the time.
func (e *events) counting(ran float64) (err error) {
	switch {
	case e.slices == countedPart-1:
		e.ranAtCount = ran
		e.count, err = e.trace.Counting()
	case e.count != nil:
		c, cerr := e.count()
		if e.count, err = nil, cerr; err != nil {
			return err
		}
		e.w.o.Cost = &notebook.ObservedCost{Seconds: c.Seconds, Runs: c.Runs, Of: c.Of.Seconds(), OfRunning: ran - e.ranAtCount}
	}
	return err
}

func (e *events) end(o *notebook.Observation, names func(int) labels) error {
	e.trace.End()
	if err := e.read(); err != nil {
		return err
	}
	seen, err := e.trace.Watched()
	if err != nil {
		return err
	}
	if e.count != nil { // the target ended before the part was over
		if _, err := e.count(); err != nil {
			return err
		}
		e.count = nil
	}
	e.ended = true
	p, err := e.trace.Stop()
	if err != nil {
		return err
	}
	o.Lost = p.Lost
	maps.Copy(o.Figures, p.Figures)
	o.Waits = map[string]int64{}
	for _, d := range p.Spread {
		if d.Role == notebook.RoleWork && d.What == notebook.OffCPU {
			o.Waits[d.Of] += d.N()
		}
	}
	if m := p.Missing[notebook.TracerScheduler]; m != nil {
		e.w.note(m)
	}
	all := gathered{}
	for _, th := range seen.Threads {
		of := labels{th.Process, th.Thread}
		if th.ID != 0 {
			of = names(th.ID)
		}
		wall := maps.Clone(th.Waited)
		wall[notebook.WallUser], wall[notebook.WallStolen], wall[notebook.WallCore], wall[notebook.WallThrottled] = th.Ran, th.Stolen, th.Core, th.Throttled
		all.add(of, th.Threads, wall)
	}
	o.Threads = all.list()
	e.ahead(o, seen.Ahead)
	return nil
}

func (e *events) close() error {
	var err error
	if !e.ended {
		e.trace.End()
		_, err = e.trace.Stop()
	}
	if e.count != nil {
		_, cerr := e.count()
		err = errors.Join(err, cerr)
	}
	e.kit.Close()
	return err
}

// ahead names those who had the cores for which the target waited.
func (e *events) ahead(o *notebook.Observation, all []trace.Ahead) {
	if now, err := cgroup.Below(); err == nil { // groups that are new; those that are gone keep their names
		if e.names == nil {
			e.names = map[uint64]string{}
		}
		maps.Copy(e.names, now)
	}
	sums := map[notebook.ObservedAhead]*notebook.ObservedAhead{}
	for _, a := range all {
		key := e.who(a)
		if sums[key] == nil {
			sums[key] = &notebook.ObservedAhead{Name: key.Name, Kind: key.Kind}
		}
		sums[key].Seconds += a.Seconds
		sums[key].Count += a.Count
	}
	for _, s := range sums {
		o.Ahead = append(o.Ahead, *s)
	}
	slices.SortFunc(o.Ahead, func(a, b notebook.ObservedAhead) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
	})
}

// root is the inode number of the root of a hierarchy of cgroups; its processes are in no group of their own.
const root = 1

// who is someone who had a core, without times.
func (e *events) who(a trace.Ahead) notebook.ObservedAhead {
	switch {
	case a.Process == trace.Nobody:
		return notebook.ObservedAhead{Kind: notebook.AheadNobody}
	case a.Process == trace.Unknown:
		return notebook.ObservedAhead{Kind: notebook.AheadUnknown}
	case a.Process == trace.Itself || e.own[a.Process] || a.Group > root && e.isOwn(e.names[a.Group]):
		return notebook.ObservedAhead{Kind: notebook.AheadSelf}
	case a.Group > root && e.names[a.Group] != "" && e.names[a.Group] != "/":
		return notebook.ObservedAhead{Kind: notebook.AheadGroup, Name: live.Describe(e.w.guests, e.names[a.Group])}
	}
	if a.Process == os.Getpid() {
		return notebook.ObservedAhead{Kind: notebook.AheadProcess, Name: "tare, which observes"}
	}
	name := proc.Name(a.Process)
	kind := notebook.AheadProcess
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", a.Process)); err != nil && kernelThread(a.Process) {
		kind = notebook.AheadKernel
		name = unnumbered(name)
	} else {
		name = strings.TrimSpace(fmt.Sprintf("%s %d", cmp.Or(name, "process"), a.Process))
	}
	return notebook.ObservedAhead{Kind: kind, Name: name}
}

// kernelThread reports whether a process is a thread of the kernel: it has no command line and its parent is kthreadd, or it is that.
func kernelThread(pid int) bool {
	const kthreadd = 2
	parent, err := proc.Parent(pid)
	return err == nil && (pid == kthreadd || parent == kthreadd)
}

// isOwn reports whether a cgroup is the target's or below it.
func (e *events) isOwn(below string) bool {
	own, ok := strings.CutPrefix(e.w.target.Dir, e.at)
	return ok && e.at != "" && own != "" && below != "" && (below == own || strings.HasPrefix(below, own+"/"))
}

var isVCPU = regexp.MustCompile(`^CPU [0-9]+/`)

// vmThreads are the roles of a VM's threads, by QEMU's names for them. A QEMU that does not name its threads has none.
func vmThreads(pids []int) (map[int]string, error) {
	roles := map[int]string{}
	for _, pid := range pids {
		tids, err := proc.Threads(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			roles[tid] = notebook.RoleEmulator
			if isVCPU.MatchString(proc.Name(tid)) {
				roles[tid] = notebook.RoleVCPU
			}
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(roles)), notebook.RoleVCPU) {
		return nil, nil
	}
	return roles, nil
}
