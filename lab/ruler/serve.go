//go:build linux

package ruler

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Options of Serve.
type Options struct {
	// Proc is the guest's /proc, opened before chroot, because a root may lack it. Nil: none.
	Proc *os.Root
	// Scratch is the trials' folder. Empty: ScratchDir.
	Scratch string
	// Tracer is the path of the program that traces trials from inside the guest (ServeTracer). Empty: none.
	Tracer string
	// Machine: the guest is a machine of its own, and the hello describes it. For any other guest it is the host, which knows
	// itself, and reading /proc/cpuinfo takes long: on some kernels it interrupts every CPU.
	Machine bool
}

// Serve is the guest's end of the stream. It says hello, carries out orders one at a time, and returns when the stream ends (nil),
// or when the host breaks the protocol. Before it returns, it closes rw and kills everything that was started.
//
// Serve owns the process from then on. It reaps every child: its own and, as child subreaper, every orphan of a trial. As process 1
// it kills every other process of its PID namespace after each trial.
//
// Another program, the launcher (launcher/launcher.c), starts and times the work, so that this program's Go runtime is not in any
// trial's way. It stays quiet during a trial: the collector is off and runs between trials, and two Ps are enough for its work. No
// goroutine blocks in a system call. Otherwise the runtime's monitor would first wake every 20 µs, for 10 ms, to take its P away,
// and each time take the CPU from a trial that has only one.
func Serve(rw io.ReadWriteCloser, o Options) error {
	g, err := newGuest(o)
	if err != nil {
		rw.Close()
		return err
	}
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(-1)
	return serve(rw, g)
}

// executor carries out orders. It is an interface so that the protocol can be fuzzed without starting anything.
type executor interface {
	hello() (Hello, error)
	// run calls ready when everything is prepared, and goes on if it returns true. As soon as the process is reaped it calls ended,
	// with the time from ready's return to the process's creation, and the time since it was reaped. It answers in any case.
	run(o *Order, c *control, ready func() bool, ended func(lead, late time.Duration)) Result
	// look describes the guest's memory in parts. It ends when say fails. It runs during an order.
	look(l *lookNote, say func(*seenNote) error) error
	// finish kills everything that is left.
	finish() error
}

// control stops an order in progress: after a cancel frame, or at the end of the stream.
type control struct {
	mu      sync.Mutex
	reason  string        // why it was stopped; empty: it was not
	stopped chan struct{} // closed when it is stopped
	kill    func()        // ends the process that runs now, if any
	goAhead chan struct{} // the host's go
}

func newControl() *control {
	return &control{stopped: make(chan struct{}), goAhead: make(chan struct{}, 1)}
}

// stop ends the order. The first reason stays.
func (c *control) stop(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
		close(c.stopped)
	}
	if c.kill != nil {
		c.kill()
	}
}

// why is the reason for the stop, if there was one.
func (c *control) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// running makes stop call kill from now on, and calls it at once if stop came before.
func (c *control) running(kill func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill = kill
	if c.reason != "" {
		kill()
	}
}

// over keeps stop from killing anything any more: the process is reaped and its id may be another's. It returns why the process was
// stopped, if it was.
func (c *control) over() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill = nil
	return c.reason
}

type order struct {
	frame
	*control
}

// server is the guest's end of one stream. One goroutine reads all the time, so that an order can be cancelled. Another one, on its
// own thread, carries out orders and writes.
type server struct {
	rw     io.ReadWriteCloser
	ex     executor
	orders chan order

	mu      sync.Mutex
	current *control // for the order in progress
	looks   bool     // a look is in progress
	over    bool     // the stream has ended, so failing answers are expected

	writing sync.Mutex
	looking sync.WaitGroup
}

// write sends one frame.
func (s *server) write(kind byte, v any) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return writeFrame(s.rw, kind, v)
}

func serve(rw io.ReadWriteCloser, ex executor) error {
	s := &server{rw: rw, ex: ex, orders: make(chan order, 1)}
	h, err := ex.hello()
	if err == nil {
		said := bytes.NewBuffer(slices.Clone(magic)) // one write, which wakes the host once
		if err = writeFrame(said, kindHello, h); err == nil {
			_, err = rw.Write(said.Bytes())
		}
		if err != nil {
			err = fmt.Errorf("saying hello to the host: %w", err)
		}
	}
	if err != nil {
		rw.Close()
		return err
	}

	worked := make(chan error, 1)
	go func() { worked <- s.work() }()
	readErr := s.read()

	// First the order, then the stream (a worker that writes to a host that does not read is blocked), then the wait.
	s.mu.Lock()
	s.over = true
	if s.current != nil {
		s.current.stop("the stream to the host ended")
	}
	s.mu.Unlock()
	rw.Close()
	close(s.orders)
	workErr := <-worked
	s.looking.Wait()
	if readErr != nil {
		return readErr
	}
	return workErr
}

// read reads frames until the stream ends.
func (s *server) read() error {
	d := decoder{r: s.rw}
	err := d.sync()
	for err == nil {
		var f frame
		if f, err = d.next(); err == nil {
			err = s.take(f)
		}
	}
	var protocol *ProtocolError
	if errors.As(err, &protocol) {
		return fmt.Errorf("the host's end: %w", err)
	}
	return nil // however a stream ends, the host no longer needs the ruler
}

// take passes on one frame.
func (s *server) take(f frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.kind {
	case kindCancel:
		if s.current != nil {
			s.current.stop("cancelled by the host")
		}
		return nil
	case kindGo:
		if s.current != nil {
			select {
			case s.current.goAhead <- struct{}{}:
			default: // go was already said
			}
		}
		return nil // the order has been cancelled
	case kindPing, kindRun:
		if s.current != nil {
			return violation("a cancel frame or nothing", "%s while an order is in progress", kindName(f.kind))
		}
		s.current = newControl()
		s.orders <- order{f, s.current} // never blocks: the worker has taken the last one
		return nil
	case kindLook:
		var l lookNote
		err := f.decode(&l)
		if err == nil {
			err = l.check()
		}
		if err == nil && s.looks {
			err = violation("one look at a time", "another")
		}
		if err != nil {
			return err
		}
		s.looks = true
		s.looking.Go(func() { s.look(&l) })
		return nil
	default:
		return unexpected(f, "a frame that a host sends")
	}
}

// look answers a look.
func (s *server) look(l *lookNote) {
	lost := false
	err := s.ex.look(l, func(n *seenNote) error {
		s.mu.Lock()
		over := s.over
		s.mu.Unlock()
		if over {
			return io.ErrClosedPipe
		}
		err := s.write(kindSeen, n)
		lost = lost || err != nil
		return err
	})
	last := seenNote{Last: true}
	if err != nil {
		last.Error = clip(err.Error())
	}
	s.mu.Lock()
	s.looks = false // the host may look again as soon as it has the answer
	s.mu.Unlock()
	if !lost {
		s.write(kindSeen, &last) // an error is the stream's end, which the reader sees too
	}
}

// work carries out orders until there are no more. It keeps its thread, because a trial's process gets its parent's death signal
// when the thread that made it ends.
func (s *server) work() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var writeErr error
	for o := range s.orders {
		kind, answer := s.carryOut(o)
		// The host may send its next order as soon as it has the answer.
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
		if err := s.write(kind, answer); err != nil {
			s.mu.Lock()
			if !s.over {
				writeErr = fmt.Errorf("answering the host: %w", err)
				s.over = true
			}
			s.mu.Unlock()
			s.rw.Close() // a host that gets no answer must not wait for it
		}
	}
	if err := s.ex.finish(); err != nil {
		return err
	}
	return writeErr
}

func (s *server) carryOut(o order) (kind byte, answer any) {
	switch o.frame.kind {
	case kindRun:
		var ord Order
		err := o.decode(&ord)
		if err == nil {
			err = ord.check()
		}
		if err != nil {
			return kindDone, Result{Error: clip(err.Error())}
		}
		ready := func() bool {
			if s.write(kindReady, nil) != nil {
				return false // the reader sees the stream's end too
			}
			select {
			case <-o.goAhead:
				return true
			case <-o.stopped:
				return false
			}
		}
		// An error is the stream's end, which the reader sees too.
		ended := func(lead, late time.Duration) { s.write(kindEnded, endedNote{lead, late}) }
		r := s.ex.run(&ord, o.control, ready, ended)
		r.Error = clip(r.Error)
		return kindDone, r
	default:
		return kindPong, pongNote{time.Now().UnixNano()}
	}
}

// clip cuts a text to the length that the host accepts.
func clip(s string) string {
	const most = 4096
	if len(s) > most {
		return s[:most] + " …"
	}
	return s
}
