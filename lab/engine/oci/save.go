//go:build linux

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"tare/lab/engine"
	"tare/lab/engine/criu"
	"tare/notebook"
)

const (
	settleTime  = time.Minute // time limit for a runtime to notice that its container runs, or has ended
	settlePause = 5 * time.Millisecond
	streamFD    = 0 // the file of CRIU that becomes the restored ruler's stream
)

// container is a guest of a runtime that can save it with CRIU.
type container struct {
	engine.Base
	driver *Driver
	state  criu.State
}

var _ engine.Saver = (*container)(nil)

// Save implements engine.Saver: `runc checkpoint`, which ends the container. Its files stay on the disk.
func (g *container) Save(ctx context.Context) (s engine.Saved, err error) {
	cannot := func(why string) error { return g.driver.Kind.Unsupported("a saved state", why) }
	if refused := g.state.Refused(g.Spec.NetworkMode()); refused != "" {
		return s, cannot(refused)
	}
	if err := g.running(ctx); err != nil {
		return s, err
	}
	g.state.Folder = g.Folder
	defer func() {
		if err != nil {
			err = errors.Join(err, g.state.Close())
		}
	}()
	if err := g.state.Keep(g.RulerPID()); err != nil {
		return s, err
	}
	dump, err := g.command("checkpoint")
	if err != nil {
		return s, err
	}
	if err := g.state.Dump(ctx, dump); err != nil {
		select {
		case <-g.Process.Done():
		default:
			if ctx.Err() == nil { // CRIU lets the container go on
				return s, cannot(err.Error())
			}
		}
		return s, err
	}
	if err := g.ended(ctx); err != nil {
		return s, err
	}
	if err := g.Connection.Unplug(); err != nil {
		return s, err
	}
	if err := g.noInput(); err != nil {
		return s, err
	}
	if err := g.state.Expect(streamFD); err != nil {
		return s, err
	}
	return g.state.Record(notebook.Say("saved-by-criu"))
}

// running waits until the runtime considers the container running, because the ruler may say hello before that. A container is only
// created as long as the pipe exists by which runc starts it.
func (g *container) running(ctx context.Context) error {
	pipe := filepath.Join(states(g.Folder), engine.ContainerName(g.Spec.ID), "exec.fifo")
	late := time.NewTimer(settleTime)
	defer late.Stop()
	for {
		if _, err := os.Lstat(pipe); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-time.After(settlePause): // the removal gives no notice
		case <-late.C:
			return fmt.Errorf("%s has not started its container %v after the ruler said hello", g.driver.Kind.Program, settleTime)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ended waits until the runtime that held the container has seen its end and has removed its state.
func (g *container) ended(ctx context.Context) error {
	late := time.NewTimer(settleTime)
	defer late.Stop()
	select {
	case <-g.Process.Done():
		return nil
	case <-late.C:
		return fmt.Errorf("%s has not ended %v after its container was saved", g.Process.Name(), settleTime)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// noInput closes the restored container's standard input. Otherwise the runtime would pass on its own, which is the ruler's stream
// (streamFD). The ruler reads no input.
func (g *container) noInput() error {
	const name = "descriptors.json"
	path := filepath.Join(g.state.Dir(), name)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var files []string
	if err := json.Unmarshal(text, &files); err != nil || len(files) <= streamFD {
		return fmt.Errorf("%s's %s is %q; must be a list of the standard files", g.driver.Kind.Program, name, text)
	}
	files[streamFD] = os.DevNull
	if text, err = json.Marshal(files); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Restore implements engine.Saver: `runc restore`, in new namespaces and a new cgroup.
func (g *container) Restore(ctx context.Context, m *engine.Moments) error {
	restore, err := g.command("restore", "--detach", "--bundle", g.Folder, "--pid-file", g.state.PIDFile())
	if err != nil {
		return err
	}
	restore.Stdin = g.state.Stream()
	if err := g.state.Restore(ctx, restore); err != nil {
		return err
	}
	m.Mark(notebook.MomentRestored)
	g.Process = nil // no program holds it
	if g.PID, err = g.state.PID(); err != nil {
		return err
	}
	return errors.Join(g.state.Close(), g.Plug(), g.FindCgroup())
}

// Destroy implements engine.Guest.
func (g *container) Destroy(ctx context.Context) error {
	return errors.Join(g.state.Close(), g.Base.Destroy(ctx))
}

// command calls the runtime for an operation with CRIU.
func (g *container) command(verb string, more ...string) (*exec.Cmd, error) {
	runtime, err := g.driver.Kind.LookUp()
	if err != nil {
		return nil, err
	}
	return exec.Command(runtime, slices.Concat([]string{"--root", states(g.Folder), verb, "--image-path", g.state.Dir(), "--work-path", g.state.Dir(), "--empty-ns", "network"},
		more, []string{engine.ContainerName(g.Spec.ID)})...), nil
}
