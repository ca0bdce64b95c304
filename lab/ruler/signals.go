//go:build linux

package ruler

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct of rt_sigaction(2) on amd64 and, except for the restorer, on arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	sigDefault = 0
	sigIgnore  = 1
	lastSignal = 64
)

// heedSignals restores the default of every signal that this process was told to ignore, because children inherit ignored signals.
// Otherwise, under nohup, or under a make that ignores two real-time signals, bare metal's processes would start in another state
// than a container's.
func heedSignals() error {
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		if sig == uintptr(unix.SIGKILL) || sig == uintptr(unix.SIGSTOP) {
			continue
		}
		var a sigaction
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&a)), lastSignal/8, 0, 0); e != 0 {
			return fmt.Errorf("asking for the action of signal %d: %w", sig, e)
		}
		if a.handler != sigIgnore {
			continue
		}
		a = sigaction{handler: sigDefault}
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&a)), 0, lastSignal/8, 0, 0); e != 0 {
			return fmt.Errorf("no longer ignoring signal %d: %w", sig, e)
		}
	}
	return nil
}
