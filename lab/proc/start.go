//go:build linux

package proc

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Apart runs f on its own thread, which ends with it, so that changes of f to the thread never affect Tare's others.
func Apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The process's first thread never ends, and /proc/self is its view. Keep it, so that the goroutine below gets another
			// one.
			defer runtime.UnlockOSThread()
			done <- Apart(f)
			return
		}
		done <- f() // the thread, never unlocked, ends with this goroutine
	}()
	return <-done
}

// Tie makes a program, which was made by exec.CommandContext, end with this process, however that dies, and with all that it started when its
// context is done. It gets its own process group, so that a Ctrl-C reaches only Tare. Tie keeps the calling thread, because the kernel's
// parent-death signal comes when the thread that made the program ends: start the program next, and call release when it has ended.
func Tie(cmd *exec.Cmd) (release func()) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &unix.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, unix.SIGKILL
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// Run runs a program to its end, as Tie has it, and returns its output.
func Run(cmd *exec.Cmd) ([]byte, error) {
	defer Tie(cmd)()
	cmd.WaitDelay = time.Second // what it started may hold its output open
	return cmd.CombinedOutput()
}

// Bind binds a thread to CPUs; 0 is the calling thread.
func Bind(tid int, cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(tid, &set)
}

// Tail keeps the last 4 KiB written to it: the part of a program's output that may say why it ended.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4096

// Write implements io.Writer.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b[max(0, len(b)-tailSize):]...)
	t.b = t.b[max(0, len(t.b)-tailSize):]
	return len(b), nil
}

// String is the kept text, as valid UTF-8.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "?")
}
