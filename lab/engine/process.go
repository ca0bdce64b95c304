//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Process is a program that a driver started on the host for a guest. A goroutine waits for it from the start, so that its end is
// known at once.
type Process struct {
	cmd  *exec.Cmd
	said proc.Tail
	done chan struct{}
}

// Start starts cmd in a session of its own, because a Ctrl-C must reach only Tare, which then ends its guests in order. It keeps
// the end of the output, unless the output goes elsewhere. The program may use only the given CPUs, from its first instruction on;
// nil: all of Tare's own. setUp runs just before, on the thread that starts the program, which inherits what setUp does to the
// thread.
func Start(cmd *exec.Cmd, cpus []int, setUp ...func() error) (*Process, error) {
	p := newProcess(cmd)
	// A child inherits the affinity and the namespaces of the thread that made it.
	if cpus != nil {
		setUp = append(setUp[:len(setUp):len(setUp)], func() error {
			if err := proc.Bind(0, cpus); err != nil {
				return fmt.Errorf("setting its CPUs to %v: %w; are they all online?", cpus, err)
			}
			return nil
		})
	}
	err := proc.Apart(func() error { return startAfter(cmd, setUp) })
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w%s", cmd.Path, err, noExec(err, cmd.Path))
	}
	go p.wait()
	return p, nil
}

// startAfter starts cmd on the calling thread, after setUp, which changes what cmd inherits from it.
func startAfter(cmd *exec.Cmd, setUp []func() error) error {
	for _, f := range setUp {
		if err := f(); err != nil {
			return err
		}
	}
	return cmd.Start()
}

// noExec explains a refused start where the program's file system is mounted noexec.
func noExec(err error, path string) string {
	var fs unix.Statfs_t
	if !errors.Is(err, unix.EACCES) || unix.Statfs(path, &fs) != nil || fs.Flags&unix.ST_NOEXEC == 0 {
		return ""
	}
	return "; its file system is mounted noexec: name a folder of another one with TARE_STATE"
}

// StartTied is Start for a program that may use all CPUs and that is killed when Tare ends, however Tare ends.
func StartTied(cmd *exec.Cmd, setUp ...func() error) (*Process, error) {
	p := newProcess(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	// A child's parent-death signal comes when the thread that made it ends, and Go may end threads at any time. So the thread waits
	// for the child.
	go proc.Apart(func() error {
		err := startAfter(cmd, setUp)
		started <- err
		if err == nil {
			p.wait()
		}
		return nil
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// newProcess sets the session and the output as described at Start.
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
	cmd.WaitDelay = time.Second // a child of the program may hold its output open
	return p
}

// wait waits for the process's end.
func (p *Process) wait() {
	_ = p.cmd.Wait() // the state says how the process ended
	close(p.done)
}

// Name is the program's name without its folder.
func (p *Process) Name() string { return filepath.Base(p.cmd.Path) }

// PID is the process's id, also after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the process a signal. A process that has ended gets none.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling process %d (%s): %w", p.PID(), p.cmd.Path, err)
	}
	return nil
}

// Done is closed when the process has ended and has been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// State says how the process ended. It is valid after its end.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

// Succeeded reports whether the process ended with exit status 0. It is valid after its end.
func (p *Process) Succeeded() bool { return p.cmd.ProcessState.Success() }

// Said is the end of the process's output.
func (p *Process) Said() string { return strings.TrimSpace(p.said.String()) }

// Ended says how the process ended, and the end of its output. It waits up to a second for the end, because the caller may have
// learned of it earlier from a closed stream.
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

// End waits until the process has ended by itself or the grace is over. Then it kills the process and waits for its end, at most
// until ctx is done.
func (p *Process) End(ctx context.Context, grace time.Duration) error {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) { // a process that has just ended will be waited for soon
		return fmt.Errorf("killing process %d (%s): %w", p.PID(), p.cmd.Path, err)
	}
	// A killed process ends unless the kernel blocks it, which must be an error, not an endless wait.
	t.Reset(10 * time.Second)
	select {
	case <-p.done:
		return nil
	case <-t.C:
		return fmt.Errorf("process %d (%s) still exists 10 s after it was killed: the kernel blocks its end (see /proc/%[1]d/stack)", p.PID(), p.cmd.Path)
	}
}
