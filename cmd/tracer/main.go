//go:build linux

// Command tracer traces trials inside a virtual machine, where the host's tracers see nothing. The ruler starts it for one trial, with the
// tracers' names as its arguments, and tells it when to stop (ruler.ServeTracer). While nothing is traced, only its file uses the guest's
// memory. The build embeds it into tare (package lab/programs), which puts it into the initramfs of guests whose trials are traced.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/lab/trace"
	"tare/notebook"
)

func main() {
	debug.SetGCPercent(-1) // the process is short-lived, and collecting would take the guest's time
	attach := func() (func() (*notebook.Trace, error), error) { return attach(os.Getppid(), true, os.Args[1:]) }
	if err := ruler.ServeTracer(os.Stdin, os.Stdout, attach); err != nil {
		fmt.Fprintln(os.Stderr, "tracer:", err)
		os.Exit(1)
	}
}

// attach attaches the named tracers to a ruler, which starts work through launchers or itself, and to what it starts.
func attach(pid int, launchers bool, names []string) (stop func() (*notebook.Trace, error), err error) {
	t := trace.Target{PID: pid, Cores: float64(runtime.NumCPU()), Launchers: launchers}
	if t.Threads, err = engine.ThreadsOf([]int{t.PID}, t.PID); err != nil {
		return nil, err
	}
	kit, err := trace.Open(trace.Inside(names))
	if err != nil {
		return nil, err
	}
	w := kit.Attach(t)
	return func() (*notebook.Trace, error) {
		defer kit.Close()
		return w.Stop()
	}, nil
}
