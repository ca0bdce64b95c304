//go:build linux

package ruler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"tare/notebook"
)

// What a ruler and the program that traces for it say to each other. The ruler starts the program for one trial, with the tracers'
// names as its arguments, and is its parent. It says one word at a time on the program's standard input, and the program answers
// each on its standard output, and once before the first: when it is attached.
const (
	wordBegin byte = 'b' // the trial begins now
	wordEnd   byte = 'e' // it has ended
	wordStop  byte = 's' // detach, say what was seen, and end
)

// traceAnswer is an answer of the program's.
type traceAnswer struct {
	Error string          `json:"error,omitempty"`
	Trace *notebook.Trace `json:"probes,omitempty"` // to wordStop
}

// traceTime bounds the wait for an answer. The kernel verifies the programs that are attached, which takes seconds in an emulated
// guest.
var traceTime = 2 * time.Minute

// ServeTracer is the program's end: it attaches, and answers until it has been told to stop, or the ruler is gone.
func ServeTracer(in io.Reader, out io.Writer, attach func() (Watch, error)) error {
	answer := json.NewEncoder(out)
	w, err := attach()
	if err != nil {
		return answer.Encode(traceAnswer{Error: clip(err.Error())})
	}
	if err := answer.Encode(traceAnswer{}); err != nil {
		return err
	}
	var word [1]byte
	for {
		if _, err := io.ReadFull(in, word[:]); err != nil {
			return err // what is attached goes with this process
		}
		var a traceAnswer
		switch word[0] {
		case wordBegin:
			w.Begin()
		case wordEnd:
			w.End()
		case wordStop:
			if a.Trace, err = w.Stop(); err != nil {
				a.Error = clip(err.Error())
			}
			return answer.Encode(a)
		default:
			return fmt.Errorf("the ruler said %q, which is no word", word[0])
		}
		if err := answer.Encode(a); err != nil {
			return err
		}
	}
}

// tracing is the trace of one trial from inside its guest. A nil one is of an order that asked for none.
type tracing struct {
	names  []string
	err    error // why there is no trace
	begun  bool  // and not ended
	pid    int   // of the program
	words  *os.File
	said   *os.File
	answer *json.Decoder
}

// trace attaches the named tracers. Where that is not possible the trial goes on all the same, and says so.
func (g *guest) trace(names []string) *tracing {
	if len(names) == 0 {
		return nil
	}
	t := &tracing{names: names}
	if g.tracer == "" {
		t.err = errors.New("this guest has no tracer")
		return t
	}
	if t.err = t.start(g.tracer); t.err == nil {
		_, t.err = t.hear()
	}
	return t
}

// start starts the program.
func (t *tracing) start(path string) error {
	in, words, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	said, out, err := os.Pipe()
	if err != nil {
		words.Close()
		return err
	}
	defer out.Close()
	t.words, t.said, t.answer = words, said, json.NewDecoder(said)
	t.pid, err = syscall.ForkExec(path, append([]string{"tracer"}, t.names...), &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{in.Fd(), out.Fd(), 2}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("starting the tracer: %w", err)
	}
	return nil
}

// hear waits for an answer.
func (t *tracing) hear() (*notebook.Trace, error) {
	if err := t.said.SetReadDeadline(time.Now().Add(traceTime)); err != nil {
		return nil, err
	}
	var a traceAnswer
	if err := t.answer.Decode(&a); err != nil {
		return nil, fmt.Errorf("the tracer does not answer: %w", err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Trace, nil
}

// say says a word and waits for the answer.
func (t *tracing) say(word byte) (*notebook.Trace, error) {
	if _, err := t.words.Write([]byte{word}); err != nil {
		return nil, fmt.Errorf("the tracer is gone: %w", err)
	}
	return t.hear()
}

func (t *tracing) begin() {
	if t != nil && t.err == nil {
		_, t.err = t.say(wordBegin)
		t.begun = true
	}
}

func (t *tracing) end() {
	if t != nil && t.err == nil && t.begun {
		_, t.err = t.say(wordEnd)
		t.begun = false
	}
}

// close ends the trace and gives what was seen of a trial that lasted so long. The program is gone then, and with it all that it
// attached; where it is not, the guest is of no more use.
func (t *tracing) close(g *guest, elapsed time.Duration) *notebook.Trace {
	if t == nil {
		return nil
	}
	t.end() // of a trial that could not be started
	var p *notebook.Trace
	if t.err == nil {
		p, t.err = t.say(wordStop)
	}
	if err := t.finish(); err != nil {
		g.stuck, t.err = err, err
	}
	if t.err != nil {
		return missed(t.names, clip(t.err.Error()))
	}
	return fit(p, t.names, elapsed)
}

// finish waits for the program's end, which comes by itself once its input is closed, and is brought about if it does not.
func (t *tracing) finish() error {
	if t.words == nil {
		return nil
	}
	t.words.Close()
	defer t.said.Close()
	if t.pid == 0 {
		return nil
	}
	if err := t.said.SetReadDeadline(time.Now().Add(traceTime)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, t.said); err != nil {
		syscall.Kill(t.pid, syscall.SIGKILL) // it is not reaped yet, so the number is its own
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		for {
			// Any other error is that it was reaped already, with the trial's orphans.
			if _, err := syscall.Wait4(t.pid, nil, 0, nil); err != syscall.EINTR {
				return
			}
		}
	}()
	select {
	case <-reaped:
		return nil
	case <-time.After(sweepTime):
		return fmt.Errorf("its tracer does not die within %v of SIGKILL", sweepTime)
	}
}
