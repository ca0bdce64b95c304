//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Process is a program that a driver started on the host for a guest. It is waited for from the start, so that its
// end is known at once.
type Process struct {
	cmd  *exec.Cmd
	said proc.Tail
	done chan struct{}
}

// Start starts cmd in a session of its own (a Ctrl-C is for Tare alone, which then ends its guests in order) and
// keeps the end of what it prints, unless its output goes elsewhere. It may use the given CPUs only, from its first instruction on; nil: all of
// Tare's own. setUp is done by the thread that starts it, just before: what it does to that thread the program inherits.
func Start(cmd *exec.Cmd, cpus []int, setUp ...func() error) (*Process, error) {
	p := newProcess(cmd)
	// A child has the affinity and the namespaces of the thread that made it.
	err := proc.Apart(func() error {
		for _, f := range setUp {
			if err := f(); err != nil {
				return err
			}
		}
		if cpus != nil {
			if err := proc.Bind(0, cpus); err != nil {
				return fmt.Errorf("setting its CPUs to %v: %w; are they all online?", cpus, err)
			}
		}
		return cmd.Start()
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w%s", cmd.Path, err, noExec(err, cmd.Path))
	}
	go p.wait()
	return p, nil
}

// noExec says more of a program that may not be started where its file system starts none.
func noExec(err error, path string) string {
	var fs unix.Statfs_t
	if !errors.Is(err, unix.EACCES) || unix.Statfs(path, &fs) != nil || fs.Flags&unix.ST_NOEXEC == 0 {
		return ""
	}
	return "; its file system is mounted noexec: name a folder of another one with TARE_STATE"
}

// StartTied is Start for a program that may use all CPUs and is killed when Tare ends, however that ends.
func StartTied(cmd *exec.Cmd) (*Process, error) {
	p := newProcess(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		// A child's parent-death signal comes when the thread that made it ends, and Go ends threads when it likes.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// newProcess has the program's session and output as Start says.
func newProcess(cmd *exec.Cmd) *Process {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &p.said
	if cmd.Stdout == nil {
		cmd.Stdout = &p.said
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.WaitDelay = time.Second // what the program leaves behind may hold its output open
	return p
}

// wait sees the process's end.
func (p *Process) wait() {
	_ = p.cmd.Wait() // its error says how the process ended, as its state does
	close(p.done)
}

// Name is the program's, without its folder.
func (p *Process) Name() string { return filepath.Base(p.cmd.Path) }

// PID is the process's id, also after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// State says how the process ended, once it has.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

// Succeeded says whether the process, which has ended, did so with exit status 0.
func (p *Process) Succeeded() bool { return p.cmd.ProcessState.Success() }

// Said is the last of what the process printed.
func (p *Process) Said() string { return strings.TrimSpace(p.said.String()) }

// Ended says how the process ended and the last of what it printed; it waits up to a second for the end, since the
// one who asks may have learned of it first by a closed stream.
func (p *Process) Ended() string {
	how := ""
	select {
	case <-p.done:
		how = "it ended: " + p.State()
	case <-time.After(time.Second):
		how = "it is still running"
	}
	if said := p.Said(); said != "" {
		how += "; it said: " + said
	}
	return how
}

// End waits until the process has ended by itself or the grace is over, then kills it and waits for its end, at
// most until ctx is done.
func (p *Process) End(ctx context.Context, grace time.Duration) error {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) { // one that ended just now is known to have in a moment
		return fmt.Errorf("killing process %d (%s): %w", p.PID(), p.cmd.Path, err)
	}
	// A killed process ends unless the kernel holds it; that is worth an error, and not an endless wait.
	t.Reset(10 * time.Second)
	select {
	case <-p.done:
		return nil
	case <-t.C:
		return fmt.Errorf("process %d (%s) lives on 10 s after it was killed: the kernel holds it (see /proc/%[1]d/stack)", p.PID(), p.cmd.Path)
	}
}
