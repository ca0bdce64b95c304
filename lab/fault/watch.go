//go:build linux

package fault

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"tare/lab/pagetable"
	"tare/lab/proc"
)

// Watch observes faults until it is stopped.
type Watch struct {
	coll   *ebpf.Collection
	events []int
	forks  link.Link // nil: it does not follow what processes start
	reader *ringbuf.Reader
	done   sync.WaitGroup
	err    error // of the reader
}

// Lost says what a watch did not see.
type Lost struct {
	Faults  int64 // faults that found no room in the buffer
	Unended int64 // faults that began but were not handled: bad accesses, or faults cut short by the thread's end
}

// Supported says why faults cannot be seen here; nil if they can. It tries.
func Supported() error {
	coll, err := load(false)
	if err != nil {
		return err
	}
	coll.Close()
	return nil
}

// load loads the programs for this kernel, with the one that follows what processes start where it is wanted.
func load(forks bool) (*ebpf.Collection, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("page faults can only be seen on x86-64, and this host is %s", runtime.GOARCH)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil { // the object is embedded, so this is a defect of the program
		panic(err)
	}
	at, err := pagetable.Find()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(spec.Variables["direct"].Set(at.Direct), spec.Variables["levels"].Set(at.Levels)); err != nil {
		return nil, err
	}
	if !forks {
		delete(spec.Programs, "forked")
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, refused(err)
	}
	return coll, nil
}

func refused(err error) error { return pagetable.Refused("see page faults", err) }

// Begin sees the faults of all descendants of each guest's ruler, without those of the rulers and launchers themselves. One
// goroutine calls see for each fault, in the order of each CPU.
func Begin(rulers []int, see func(Fault)) (*Watch, error) {
	if err := few(len(rulers)); err != nil {
		return nil, err
	}
	return begin(see, false, func(w *Watch) error {
		for i, pid := range rulers {
			if err := w.coll.Maps["guests"].Put(uint32(pid), uint32(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// BeginMaking sees the faults of the processes that these makers start, directly or through others, for the guests of Making. It does not see
// those of the makers themselves, and those of rulers.
func BeginMaking(makers []int, see func(Fault)) (*Watch, error) {
	return begin(see, true, func(w *Watch) error {
		for _, pid := range makers {
			if err := w.coll.Maps["makers"].Put(uint32(pid), uint32(1)); err != nil {
				return err
			}
		}
		forks, err := link.AttachTracing(link.TracingOptions{Program: w.coll.Programs["forked"]})
		if err != nil {
			return refused(err)
		}
		w.forks = forks
		return nil
	})
}

// Making says for which guest, from 0, the makers start processes from now on.
func (w *Watch) Making(guest int) error {
	if err := few(guest + 1); err != nil {
		return err
	}
	return w.coll.Variables["making"].Set(uint32(guest + 1))
}

func few(guests int) error {
	if guests > MostGuests {
		return fmt.Errorf("page faults of %d guests: must be at most %d", guests, MostGuests)
	}
	return nil
}

// begin sees faults from when prepare has said of which processes.
func begin(see func(Fault), forks bool, prepare func(*Watch) error) (w *Watch, err error) {
	w = &Watch{}
	if w.coll, err = load(forks); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := prepare(w); err != nil {
		return nil, err
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
	if w.forks != nil {
		err = errors.Join(err, w.forks.Close())
		w.forks = nil
	}
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
