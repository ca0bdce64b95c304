//go:build linux

package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// criu is the program that saves processes and restores them, for the runtime; criuInstall says how it is had.
const (
	criu        = "criu"
	criuInstall = "scripts/criu, or apt-get install criu where it is of version 4.1 or later"
)

// In a guest's folder.
const (
	stateName     = "state"     // the folder with what CRIU saved
	configName    = "criu.conf" // CRIU's options in addition to those that the runtime gives it
	pidName       = "pid"       // of the restored container's first process
	savingSaid    = "saving"    // what the runtime printed
	restoringSaid = "restoring" // the same; and what the restored container prints
	settleTime    = time.Minute // that a runtime may take to see that its container runs, or has ended
	settlePause   = 5 * time.Millisecond
	streamFD      = 0 // CRIU's file that the restored ruler goes on with
)

// container is a guest of a runtime that has CRIU save it.
//
// CRIU cannot save a connection if it has only one end, as of the ruler's connection. The configuration therefore declares the socket external. At the
// restore it names the open file that takes the socket's place. This program keeps the ruler's end in between, so that neither end sees a disconnection.
type container struct {
	engine.Base
	driver *Driver
	stream *os.File // the ruler's end, from Save to Restore
	inode  uint64   // its socket's, by which CRIU names it
	saved  bool
}

var _ engine.Saver = (*container)(nil)

// Save implements engine.Saver: `runc checkpoint`, which ends the container. What is on its disk stays there.
func (g *container) Save(ctx context.Context) (s engine.Saved, err error) {
	cannot := func(why string) error { return g.driver.Kind.Unsupported("a saved state", why) }
	switch {
	case g.saved:
		return s, cannot("Tare saves a container once")
	case g.Spec.NetworkMode() == notebook.NetHost:
		return s, cannot("it is in the host's network, whose connections CRIU would take for its own")
	}
	if _, err := exec.LookPath(criu); err != nil {
		return s, cannot(criu + " is not installed; install it (" + criuInstall + ")")
	}
	if err := g.running(ctx); err != nil {
		return s, err
	}
	if err := os.Mkdir(g.path(stateName), 0o700); err != nil {
		return s, err
	}
	if err := g.keepStream(); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	// The other ends of connections do not wait. CRIU closes the connections, so it need not hold back packets while it saves.
	const both = "tcp-close\nnetwork-lock skip\n"
	if err := os.WriteFile(g.path(configName), fmt.Appendf(nil, "%sexternal unix[%d]\n", both, g.inode), 0o600); err != nil {
		return s, err
	}
	if err := g.tell(ctx, savingSaid, nil, "dump.log", "checkpoint"); err != nil {
		select {
		case <-g.Process.Done():
		default:
			if ctx.Err() == nil { // CRIU lets it go on
				return s, cannot(err.Error())
			}
		}
		return s, err
	}
	g.saved = true
	if err := g.ended(ctx); err != nil {
		return s, err
	}
	if err := g.Connection.Unplug(); err != nil {
		return s, err
	}
	if err := g.noInput(); err != nil {
		return s, err
	}
	if err := os.WriteFile(g.path(configName), fmt.Appendf(nil, "%sext-unix-sk\ninherit-fd fd[%d]:socket:[%d]\n", both, streamFD, g.inode), 0o600); err != nil {
		return s, err
	}
	s.How, s.Path = notebook.Say("saved-by-criu"), g.path(stateName)
	return s, filepath.WalkDir(g.path(stateName), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			s.Bytes += i.Size()
		}
		return err
	})
}

func (g *container) path(name string) string { return filepath.Join(g.Folder, name) }

// keepStream takes a copy of the ruler's end of its stream, its only socket.
func (g *container) keepStream() error {
	pid := g.RulerPID()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("the ruler's process: %w", err)
	}
	defer unix.Close(pidfd)
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		to, err := os.Readlink(filepath.Join(dir, f.Name()))
		inode, is := strings.CutPrefix(to, "socket:[")
		if err != nil || !is { // it was closed just now, or is another thing
			continue
		}
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			return fmt.Errorf("the ruler's open file %q is not a number", f.Name())
		}
		if g.inode, err = strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 64); err != nil {
			return fmt.Errorf("the ruler's socket %q: %w", to, err)
		}
		fd, err := unix.PidfdGetfd(pidfd, n, 0)
		if err != nil {
			return fmt.Errorf("the ruler's end of its stream: %w", err)
		}
		g.stream = os.NewFile(uintptr(fd), "the ruler's end of its stream")
		return nil
	}
	return fmt.Errorf("the ruler, process %d, has no socket open", pid)
}

// running waits until the runtime holds the container to be running: the ruler may say hello before that. A container is merely created as long
// as the pipe is there by which runc starts it.
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
		case <-time.After(settlePause): // nothing tells when it is removed
		case <-late.C:
			return fmt.Errorf("%s has not started its container %v after the ruler said hello", g.driver.Kind.Program, settleTime)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ended waits until the runtime that held the container has seen its end, and has removed what it knew of it.
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

// noInput has the restored container's standard input end: the runtime would give it its own, which is the ruler's stream (streamFD). The ruler reads none.
func (g *container) noInput() error {
	const name = "descriptors.json"
	path := filepath.Join(g.path(stateName), name)
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

// Restore implements engine.Saver: `runc restore`, in namespaces and a cgroup that are new.
func (g *container) Restore(ctx context.Context, m *engine.Moments) error {
	if err := g.tell(ctx, restoringSaid, g.stream, restoreLog, "restore", "--detach", "--bundle", g.Folder, "--pid-file", g.path(pidName)); err != nil {
		return err
	}
	m.Mark(notebook.MomentRestored)
	g.Process = nil // it is nobody's but its own
	text, err := os.ReadFile(g.path(pidName))
	if err != nil {
		return err
	}
	if g.PID, err = strconv.Atoi(string(text)); err != nil {
		return fmt.Errorf("%s's file with the restored container's process: %w", g.driver.Kind.Program, err)
	}
	return errors.Join(g.Close(), g.Plug(), g.FindCgroup())
}

// restoreLog is CRIU's account of a restore, in the folder with the saved state.
const restoreLog = "restore.log"

// yard is a folder, named in CRIU's account, in which it puts a container's mounts together.
var yard = regexp.MustCompile(`/tmp/\.criu\.mntns\.[A-Za-z0-9]{6}`)

// clearYard removes the empty folder that CRIU leaves in /tmp when it is killed while it restores the container of that folder.
func clearYard(folder string) error {
	log, err := os.ReadFile(filepath.Join(folder, stateName, restoreLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if left := yard.Find(log); left != nil {
		if err := os.Remove(string(left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close lets go of the ruler's end, which is the restored ruler's, or nobody's.
func (g *container) Close() (err error) {
	if g.stream != nil {
		err = g.stream.Close()
		g.stream = nil
	}
	return err
}

// Destroy implements engine.Guest.
func (g *container) Destroy(ctx context.Context) error {
	return errors.Join(g.Close(), g.Base.Destroy(ctx))
}

// tell has the runtime do something to the container with CRIU, which writes that log. What is printed goes to a file of the guest's folder, which a
// restored container has open too. When ctx ends, both are killed.
func (g *container) tell(ctx context.Context, said string, input *os.File, log, verb string, more ...string) error {
	runtime, err := g.driver.Kind.LookUp()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(g.path(said), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	state := g.path(stateName)
	cmd := exec.CommandContext(ctx, runtime, slices.Concat([]string{"--root", states(g.Folder), verb, "--image-path", state, "--work-path", state, "--empty-ns", "network"},
		more, []string{engine.ContainerName(g.Spec.ID)})...)
	// CRIU reads this once. What the runtime names as CRIU's configuration (the annotation org.criu.config) it reads twice, and closes the inherited file
	// before the second time.
	cmd.Env = append(os.Environ(), "CRIU_CONFIG_FILE="+g.path(configName))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	if input != nil {
		cmd.Stdin = input
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C must reach only Tare
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err = cmd.Run(); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s %s: %w: %s", g.driver.Kind.Program, verb, err, g.why(filepath.Join(state, log), g.path(said)))
}

// passCred is in CRIU's log where it was told nothing of SO_PASSCRED.
const passCred = "Can't get 1:16 opt: Operation not supported"

// whyLines of CRIU's errors are repeated in a message: the first that counts is seldom the last.
const whyLines = 3

// why is what CRIU's log says of a failure, or, where there is none, what the runtime printed.
func (g *container) why(log, said string) string {
	if text, err := os.ReadFile(log); err == nil {
		var all []string
		for line := range bytes.Lines(text) {
			// CRIU goes on without more open files than it was given.
			if _, what, is := strings.Cut(string(line), "Error "); is && !strings.Contains(what, "RLIMIT_NOFILE") {
				all = append(all, "Error "+strings.TrimSpace(what))
			}
		}
		if bytes.Contains(text, []byte(passCred)) {
			return "it has an Internet socket, and CRIU before 4.2 queries it with SO_PASSCRED, which Linux 6.16 and later support only for Unix sockets"
		}
		if len(all) > 0 {
			return strings.Join(all[:min(len(all), whyLines)], "; ")
		}
	}
	var tail proc.Tail
	if text, err := os.ReadFile(said); err == nil {
		_, _ = tail.Write(text)
	}
	return strings.TrimSpace(tail.String())
}
