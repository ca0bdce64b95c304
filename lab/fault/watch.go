//go:build linux

package fault

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Watch observes faults until it is stopped.
type Watch struct {
	coll   *ebpf.Collection
	events []int
	reader *ringbuf.Reader
	done   sync.WaitGroup
	err    error // of the reader
}

// Lost says what a watch did not see.
type Lost struct {
	Faults  int64 // faults that found no room in the buffer
	Unended int64 // faults that began but were not handled: bad accesses, or faults cut short by the thread's end
}

// calibration is bpf/fault.c's struct of that name.
type calibration struct {
	Address, Direct, Entry uint64
	Levels, Size           uint32
	PGD                    uint64
}

// Supported says why faults cannot be seen here; nil if they can. It tries.
func Supported() error {
	coll, err := load()
	if err != nil {
		return err
	}
	coll.Close()
	return nil
}

// load loads the programs for this kernel.
func load() (*ebpf.Collection, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("page faults can only be seen on x86-64, and this host is %s", runtime.GOARCH)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil { // the object is embedded, so this is a defect of the program
		panic(err)
	}
	direct, levels, err := calibrate(spec)
	if err != nil {
		return nil, err
	}
	spec = spec.Copy()
	delete(spec.Programs, "calibrate")
	if err := errors.Join(spec.Variables["direct"].Set(direct), spec.Variables["levels"].Set(levels)); err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, refused(err)
	}
	return coll, nil
}

func refused(err error) error {
	why, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("the kernel does not load the programs that see page faults (they need Linux 5.17 with BTF, and root with CAP_BPF and CAP_PERFMON): %s", why)
}

// calibrate finds where the kernel maps all of physical memory, which it does not publish, and how many levels its page tables
// have. It uses the page table of this process and the frame of one of its pages.
func calibrate(spec *ebpf.CollectionSpec) (direct uint64, levels uint32, err error) {
	spec = spec.Copy()
	for name := range spec.Programs {
		if name != "calibrate" {
			delete(spec.Programs, name)
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return 0, 0, refused(err)
	}
	defer coll.Close()
	page, err := proc.NewPage()
	if err != nil {
		return 0, 0, err
	}
	defer page.Close()
	if page.Frame == 0 {
		return 0, 0, errors.New("the kernel hides the frames of pages; run tare as root on the host itself")
	}
	program := coll.Programs["calibrate"]
	try := func(direct uint64, levels uint32) (c calibration, err error) {
		c = calibration{Address: page.Address, Direct: direct, Levels: levels}
		_, err = program.Run(&ebpf.RunOptions{Context: &c, ContextOut: &c})
		return c, err
	}
	c, err := try(0, 0)
	if err != nil {
		return 0, 0, refused(err)
	}
	// The page table itself lies in the direct map.
	direct, err = proc.FindDirectMap(c.PGD, func(direct uint64) (bool, error) {
		for _, levels = range []uint32{4, 5} {
			got, err := try(direct, levels)
			if err != nil {
				return false, refused(err)
			}
			if same := ^uint64(got.Size - 1); got.Size > 0 && got.Entry&present != 0 && (got.Entry&frameBits)>>pageShift&same == page.Frame&same {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil || direct != 0 {
		return direct, levels, err
	}
	return 0, 0, errors.New("the kernel's page tables could not be found, so page faults cannot be classified here")
}

// Begin sees the faults of all descendants of each guest's ruler, without those of the rulers and launchers themselves. One
// goroutine calls see for each fault, in the order of each CPU.
func Begin(rulers []int, see func(Fault)) (w *Watch, err error) {
	if len(rulers) > MostGuests {
		return nil, fmt.Errorf("page faults of %d guests: must be at most %d", len(rulers), MostGuests)
	}
	w = &Watch{}
	if w.coll, err = load(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for i, pid := range rulers {
		if err := w.coll.Maps["guests"].Put(uint32(pid), uint32(i+1)); err != nil {
			return nil, err
		}
	}
	if w.reader, err = ringbuf.NewReader(w.coll.Maps["faults"]); err != nil {
		return nil, err
	}
	online, err := proc.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	// The programs after a fault are attached last, so that the part before each fault has been seen.
	for _, e := range []struct {
		program string
		event   uint64
	}{{"before", unix.PERF_COUNT_SW_PAGE_FAULTS}, {"minor", unix.PERF_COUNT_SW_PAGE_FAULTS_MIN}, {"major", unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ}} {
		for _, cpu := range online {
			if err := w.attach(e.program, e.event, cpu); err != nil {
				return nil, err
			}
		}
	}
	w.done.Go(func() { w.err = w.read(see) })
	return w, nil
}

func (w *Watch) attach(program string, event uint64, cpu int) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: event, Size: unix.PERF_ATTR_SIZE_VER1, Sample: 1, Sample_type: unix.PERF_SAMPLE_ADDR}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("page faults: perf_event_open on CPU %d: %w", cpu, err)
	}
	w.events = append(w.events, fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, w.coll.Programs[program].FD()); err != nil {
		return fmt.Errorf("page faults: the program on CPU %d: %w", cpu, err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("page faults: enabling the event on CPU %d: %w", cpu, err)
	}
	return nil
}

// read passes on the faults that arrive until the watch is stopped, and those in the buffer by then.
func (w *Watch) read(see func(Fault)) error {
	var r ringbuf.Record
	for {
		err := w.reader.ReadInto(&r)
		if errors.Is(err, ringbuf.ErrFlushed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading page faults: %w", err)
		}
		f, err := parse(r.RawSample)
		if err != nil {
			return fmt.Errorf("reading page faults: %w", err)
		}
		see(f)
	}
}

// Stop ends the watch after it has passed on every fault that was seen.
func (w *Watch) Stop() (lost Lost, err error) {
	err = w.detach()
	err = errors.Join(err, w.reader.Flush()) // no more faults arrive: read those in the buffer, and end
	w.done.Wait()
	var n, unended uint64
	err = errors.Join(err, w.err, w.coll.Variables["lost"].Get(&n), w.coll.Variables["unended"].Get(&unended))
	return Lost{int64(n), int64(unended)}, errors.Join(err, w.close())
}

func (w *Watch) detach() (err error) {
	for _, fd := range slices.Backward(w.events) {
		err = errors.Join(err, unix.Close(fd))
	}
	w.events = nil
	return err
}

func (w *Watch) close() error {
	err := w.detach()
	if w.reader != nil {
		err = errors.Join(err, w.reader.Close())
	}
	w.coll.Close()
	return err
}
