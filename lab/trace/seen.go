//go:build linux

package trace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"tare/notebook"
)

// The values are bpf/look.c's.
const (
	buckets = 40
	spans   = 2
)

const (
	kindOn = iota
	kindRunQueue
	kindPreempted
	kindThrottled
	kindOff
	kinds = kindOff + reasonCount
)

const (
	wallRun = iota
	wallCore
	wallThrottled
	wallIdle
	walls = wallIdle + reasonCount
)

const (
	countSwitches = iota
	countWaits
	countPreemptions
	countWakeups
	countMigrations
	countCache
	countNode
	countTasks
	tallies
)

// span mirrors bpf/look.c's.
type span struct {
	Wall   [walls]uint64
	Counts [roles][tallies]uint64
	Sums   [roles][kinds]uint64
	Spread [roles][kinds][buckets]uint64
}

type sums struct {
	Lost uint64
	Span [spans]span
}

func (s *span) add(o *span) {
	for i := range s.Wall {
		s.Wall[i] += o.Wall[i]
	}
	for r := range roles {
		for i := range tallies {
			s.Counts[r][i] += o.Counts[r][i]
		}
		for i := range kinds {
			s.Sums[r][i] += o.Sums[r][i]
			for b := range buckets {
				s.Spread[r][i][b] += o.Spread[r][i][b]
			}
		}
	}
}

const nano = 1e-9

// unit is that of the programs' wall, in seconds, and longest the time after which their clock of 34 bits begins anew.
const (
	unit    = 1024 * nano
	longest = 1 << 34 * 1024 * time.Nanosecond
)

// seen reads what the programs have gathered.
func (w *Watch) seen(p *notebook.Probes) error {
	k := w.kit
	var l look
	if err := k.get("look", &l); err != nil {
		return err
	}
	var all []sums
	if err := k.coll.Maps["all"].Lookup(uint32(0), &all); err != nil {
		return fmt.Errorf("reading the probes' sums: %w", err)
	}
	if l.Spans == 0 {
		return errors.New("no trial was seen: nothing that the guest's ruler created was")
	}
	var s span
	for i := range all {
		p.Lost += int64(all[i].Lost)
		s.add(&all[i].Span[(l.Spans-1)%spans])
	}
	p.Lost += int64(k.missed() - k.misses)
	if l.Spans > spans {
		return fmt.Errorf("%d trials were seen where one was expected", l.Spans-1)
	}
	if l.Open != 0 { // it outlived the trial, or was cut short
		l.End = clock()
	}
	if took := time.Duration(l.End - l.Zero); took >= longest {
		return fmt.Errorf("the trial ended %v after the look's beginning, and %v is the longest that can be followed; make its work shorter", took.Round(time.Second), longest.Round(time.Second))
	}
	if k.wants(notebook.ProbeScheduler) {
		state := [8]uint64{w.state}
		if l.Open != 0 {
			if err := k.get("state", &state); err != nil {
				return err
			}
		}
		if w.word || l.Open != 0 {
			s.last(l, state[0])
		}
		s.settle()
		w.scheduler(p, &s, l)
	}
	if l.Stacks != 0 {
		if err := w.stacks(p); err != nil {
			w.missing[notebook.ProbeStacks] = err.Error()
		}
	}
	errs := map[string]error{
		notebook.ProbeIO:         w.devices(p),
		notebook.ProbeMemory:     w.faults(p),
		notebook.ProbeAccounting: w.samples(p),
		notebook.ProbeHypervisor: w.exits(p),
	}
	for name, err := range errs {
		if err != nil {
			w.missing[name] = err.Error()
		}
	}
	return nil
}

// last charges the time from the last change until the trial's end, where no program saw that.
func (s *span) last(l look, state uint64) {
	from := max(state>>30, (l.Begin-l.Zero)>>10)
	to := (l.End - l.Zero) >> 10
	if l.End < l.Zero || to <= from {
		return
	}
	time := to - from
	runs, ready, throttled := state&1023, state>>10&1023, state>>20&1023
	able := runs + ready + throttled
	if able == 0 {
		s.Wall[wallIdle+forOther] += time
		return
	}
	run := time
	if share := min(able, uint64(l.Cores)); runs < share {
		run = time * runs / share
		core := (time - run) * ready / (ready + throttled)
		s.Wall[wallCore] += core
		s.Wall[wallThrottled] += time - run - core
	}
	s.Wall[wallRun] += run
}

// settle makes good that a repair moves time from where the program believed that it was booked. Where it was booked to running
// already, for another thread ran meanwhile, there is less than nothing there: that much was moved too often.
func (s *span) settle() {
	for i := range s.Wall {
		if i != wallRun && int64(s.Wall[i]) < 0 {
			s.Wall[wallRun] += s.Wall[i]
			s.Wall[i] = 0
		}
	}
}

// scheduler is the account, the counts and the distributions.
func (w *Watch) scheduler(p *notebook.Probes, s *span, l look) {
	p.Wall = map[string]float64{
		notebook.WallUser:      float64(s.Wall[wallRun]) * unit, // Split divides it
		notebook.WallCore:      float64(s.Wall[wallCore]) * unit,
		notebook.WallThrottled: float64(s.Wall[wallThrottled]) * unit,
	}
	for r, name := range waits {
		p.Wall[name] += float64(s.Wall[wallIdle+r]) * unit
	}
	p.Figures["elapsed_s"] = float64(l.End-l.Begin) * nano
	for r, name := range roleNames {
		c := &s.Counts[r]
		if c[countSwitches] == 0 && c[countTasks] == 0 {
			continue
		}
		prefix := ""
		if r != roleWork {
			prefix = name + "."
		}
		for i, figure := range []string{"switches", "waits", "preemptions", "wakeups", "migrations", "cache_migrations", "node_migrations", "tasks"} {
			p.Figures[prefix+figure] = float64(c[i])
		}
		p.Figures[prefix+"run_s"] = float64(s.Sums[r][kindOn]) * nano
		add := func(kind int, what, of string) {
			if d := distribution(s.Spread[r][kind][:], s.Sums[r][kind]); d != nil {
				d.Role, d.What, d.Of = name, what, of
				p.Spread = append(p.Spread, *d)
			}
		}
		add(kindOn, notebook.OnCPU, "")
		for b, n := range s.Spread[r][kindPreempted] { // it waits in the queue as well
			s.Spread[r][kindRunQueue][b] += n
		}
		s.Sums[r][kindRunQueue] += s.Sums[r][kindPreempted]
		add(kindRunQueue, notebook.RunQueue, "")
		add(kindPreempted, notebook.OffCPU, notebook.WallCore)
		add(kindThrottled, notebook.OffCPU, notebook.WallThrottled)
		for reason, of := range waits {
			add(kindOff+reason, notebook.OffCPU, of)
		}
	}
}

// distribution is nil where nothing was counted.
func distribution(counts []uint64, sum uint64) *notebook.Distribution {
	last := len(counts)
	for last > 0 && counts[last-1] == 0 {
		last--
	}
	if last == 0 {
		return nil
	}
	d := &notebook.Distribution{Unit: "s", Sum: float64(sum) * nano}
	for _, n := range counts[:last] {
		d.Counts = append(d.Counts, int64(n))
	}
	return d
}

// device and io mirror bpf/look.c's.
type device struct{ Major, Minor, Op, Role uint32 }

type blockIO struct {
	N, Bytes, NS uint64
	Spread       [buckets]uint64
}

// Requests' operations (linux/blk_types.h, REQ_OP_READ, REQ_OP_WRITE); others, flushes among them, are counted as neither.
const (
	opRead  = 0
	opWrite = 1
)

func (w *Watch) devices(p *notebook.Probes) error {
	k := w.kit
	if !k.loaded[notebook.ProbeIO] {
		return nil
	}
	var d device
	var io blockIO
	each := k.coll.Maps["devices"].Iterate()
	for each.Next(&d, &io) {
		var n, bytes, of string
		switch d.Op {
		case opRead:
			n, bytes, of = "reads", "read_bytes", "read"
		case opWrite:
			n, bytes, of = "writes", "written_bytes", "write"
		default:
			continue
		}
		name := deviceName(d.Major, d.Minor)
		p.Figures[name+"."+n] += float64(io.N)
		p.Figures[name+"."+bytes] += float64(io.Bytes)
		if s := distribution(io.Spread[:], io.NS); s != nil {
			s.Role, s.What, s.Of = roleNames[d.Role%roles], notebook.BlockIO, name+" "+of
			p.Spread = append(p.Spread, *s)
		}
	}
	return each.Err()
}

func deviceName(major, minor uint32) string {
	name := fmt.Sprintf("%d:%d", major, minor)
	if to, err := os.Readlink("/sys/dev/block/" + name); err == nil {
		return to[strings.LastIndexByte(to, '/')+1:]
	}
	return name
}

func (w *Watch) faults(p *notebook.Probes) error {
	if !w.kit.loaded[notebook.ProbeMemory] || w.missing[notebook.ProbeMemory] != "" {
		return nil
	}
	var f [3]uint64
	if err := w.kit.get("faults", &f); err != nil {
		return err
	}
	p.Figures["anonymous_faults"] = float64(f[0] * faultPeriod)
	p.Figures["file_faults"] = float64(f[1] * faultPeriod)
	return nil
}

func (w *Watch) samples(p *notebook.Probes) error {
	k := w.kit
	if !k.loaded[notebook.ProbeAccounting] || w.missing[notebook.ProbeAccounting] != "" {
		return nil
	}
	if k.symbols == nil {
		s, err := readSymbols()
		if err != nil {
			return err
		}
		k.symbols = s
	}
	var ip, n, all, kernel uint64
	by := map[string]uint64{}
	each := k.coll.Maps["places"].Iterate()
	for each.Next(&ip, &n) {
		all += n
		if ip != 0 {
			kernel += n
			by[kind(k.symbols.name(ip))] += n
		}
	}
	if err := each.Err(); err != nil {
		return err
	}
	p.Figures["samples"] = float64(all)
	p.Figures["kernel_s"] = float64(kernel) / sampleRate
	p.Figures["cgroup_s"] = float64(by["cgroup"]) / sampleRate
	p.Figures["scheduler_s"] = float64(by["scheduler"]) / sampleRate
	return nil
}

// waited mirrors bpf/look.c's.
type waited struct{ NS, Count uint64 }

func (w *Watch) exits(p *notebook.Probes) error {
	k := w.kit
	if k.kvm == nil || !k.loaded[notebook.ProbeHypervisor] {
		return nil
	}
	var reason uint32
	var e waited
	each := k.coll.Maps["exits"].Iterate()
	for each.Next(&reason, &e) {
		p.Figures["exits"] += float64(e.Count)
		p.Figures["exit_s"] += float64(e.NS) * nano
		name := k.kvm.name(reason)
		p.Figures[name+".exits"] += float64(e.Count)
		p.Figures[name+".exit_s"] += float64(e.NS) * nano
	}
	return each.Err()
}

// stackDepth is bpf/look.c's, and mostStacks how many are kept in a trial's record.
const (
	stackDepth = 32
	mostStacks = 10
)

func (w *Watch) stacks(p *notebook.Probes) error {
	k := w.kit
	if k.symbols == nil {
		s, err := readSymbols()
		if err != nil {
			return err
		}
		k.symbols = s
	}
	var id uint32
	var e waited
	each := k.coll.Maps["waits"].Iterate()
	for each.Next(&id, &e) {
		var ips [stackDepth]uint64
		if err := k.coll.Maps["stacks"].Lookup(id, &ips); errors.Is(err, ebpf.ErrKeyNotExist) {
			p.Lost += int64(e.Count)
			continue
		} else if err != nil {
			return err
		}
		s := notebook.Stack{Seconds: float64(e.NS) * nano, Count: int64(e.Count)}
		for _, ip := range ips {
			if ip == 0 {
				break
			}
			name := k.symbols.name(ip)
			if strings.HasPrefix(name, "__traceiter_") || strings.HasPrefix(name, "__bpf_trace_") {
				s.Frames = nil // up to here it is the probe itself
				continue
			}
			s.Frames = append(s.Frames, name)
		}
		p.Stacks = append(p.Stacks, s)
	}
	if err := each.Err(); err != nil {
		return err
	}
	slices.SortFunc(p.Stacks, func(a, b notebook.Stack) int { return cmp.Compare(b.Seconds, a.Seconds) })
	p.Stacks = p.Stacks[:min(len(p.Stacks), mostStacks)]
	return nil
}
