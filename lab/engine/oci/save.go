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

// criu is the program that saves and restores processes for the runtime; criuInstall says how to install it.
const (
	criu        = "criu"
	criuInstall = "scripts/criu, or apt-get install criu of version 4.1 or later"
)

// Names in a guest's folder.
const (
	stateName     = "state"     // folder with what CRIU saved
	configName    = "criu.conf" // CRIU's options in addition to those that the runtime gives it
	pidName       = "pid"       // process id of the restored container's first process
	savingSaid    = "saving"    // output of the runtime
	restoringSaid = "restoring" // the same, and output of the restored container
	settleTime    = time.Minute // time limit for a runtime to notice that its container runs, or has ended
	settlePause   = 5 * time.Millisecond
	streamFD      = 0 // the file of CRIU that becomes the restored ruler's stream
)

// container is a guest of a runtime that can save it with CRIU.
//
// CRIU cannot save a connection if it sees only one end, as of the ruler's connection. The configuration therefore declares the socket
// external. For the restore it names the open file that takes the socket's place. This program keeps the ruler's end in between, so
// that neither end sees a disconnection.
type container struct {
	engine.Base
	driver *Driver
	stream *os.File // the ruler's end, from Save to Restore
	inode  uint64   // inode of the stream's socket, by which CRIU names it
	saved  bool
}

var _ engine.Saver = (*container)(nil)

// Save implements engine.Saver: `runc checkpoint`, which ends the container. Its files stay on the disk.
func (g *container) Save(ctx context.Context) (s engine.Saved, err error) {
	cannot := func(why string) error { return g.driver.Kind.Unsupported("a saved state", why) }
	switch {
	case g.saved:
		return s, cannot("Tare saves a container only once")
	case g.Spec.NetworkMode() == notebook.NetHost:
		return s, cannot("it is in the host's network, and CRIU would save the host's connections too")
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
	// The other ends of connections do not wait, and CRIU closes the connections. So it need not hold back packets while it saves.
	const both = "tcp-close\nnetwork-lock skip\n"
	if err := os.WriteFile(g.path(configName), fmt.Appendf(nil, "%sexternal unix[%d]\n", both, g.inode), 0o600); err != nil {
		return s, err
	}
	if err := g.tell(ctx, savingSaid, nil, "dump.log", "checkpoint"); err != nil {
		select {
		case <-g.Process.Done():
		default:
			if ctx.Err() == nil { // CRIU lets the container go on
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

// keepStream copies the ruler's end of its stream, which is its only socket.
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
		if err != nil || !is { // just closed, or not a socket
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

// Restore implements engine.Saver: `runc restore`, in new namespaces and a new cgroup.
func (g *container) Restore(ctx context.Context, m *engine.Moments) error {
	if err := g.tell(ctx, restoringSaid, g.stream, restoreLog, "restore", "--detach", "--bundle", g.Folder, "--pid-file", g.path(pidName)); err != nil {
		return err
	}
	m.Mark(notebook.MomentRestored)
	g.Process = nil // no program holds it
	text, err := os.ReadFile(g.path(pidName))
	if err != nil {
		return err
	}
	if g.PID, err = strconv.Atoi(string(text)); err != nil {
		return fmt.Errorf("%s's file with the restored container's process: %w", g.driver.Kind.Program, err)
	}
	return errors.Join(g.Close(), g.Plug(), g.FindCgroup())
}

// restoreLog is CRIU's log of a restore, in the folder with the saved state.
const restoreLog = "restore.log"

// yard is the folder, named in CRIU's log, in which CRIU assembles a container's mounts.
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

// Close closes the ruler's end, which now belongs to the restored ruler, or to nobody.
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

// tell calls the runtime for an operation with CRIU, which writes the log. The output goes to a file in the guest's folder, because
// a restored container keeps it open. When ctx ends, both are killed.
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
	// CRIU reads this file once. It reads the runtime's configuration of CRIU (the annotation org.criu.config) twice, and closes
	// the inherited file before the second time.
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

// passCred is in CRIU's log where the kernel does not support SO_PASSCRED.
const passCred = "Can't get 1:16 opt: Operation not supported"

// whyLines is the number of CRIU's error lines in a message. The line that matters is rarely the last.
const whyLines = 3

// why is what CRIU's log says of a failure or, without a log, what the runtime printed.
func (g *container) why(log, said string) string {
	if text, err := os.ReadFile(log); err == nil {
		var all []string
		for line := range bytes.Lines(text) {
			// CRIU continues without a limit of open files as high as it wants.
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
