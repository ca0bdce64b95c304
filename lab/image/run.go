package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tare/lab/proc"
)

// killWait is how long a killed program's pipes may stay open, held by something that it started.
const killWait = 10 * time.Second

// run runs a program in its own process group, passes its standard output to consume (which may be nil), and returns when the
// program is gone. It kills the group when ctx is done, when consume fails, and when this process dies.
func run(ctx context.Context, setup func(*exec.Cmd), consume func(io.Reader) error, tool string, args ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, tool, args...)
	defer proc.Tie(cmd)()
	cmd.WaitDelay = killWait
	setup(cmd)
	var stdout io.Reader
	if consume != nil {
		var err error
		if stdout, err = cmd.StdoutPipe(); err != nil {
			return err
		}
	}
	name := filepath.Base(tool)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", name, err)
	}
	var consumed error
	if consume != nil {
		// A stream that ends too early is the program's own failure: let it end by itself and say why.
		if consumed = consume(stdout); consumed != nil && !errors.Is(consumed, io.ErrUnexpectedEOF) {
			cancel(consumed)
		}
	}
	err := cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("%s failed: %w", name, err)
	}
	return consumed
}

// outputTail is the end of an error: the last lines of a program's output, or nothing.
func outputTail(said *proc.Tail) string {
	lines := strings.FieldsFunc(said.String(), func(r rune) bool { return r == '\n' })
	if len(lines) == 0 {
		return ""
	}
	return "; its last words: " + strings.Join(lines[max(0, len(lines)-12):], " | ")
}
