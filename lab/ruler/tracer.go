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

// For each traced trial the ruler starts the tracing program, with the tracers' names as its arguments. The program answers on its
// standard output: first when it is attached, and then, after the end of its standard input, what it saw. It notices itself when
// the trial begins and ends, because it also traces the ruler.

// traceAnswer is an answer of the program.
type traceAnswer struct {
	Error string          `json:"error,omitempty"`
	Trace *notebook.Trace `json:"probes,omitempty"` // in the second answer
}

// ServeTracer is the program's end: it attaches, and stops when told to, or when the ruler is gone.
func ServeTracer(in io.Reader, out io.Writer, attach func() (stop func() (*notebook.Trace, error), err error)) error {
	answer := json.NewEncoder(out)
	stop, err := attach()
	if err != nil {
		return answer.Encode(traceAnswer{Error: clip(err.Error())})
	}
	if err := answer.Encode(traceAnswer{}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err // what is attached ends with this process
	}
	seen, err := stop()
	if err != nil {
		return answer.Encode(traceAnswer{Error: clip(err.Error())})
	}
	return answer.Encode(traceAnswer{Trace: seen})
}

// tracing is the trace of one trial from inside its guest. It is nil for an order without tracers.
type tracing struct {
	names  []string
	err    error    // why there is no trace
	pid    int      // process of the program; 0: it was not started
	input  *os.File // the program's input, whose end stops it; nil: it was not started
	said   *os.File
	answer *json.Decoder
}

// trace attaches the named tracers. Where that is impossible, the trial goes on and its record says so.
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
	if t.err != nil {
		t.err = errors.Join(t.err, g.sweep(nil)) // nothing of it may remain while the trial runs
	}
	return t
}

// start starts the program.
func (t *tracing) start(path string) error {
	in, input, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	said, out, err := os.Pipe()
	if err != nil {
		input.Close()
		return err
	}
	defer out.Close()
	t.input, t.said, t.answer = input, said, json.NewDecoder(said)
	t.pid, err = syscall.ForkExec(path, append([]string{"tracer"}, t.names...), &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{in.Fd(), out.Fd(), 2}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("starting the tracer: %w", err)
	}
	return nil
}

// process is the program's process while the trial runs.
func (t *tracing) process() int {
	if t == nil || t.err != nil { // it was swept away
		return 0
	}
	return t.pid
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

// close ends the trace and returns the observation of a trial of this length. The following sweep ends the rest of the program, and
// with it what it attached; a guest where the sweep fails runs no further order.
func (t *tracing) close(elapsed time.Duration) *notebook.Trace {
	if t == nil {
		return nil
	}
	var seen *notebook.Trace
	if t.input != nil {
		t.input.Close()
		defer t.said.Close()
	}
	if t.err == nil {
		seen, t.err = t.hear()
	}
	if t.err != nil {
		return missed(t.names, notebook.TextMessage(clip(t.err.Error())))
	}
	return fit(seen, t.names, elapsed)
}
