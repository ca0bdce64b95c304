//go:build linux

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/notebook"
)

// The tracer of the CPU's performance counters: cycles, instructions, cache and TLB misses. The paper "pinning" names cache misses as the
// cost of migrations (sections III-B3 and IV-C).
//
// It opens one event of each kind for each thread of the guest, which all threads inherit that it creates. A VM and a sandbox are thus
// counted like a container, whether or not they have a cgroup of their own.
var _ = add(tracer{
	name: notebook.TracerHardware,
	on:   "the CPU's performance counters",
	open: func(*tracer) error { // on this thread, to ask what the CPU counts
		h, err := openHardware(hardwareEvents, []engine.Thread{{ID: unix.Gettid()}})
		if err != nil {
			return err
		}
		return h.Close()
	},
	begin: func(t *Trace) (reading, error) { return openHardware(hardwareEvents, t.target.Threads) },
})

// hardwareEvent is a kind of perf event and the name of its figure.
type hardwareEvent struct {
	figure string
	kind   uint32
	config uint64
}

// readMisses is the number of the event that counts the misses of reads in a cache.
func readMisses(cache uint64) uint64 {
	return cache | unix.PERF_COUNT_HW_CACHE_OP_READ<<8 | unix.PERF_COUNT_HW_CACHE_RESULT_MISS<<16
}

// hardwareEvents are few enough for the counters of one core of any CPU made since 2010, so that they need not take turns. The kernel has no
// general event for second-level caches, and none for walks of page tables.
var hardwareEvents = []hardwareEvent{
	{"cycles", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	{instructions, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
	{"l1d_misses", unix.PERF_TYPE_HW_CACHE, readMisses(unix.PERF_COUNT_HW_CACHE_L1D)},
	{"llc_misses", unix.PERF_TYPE_HW_CACHE, readMisses(unix.PERF_COUNT_HW_CACHE_LL)},
	{"dtlb_misses", unix.PERF_TYPE_HW_CACHE, readMisses(unix.PERF_COUNT_HW_CACHE_DTLB)},
}

// mostEvents bounds the open events of a trial. Each needs a file descriptor and memory of the kernel.
const mostEvents = 8192

// hardware are the open events of a guest.
type hardware struct {
	events []hardwareEvent
	open   [][]perfEvent // by event, then by thread
	roles  []string      // of the threads
	absent []string      // the figures that this CPU does not count
}

// openHardware opens the events for the threads. Threads that have ended are omitted. It fails if no event can be counted.
func openHardware(events []hardwareEvent, threads []engine.Thread) (_ *hardware, err error) {
	if n := len(events) * len(threads); n > mostEvents {
		return nil, fmt.Errorf("the guest has %d threads, which need %d events; at most %d are opened", len(threads), n, mostEvents)
	}
	if _, err := os.Stat("/sys/bus/event_source/devices/cpu_atom"); err == nil {
		return nil, errors.New("this CPU has two kinds of cores, whose counters differ")
	}
	h := &hardware{}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	var refused error
	for _, e := range events {
		fds, err := e.follow(threads)
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
			refused = err
			h.absent = append(h.absent, e.figure)
			continue
		case err != nil:
			return h, fmt.Errorf("%s: %w", e.figure, err)
		}
		h.events, h.open = append(h.events, e), append(h.open, fds)
	}
	if len(h.events) == 0 {
		return h, fmt.Errorf("this CPU, or the hypervisor below, offers no performance counters: perf_event_open: %w", refused)
	}
	for _, th := range threads {
		h.roles = append(h.roles, th.Role)
	}
	return h, nil
}

// follow opens the event for each thread and what it will create. The event of a thread that has ended is -1.
func (e hardwareEvent) follow(threads []engine.Thread) (all []perfEvent, err error) {
	for _, th := range threads {
		attr := unix.PerfEventAttr{Type: e.kind, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER1, Bits: unix.PerfBitInherit,
			Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING}
		fd, err := unix.PerfEventOpen(&attr, th.ID, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ESRCH) {
			fd, err = -1, nil
		}
		if err != nil {
			return nil, errors.Join(err, closeEvents(all))
		}
		all = append(all, perfEvent(fd))
	}
	return all, nil
}

func closeEvents(all []perfEvent) error {
	var errs []error
	for _, e := range all {
		if e >= 0 {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// Close closes the events.
func (h *hardware) Close() error { return closeEvents(slices.Concat(h.open...)) }

// read adds the counts to the figures: of all threads and, for a VM, of its virtual CPUs alone. Where events took turns on the counters,
// each count is what it would be at the same rate all the time; counted is the least share of the time that was counted.
func (h *hardware) read(figures map[string]float64) (counted float64, err error) {
	counted = 1
	for i, e := range h.events {
		var enabled, running float64
		for j, fd := range h.open[i] {
			if fd < 0 {
				continue
			}
			n, ran, on, err := fd.count()
			if err != nil {
				return 0, fmt.Errorf("%s: %w", e.figure, err)
			}
			enabled, running = enabled+ran, running+on
			figures[e.figure] += n
			if h.roles[j] == notebook.RoleVCPU {
				figures[notebook.RoleVCPU+"."+e.figure] += n
			}
		}
		if enabled > 0 {
			counted = min(counted, running/enabled)
		}
	}
	return counted, nil
}

// count reads an event: its count, and for how many ns its threads ran, and how many of these it was on a counter. The count is what it would
// be if it had always been on a counter.
func (e perfEvent) count() (n, enabled, running float64, err error) {
	var b [24]byte
	got, err := unix.Read(int(e), b[:])
	if err == nil && got != len(b) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("reading a perf event: %w", err)
	}
	n = float64(binary.NativeEndian.Uint64(b[:]))
	enabled, running = float64(binary.NativeEndian.Uint64(b[8:])), float64(binary.NativeEndian.Uint64(b[16:]))
	if running > 0 {
		n *= enabled / running
	}
	return n, enabled, running, nil
}

// least is the share of the time from which a count is used.
const least = 0.1

// end adds what was counted to the record.
func (h *hardware) end(p *notebook.Trace) (why *notebook.Message, err error) {
	figures := map[string]float64{}
	share, err := h.read(figures)
	if err != nil {
		return nil, err
	}
	if share < least {
		return nil, errors.New("other programs use the performance counters (perf, or the NMI watchdog)")
	}
	maps.Copy(p.Figures, figures)
	var all []*notebook.Message
	if len(h.absent) > 0 {
		all = append(all, notebook.Say("hardware-absent", "figures", strings.Join(h.absent, ", ")))
	}
	if share < 0.99 {
		all = append(all, notebook.Say("hardware-in-turns", "share", share))
	}
	return notebook.Several(all), nil
}

// Instructions counts the instructions of threads, and of all that they create, in their programs and in the kernel.
type Instructions struct{ of *hardware }

// CountInstructions begins to count. It fails where the CPU, or the hypervisor below, does not count.
func CountInstructions(threads []engine.Thread) (*Instructions, error) {
	return countEvents(slices.DeleteFunc(slices.Clone(hardwareEvents), func(e hardwareEvent) bool { return e.figure != instructions }), threads)
}

const instructions = "instructions"

func countEvents(events []hardwareEvent, threads []engine.Thread) (*Instructions, error) {
	h, err := openHardware(events, threads)
	if err != nil {
		return nil, err
	}
	return &Instructions{h}, nil
}

// Stop ends the counting and returns the count; 0 where other programs held the counters most of the time.
func (i *Instructions) Stop() (n float64, err error) {
	defer func() { err = errors.Join(err, i.of.Close()) }()
	figures := map[string]float64{}
	share, err := i.of.read(figures)
	if err != nil || share < least {
		return 0, err
	}
	return figures[i.of.events[0].figure], nil
}
