//go:build linux

package proc

import (
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Apart runs f on a thread of its own, which ends with it: what f changes about the thread, Tare's others never have.
func Apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The process's first thread never ends, and /proc/self is its view. Held here, it is not the next one.
			defer runtime.UnlockOSThread()
			done <- Apart(f)
			return
		}
		done <- f() // and the thread, never unlocked, ends with this goroutine
	}()
	return <-done
}

// Bind binds a thread to CPUs; 0 is the one that calls.
func Bind(tid int, cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(tid, &set)
}

// Tail keeps the last of what is written to it, 4 KiB: of what a program says, that which may tell why it ended.
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

// String is what was kept, as valid UTF-8.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "?")
}
