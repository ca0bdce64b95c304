//go:build linux

package ruler

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// MaxHookState is the greatest size of a container's state that a runtime may pass to a hook, in bytes.
const MaxHookState = 1 << 20

// HookArgs are the arguments with which the ruler's program becomes a container's hook: the program at path with these arguments
// (the first is its name).
//
// A runtime writes the container's state to a hook's standard input. crun fails the container with EPIPE if the hook ends, or
// closes its input, before it has written everything, although the runtime specification does not require hooks to read it. The
// ruler reads all of it, so the write succeeds whatever the hook does.
func HookArgs(path string, args []string) []string {
	if len(args) == 0 {
		args = []string{path}
	}
	return append([]string{"ruler", "--hook", path, "--"}, args...)
}

// becomeHook reads standard input to its end and becomes the program at path, which finds the same bytes on its own standard input.
// It returns only on failure.
func becomeHook(path string, args []string) error {
	state, err := io.ReadAll(io.LimitReader(os.Stdin, MaxHookState+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the container's state: %w", err)
	case len(state) > MaxHookState:
		return fmt.Errorf("the container's state has more than %d bytes", MaxHookState)
	case len(args) == 0:
		return errors.New("a hook needs its name as its first argument")
	}
	fd, err := unix.MemfdCreate("state", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "the container's state")
	if _, err := f.Write(state); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := unix.Dup3(fd, 0, 0); err != nil { // without close-on-exec
		return fmt.Errorf("dup2: %w", err)
	}
	return fmt.Errorf("%s: %w", path, unix.Exec(path, args, os.Environ()))
}
