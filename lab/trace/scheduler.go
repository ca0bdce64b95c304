//go:build linux

package trace

import (
	"time"

	"golang.org/x/sys/unix"

	"tare/notebook"
)

// The second tier's tracer of the scheduler follows each switch of the guest's threads. The time breakdown of each instant and the
// distributions of times on and off a CPU are made of that.
var _ = add(tracer{
	name:     notebook.TracerScheduler,
	on:       onThreads,
	programs: []string{"switched"},
	read:     (*Trace).readScheduler,
})

// The values are those of bpf/trace.h.
const (
	forOther = iota
	forBlock
	forNetwork
	forFutex
	forSleep
	forMemory // only where each thread is looked at
	reasonCount
	byFile = 7
)

// waits are the notebook's keys for them.
var waits = [reasonCount]string{notebook.WallOther, notebook.WallBlock, notebook.WallNetwork, notebook.WallFutex, notebook.WallSleep, notebook.WallMemory}

// syscallReasons says what a thread waits for if it sleeps in a system call. For a file that depends on what the file is (byFile). A
// wait for one of many files (poll, epoll) counts as one for the network, because that is what servers wait for in this way.
var syscallReasons = map[int]uint8{
	unix.SYS_READ: byFile, unix.SYS_WRITE: byFile, unix.SYS_READV: byFile, unix.SYS_WRITEV: byFile,
	unix.SYS_PREAD64: byFile, unix.SYS_PWRITE64: byFile, unix.SYS_PREADV: byFile, unix.SYS_PWRITEV: byFile,
	unix.SYS_PREADV2: byFile, unix.SYS_PWRITEV2: byFile, unix.SYS_SENDFILE: byFile, unix.SYS_SPLICE: byFile,
	unix.SYS_FSYNC: forBlock, unix.SYS_FDATASYNC: forBlock, unix.SYS_SYNC: forBlock, unix.SYS_SYNCFS: forBlock,
	unix.SYS_MSYNC: forBlock, unix.SYS_SYNC_FILE_RANGE: forBlock, unix.SYS_FALLOCATE: forBlock, unix.SYS_IO_GETEVENTS: forBlock,
	unix.SYS_ACCEPT: forNetwork, unix.SYS_ACCEPT4: forNetwork, unix.SYS_CONNECT: forNetwork,
	unix.SYS_RECVFROM: forNetwork, unix.SYS_RECVMSG: forNetwork, unix.SYS_RECVMMSG: forNetwork,
	unix.SYS_SENDTO: forNetwork, unix.SYS_SENDMSG: forNetwork, unix.SYS_SENDMMSG: forNetwork,
	unix.SYS_PPOLL: forNetwork, unix.SYS_PSELECT6: forNetwork, unix.SYS_EPOLL_PWAIT: forNetwork, unix.SYS_EPOLL_PWAIT2: forNetwork,
	unix.SYS_FUTEX: forFutex, unix.SYS_FUTEX_WAITV: forFutex, futexWait: forFutex,
	unix.SYS_NANOSLEEP: forSleep, unix.SYS_CLOCK_NANOSLEEP: forSleep,
}

// futexWait is futex_wait(2) of Linux 6.7; the number is the same on all machines.
const futexWait = 455

// The values are those of bpf/trace.h.
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
	kinds = kindOff + 8
)

const (
	wallRun = iota
	wallCore
	wallThrottled
	wallIdle
	walls = wallIdle + 8
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

const (
	ownRan = iota
	ownDelayed
	ownVoluntary
	ownInvoluntary
	ownBlocked
	owns
)

// span mirrors the struct of that name in bpf/trace.h.
type span struct {
	Wall   [walls]uint64
	Counts [roles][tallies]uint64
	Own    [roles][owns]uint64
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
		for i := range owns {
			s.Own[r][i] += o.Own[r][i]
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

// unit is the programs' unit of wall time, in seconds. Their clock of 34 bits starts again at 0 after the time longest.
const (
	unit    = 1024 * nano
	longest = 1 << 34 * 1024 * time.Nanosecond
)

// last charges the time from the last change until the trial's end, if no program saw the end. While nothing runs and nothing could, that
// is a wait for reason.
func (s *span) last(l look, state uint64, reason int) {
	from := max(state>>30, (l.Begin-l.Zero)>>10)
	to := (l.End - l.Zero) >> 10
	if l.End < l.Zero || to <= from {
		return
	}
	time := to - from
	runs, ready, throttled := state&1023, state>>10&1023, state>>20&1023
	able := runs + ready + throttled
	if able == 0 {
		s.Wall[wallIdle+reason] += time
		return
	}
	run := time
	if share := min(able, uint64(l.Cores)); runs < share {
		run = time * runs / share
		core := (time - run) * ready / (ready + throttled)
		if throttled > 0 && l.Queues != 0 { // as the programs do
			core = 0
		}
		s.Wall[wallCore] += core
		s.Wall[wallThrottled] += time - run - core
	}
	s.Wall[wallRun] += run
}

// settle corrects negative times. A repair in the program moves time to running from where it believes that it was charged. If
// another thread ran in that time, the time was charged to running already, and the place from which it was taken becomes negative.
func (s *span) settle() {
	for i := range s.Wall {
		if i != wallRun && int64(s.Wall[i]) < 0 {
			s.Wall[wallRun] += s.Wall[i]
			s.Wall[i] = 0
		}
	}
}

// wall is the account in seconds. Running time is all in WallUser; measure.Split divides it into user and system time.
func (s *span) wall() map[string]float64 {
	wall := map[string]float64{
		notebook.WallUser:      float64(s.Wall[wallRun]) * unit,
		notebook.WallCore:      float64(s.Wall[wallCore]) * unit,
		notebook.WallThrottled: float64(s.Wall[wallThrottled]) * unit,
	}
	for r, name := range waits {
		if r != forMemory || s.Wall[wallIdle+r] > 0 {
			wall[name] = float64(s.Wall[wallIdle+r]) * unit
		}
	}
	return wall
}

// readScheduler reads the time breakdown, the counts and the distributions.
func (t *Trace) readScheduler(p *notebook.Trace) error {
	s, l := &t.span, t.look
	state := [8]uint64{t.state}
	if l.Open != 0 {
		if err := t.kit.get("state", &state); err != nil {
			return err
		}
	}
	if t.word || l.Open != 0 {
		reason, err := t.latest()
		if err != nil {
			return err
		}
		s.last(l, state[0], reason)
	}
	s.settle()
	p.Tier = notebook.TierEvents
	p.Wall = s.wall()
	p.Figures["elapsed_s"] = float64(l.End-l.Begin) * nano
	for r, name := range roleNames {
		c := &s.Counts[r]
		if c[countSwitches] == 0 && c[countTasks] == 0 {
			continue
		}
		prefix := prefix(r)
		for i, figure := range []string{"switches", "waits", "preemptions", "wakeups", "migrations", "cache_migrations", "node_migrations", "tasks"} {
			p.Figures[prefix+figure] = float64(c[i])
		}
		p.Figures[prefix+"run_s"] = float64(s.Sums[r][kindOn]) * nano
		p.Figures[prefix+"cpus_used"] = float64(t.ranOn[r])
		add := func(kind int, what, of string) {
			if d := distribution(s.Spread[r][kind][:], s.Sums[r][kind]); d != nil {
				d.Role, d.What, d.Of = name, what, of
				p.Spread = append(p.Spread, *d)
			}
		}
		add(kindOn, notebook.OnCPU, "")
		for b, n := range s.Spread[r][kindPreempted] { // a preempted thread is in the run queue too
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
	return nil
}

// prefix returns what stands before the names of a role's metrics; those of the work have no prefix.
func prefix(role int) string {
	if role == roleWork {
		return ""
	}
	return roleNames[role] + "."
}

// distribution returns nil if nothing was counted.
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
