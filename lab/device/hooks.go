//go:build linux

package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// hookTime is the time limit of a hook whose description sets none.
const hookTime = 10 * time.Second

// early are the moments of hooks that run on the host before a container's first process starts, in order. The runtime
// specification replaced the name prestart by createRuntime.
var early = [][]string{{"prestart", "createRuntime"}, {"createContainer"}}

// Late returns the first hook that Run cannot run: one that runs in the container, or after its first process has started.
func Late(hooks []Hook) (h Hook, is bool) {
	i := slices.IndexFunc(hooks, func(h Hook) bool { return !slices.Contains(slices.Concat(early...), h.When) })
	if i < 0 {
		return h, false
	}
	return hooks[i], true
}

// Run runs the hooks in this process's namespaces, as a runtime does for a container that it makes: one after the other, each with
// the container's state on its standard input. The container has this id, and its root is mounted at root with everything that its
// devices bring. The folder bundle gets a configuration that says so. Run ends what a hook leaves running in its process group. It
// ends the hook and its group when the time is over.
func Run(ctx context.Context, hooks []Hook, id, root, bundle string) error {
	if h, is := Late(hooks); is {
		return fmt.Errorf("the hook %s must run at %s, after the container's first process has been created; only a container runtime can run it", h.Path, h.When)
	}
	configuration, err := json.Marshal(specs.Spec{Version: specs.Version, Root: &specs.Root{Path: root}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), configuration, 0o600); err != nil {
		return err
	}
	// The container has no process yet, and Tare is in its future namespaces.
	state, err := json.Marshal(specs.State{Version: specs.Version, ID: id, Status: specs.StateCreating, Pid: os.Getpid(), Bundle: bundle})
	if err != nil {
		return err
	}
	for _, moment := range early {
		for _, h := range hooks {
			if !slices.Contains(moment, h.When) {
				continue
			}
			if err := h.run(ctx, state, bundle); err != nil {
				return fmt.Errorf("hook of a device, %s (%s): %w", strings.Join(append([]string{h.Path}, h.Args[min(1, len(h.Args)):]...), " "), h.When, err)
			}
		}
	}
	return nil
}

func (h Hook) run(ctx context.Context, state []byte, dir string) error {
	limit := hookTime
	if h.Timeout != nil && *h.Timeout > 0 {
		limit = time.Duration(*h.Timeout) * time.Second
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, h.Path)
	if len(h.Args) > 0 {
		cmd.Args = h.Args
	}
	cmd.Env = append([]string{}, h.Env...) // an empty list, so that the hook does not inherit Tare's environment
	cmd.Dir = dir
	var said proc.Tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(state), &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = time.Second      // for processes that have left the group and hold the output open
	err := proc.Apart(func() error { // on one thread, because the hook dies with the thread that started it
		if err := cmd.Start(); err != nil {
			return err
		}
		// Before it is waited for, no other process or group can have its number.
		for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		_ = group() // an error means that nothing is left running
		return cmd.Wait()
	})
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // the hook succeeded
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("it did not end within %v, and was killed", limit)
	}
	text := strings.TrimSpace(said.String())
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; its last output: %s", err, text[strings.LastIndexByte(text, '\n')+1:])
}
