//go:build linux

// Package profile samples what all CPUs of the host do, in the kernel and in programs, with their stacks: perf_event_open(2) with
// the kernel's CPU clock, which needs no counter of the processor. The kernel reports every fork, exec and mapping in order with
// the samples, so that even short-lived processes can be identified.
package profile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

const (
	ringPages  = 512     // of 4 KiB, for each CPU; a power of two
	mostEvents = 1 << 20 // events that are kept
	readEvery  = 20 * time.Millisecond
	deepest    = 127 // greatest number of frames of a stack: the kernel's own limit (kernel.perf_event_max_stack)
)

// Sampler is a running sampling.
type Sampler struct {
	rings  []ring
	stop   chan struct{}
	done   chan struct{}
	events []event
	lost   uint64
	err    error
	known  map[int]*process
	began  time.Time
}

// ring is the kernel's buffer for one CPU.
type ring struct {
	fd  int
	mem []byte
}

// Samples are the result of a sampling.
type Samples struct {
	Stacks []Stack
	Lost   uint64  // records that found no room
	OfS    float64 // seconds of sampling
}

// Stack is one sample: what a CPU was doing.
type Stack struct {
	PID     int
	Process *Process
	Kernel  []uint64 // addresses in the kernel, innermost first; empty while the program itself ran
	User    []Frame  // innermost first
}

// Process is one program of a process, from its exec on.
type Process struct {
	PID    int
	Exe    string // path of its file, as the process saw it; "" for the kernel's own
	Name   string // the kernel's name of it
	Parent *Process
}

// Frame is a place in a mapped file.
type Frame struct {
	File   string // "": none, for example code that a program generated
	Offset uint64
}

// Begin begins to sample each CPU that is not idle, hz times a second.
func Begin(hz int) (_ *Sampler, err error) {
	s := &Sampler{stop: make(chan struct{}), done: make(chan struct{}), known: map[int]*process{}, began: time.Now()}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	cpus, err := proc.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	for _, cpu := range cpus {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: unix.PERF_ATTR_SIZE_VER5, Sample: uint64(hz),
			Sample_type:      unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CALLCHAIN,
			Sample_max_stack: deepest,
			Bits: unix.PerfBitDisabled | unix.PerfBitFreq | unix.PerfBitExcludeIdle | unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm |
				unix.PerfBitCommExec | unix.PerfBitTask | unix.PerfBitSampleIDAll,
		}
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("perf_event_open on CPU %d: %w", cpu, err)
		}
		mem, err := unix.Mmap(fd, 0, (1+ringPages)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		s.rings = append(s.rings, ring{fd, mem})
		if err != nil {
			return nil, fmt.Errorf("mapping the samples of CPU %d: %w", cpu, err)
		}
	}
	for i, r := range s.rings {
		if err := unix.IoctlSetInt(r.fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return nil, fmt.Errorf("sampling CPU %d: %w", cpus[i], err)
		}
	}
	if err := s.look(); err != nil { // after sampling began, so that new processes may be seen twice, but none is missed
		return nil, err
	}
	go s.read()
	return s, nil
}

func (s *Sampler) close() (err error) {
	for _, r := range s.rings {
		if r.mem != nil {
			err = errors.Join(err, unix.Munmap(r.mem))
		}
		err = errors.Join(err, unix.Close(r.fd))
	}
	s.rings = nil
	return err
}

// read reads records until the sampler is stopped, and those in the buffers by then.
func (s *Sampler) read() {
	defer close(s.done)
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for over := false; ; {
		for _, r := range s.rings {
			s.drain(r)
		}
		if over {
			return
		}
		select {
		case <-tick.C:
		case <-s.stop:
			over = true
		}
	}
}

// Offsets of fields in the page before a ring (struct perf_event_mmap_page).
const headAt, tailAt = 1024, 1032

// drain reads the records in a ring.
func (s *Sampler) drain(r ring) {
	page := os.Getpagesize()
	data := r.mem[page:]
	head := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.mem[headAt])))
	tail := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.mem[tailAt])))
	size := uint64(len(data))
	buf := make([]byte, head-tail)
	for n := range buf {
		buf[n] = data[(tail+uint64(n))%size]
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&r.mem[tailAt])), head)
	events, lost, err := parse(buf)
	s.lost += lost
	if err != nil && s.err == nil {
		s.err = err
	}
	if room := mostEvents - len(s.events); len(events) > room {
		s.lost += uint64(len(events) - room)
		events = events[:room]
	}
	s.events = append(s.events, events...)
}

// Stop ends the sampling and returns its result.
func (s *Sampler) Stop() (*Samples, error) {
	took := time.Since(s.began)
	var err error
	for _, r := range s.rings {
		err = errors.Join(err, unix.IoctlSetInt(r.fd, unix.PERF_EVENT_IOC_DISABLE, 0))
	}
	close(s.stop)
	<-s.done
	err = errors.Join(err, s.close(), s.err)
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.time, b.time) })
	all := &Samples{Lost: s.lost, OfS: took.Seconds()}
	for _, e := range s.events {
		if stack, ok := s.take(e); ok {
			all.Stacks = append(all.Stacks, stack)
		}
	}
	return all, err
}

// process is what is known of a process at present.
type process struct {
	is   *Process
	maps []mapped
}

type mapped struct {
	start, end, offset uint64
	file               string
}

// look lists the existing processes.
func (s *Sampler) look() error {
	pids, err := proc.All()
	if err != nil {
		return err
	}
	parents := map[int]int{}
	for _, pid := range pids {
		p := &process{is: &Process{PID: pid, Name: proc.Name(pid)}}
		p.is.Exe, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // missing for the kernel's own, and for one that has ended
		maps, err := proc.Maps(pid)
		if err != nil && !proc.Ended(err) && !errors.Is(err, fs.ErrPermission) { // the functions of a protected process stay unknown
			return err
		}
		for _, m := range maps {
			if len(m.Perms) > 2 && m.Perms[2] == 'x' {
				p.maps = append(p.maps, mapped{m.Start, m.End, m.Offset, m.Path})
			}
		}
		if parent, err := proc.Parent(pid); err == nil {
			parents[pid] = parent
		}
		s.known[pid] = p
	}
	for pid, p := range s.known {
		if parent := s.known[parents[pid]]; parent != nil && parent != p {
			p.is.Parent = parent.is
		}
	}
	return nil
}

func (s *Sampler) of(pid int) *process {
	p := s.known[pid]
	if p == nil {
		p = &process{is: &Process{PID: pid}}
		s.known[pid] = p
	}
	return p
}

// take handles the next event; a sample becomes a stack.
func (s *Sampler) take(e event) (st Stack, ok bool) {
	switch e.kind {
	case unix.PERF_RECORD_FORK:
		if e.pid == e.parent { // a thread
			return st, false
		}
		from := s.of(e.parent)
		s.known[e.pid] = &process{is: &Process{PID: e.pid, Exe: from.is.Exe, Name: from.is.Name, Parent: from.is}, maps: slices.Clone(from.maps)}
	case unix.PERF_RECORD_COMM:
		p := s.of(e.pid)
		if e.exec { // another program: its mappings are gone
			p.maps, p.is = nil, &Process{PID: e.pid, Parent: p.is}
		}
		if e.exec || e.pid == e.tid {
			p.is.Name = e.name
		}
	case unix.PERF_RECORD_MMAP, unix.PERF_RECORD_MMAP2:
		p := s.of(e.pid)
		if p.is.Exe == "" {
			p.is.Exe = e.name // a program's own file comes first
		}
		p.maps = append(p.maps, mapped{e.start, e.start + e.length, e.offset, e.name})
	case unix.PERF_RECORD_SAMPLE:
		if e.pid == 0 { // the CPU is idle, although the kernel was told to omit that
			return st, false
		}
		p := s.of(e.pid)
		st = Stack{PID: e.pid, Process: p.is}
		user := false
		for _, ip := range e.chain {
			switch {
			case ip == contextKernel:
				user = false
			case ip == contextUser:
				user = true
			case ip >= contextMax:
				return Stack{}, false // in a guest's kernel, or a hypervisor
			case user:
				st.User = append(st.User, p.frame(ip, len(st.User) > 0))
			default:
				st.Kernel = append(st.Kernel, ip)
			}
		}
		return st, true
	}
	return st, false
}

// frame is what was mapped at an address; for a return address, the call before it.
func (p *process) frame(ip uint64, returned bool) Frame {
	if returned {
		ip--
	}
	for _, m := range slices.Backward(p.maps) { // the latest mapping counts
		if ip >= m.start && ip < m.end {
			return Frame{m.file, ip - m.start + m.offset}
		}
	}
	return Frame{}
}

// Marks in a call chain (enum perf_callchain_context): the addresses after it are in the kernel, or in the program.
const (
	contextKernel = ^uint64(127)  // -128
	contextUser   = ^uint64(511)  // -512
	contextMax    = ^uint64(4094) // -4095
)

// event is a record of the kernel.
type event struct {
	kind                  uint32
	time                  uint64
	pid, tid, parent      int
	exec                  bool
	name                  string // of a process or a file
	start, length, offset uint64
	chain                 []uint64
}

// Sizes of parts of records.
const (
	headSize  = 8
	idSize    = 16 // pid, tid and time at the end of all records except samples
	mmap2Size = 64
	mmapSize  = 32
)

var errShort = errors.New("a record of samples is shorter than its kind")

// parse parses whole records. lost is the number of records that the kernel had no room for.
func parse(b []byte) (events []event, lost uint64, err error) {
	o := binary.NativeEndian
	for len(b) >= headSize {
		kind, misc, size := o.Uint32(b), o.Uint16(b[4:]), int(o.Uint16(b[6:]))
		if size < headSize || size > len(b) {
			return events, lost, fmt.Errorf("a record of samples of %d bytes, but only %d are left", size, len(b))
		}
		body := b[headSize:size]
		b = b[size:]
		e := event{kind: kind}
		if kind == unix.PERF_RECORD_SAMPLE {
			const fixed = 8 + 8 + 8 + 8 // ip, pid and tid, time, the chain's length
			if len(body) < fixed {
				return events, lost, errShort
			}
			e.pid, e.tid, e.time = int(int32(o.Uint32(body[8:]))), int(int32(o.Uint32(body[12:]))), o.Uint64(body[16:])
			n := o.Uint64(body[24:])
			if n > uint64(len(body)-fixed)/8 {
				return events, lost, errShort
			}
			for i := range n {
				e.chain = append(e.chain, o.Uint64(body[fixed+8*i:]))
			}
			events = append(events, e)
			continue
		}
		if len(body) < idSize {
			return events, lost, errShort
		}
		e.time = o.Uint64(body[len(body)-8:])
		body = body[:len(body)-idSize]
		need := map[uint32]int{unix.PERF_RECORD_LOST: 16, unix.PERF_RECORD_FORK: 16, unix.PERF_RECORD_COMM: 8, unix.PERF_RECORD_MMAP: mmapSize, unix.PERF_RECORD_MMAP2: mmap2Size}[kind]
		if len(body) < need {
			return events, lost, errShort
		}
		if need > 0 {
			e.pid, e.tid = int(int32(o.Uint32(body))), int(int32(o.Uint32(body[4:])))
		}
		switch kind {
		case unix.PERF_RECORD_LOST:
			lost += o.Uint64(body[8:])
			continue
		case unix.PERF_RECORD_FORK: // pid, ppid, tid, ptid
			e.parent = e.tid
		case unix.PERF_RECORD_COMM:
			e.exec, e.name = misc&unix.PERF_RECORD_MISC_COMM_EXEC != 0, unix.ByteSliceToString(body[8:])
		case unix.PERF_RECORD_MMAP, unix.PERF_RECORD_MMAP2:
			e.start, e.length, e.offset = o.Uint64(body[8:]), o.Uint64(body[16:]), o.Uint64(body[24:])
			e.name = unix.ByteSliceToString(body[need:])
		default:
			continue
		}
		events = append(events, e)
	}
	return events, lost, nil
}
