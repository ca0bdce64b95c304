//go:build linux

// Package criu saves and restores the processes of a container with CRIU, which an engine's own program calls.
//
// CRIU cannot save a connection when it sees only one end, and it sees only the ruler's end of the stream between the ruler and Tare. The
// configuration therefore declares the socket external. For the restore it names the open file that takes the socket's place. Tare holds
// the ruler's end open between saving and restoring, so that neither end sees a disconnection.
package criu

import (
	"bytes"
	"context"
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

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// Program saves and restores processes; Install says how to install it.
const (
	Program = "criu"
	Install = "scripts/criu, or apt-get install criu of version 4.1 or later"
)

// Names in a guest's folder.
const (
	stateName  = "state"     // folder with what CRIU saved
	configName = "criu.conf" // CRIU's options in addition to those that the engine's program gives it
	pidName    = "pid"       // process id of the restored container's first process
)

// Logs of CRIU in its folder, by the name that runc and LXC give them.
const (
	dumpLog    = "dump.log"
	restoreLog = "restore.log"
)

// State is the saved state of one container.
type State struct {
	Folder  string // of the guest
	Options string // lines of CRIU's configuration, for saving and for restoring
	Saved   bool   // Tare saves a container only once

	stream *os.File // the ruler's end of its stream, from Keep to Close
	inode  uint64   // inode of the stream's socket, by which CRIU names it
}

// Dir is the folder with what CRIU saved.
func (s *State) Dir() string { return s.path(stateName) }

// PIDFile is where the restored container's first process is named.
func (s *State) PIDFile() string { return s.path(pidName) }

func (s *State) path(name string) string { return filepath.Join(s.Folder, name) }

// Refused says why a container in that mode of network cannot be saved with CRIU; "" where nothing speaks against it.
func (s *State) Refused(network string) string {
	switch {
	case s.Saved:
		return "Tare saves a container only once"
	case network == notebook.NetHost:
		return "it is in the host's network, and CRIU would save the host's connections too"
	}
	return Missing()
}

// Missing says that CRIU is not installed, and how to install it; "" where it is.
func Missing() string {
	if _, err := exec.LookPath(Program); err != nil {
		return Program + " is not installed; install it (" + Install + ")"
	}
	return ""
}

// Keep makes the folder of the state, duplicates the only socket of the ruler's process, and writes the configuration for saving. Close
// closes the duplicate.
func (s *State) Keep(ruler int) error {
	if err := os.Mkdir(s.Dir(), 0o700); err != nil {
		return err
	}
	if err := s.keepStream(ruler); err != nil {
		return err
	}
	return s.configure(fmt.Sprintf("external unix[%d]\n", s.inode))
}

func (s *State) keepStream(pid int) error {
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
		if s.inode, err = strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 64); err != nil {
			return fmt.Errorf("the ruler's socket %q: %w", to, err)
		}
		fd, err := unix.PidfdGetfd(pidfd, n, 0)
		if err != nil {
			return fmt.Errorf("the ruler's end of its stream: %w", err)
		}
		s.stream = os.NewFile(uintptr(fd), "the ruler's end of its stream")
		return nil
	}
	return fmt.Errorf("the ruler, process %d, has no socket open", pid)
}

// Stream is the ruler's end of its stream, which the restored ruler needs.
func (s *State) Stream() *os.File { return s.stream }

// Close closes the ruler's end of its stream, which now belongs to the restored ruler, or to nobody.
func (s *State) Close() (err error) {
	if s.stream != nil {
		err = s.stream.Close()
		s.stream = nil
	}
	return err
}

// Expect writes the configuration for restoring: the open file fd becomes the ruler's stream. more adds lines to the configuration.
func (s *State) Expect(fd int, more ...string) error {
	return s.configure(fmt.Sprintf("ext-unix-sk\ninherit-fd fd[%d]:socket:[%d]\n", fd, s.inode) + strings.Join(more, ""))
}

// configure writes CRIU's options. The other ends of connections do not wait, and CRIU closes the connections. So it need not hold back
// packets while it saves.
func (s *State) configure(more string) error {
	return os.WriteFile(s.path(configName), []byte("tcp-close\nnetwork-lock skip\n"+s.Options+more), 0o600)
}

// Record is what an engine says of the saved state, with the size of the files that CRIU saved. how says what saved it.
func (s *State) Record(how *notebook.Message) (engine.Saved, error) {
	saved := engine.Saved{How: how, Path: s.Dir()}
	err := filepath.WalkDir(saved.Path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			saved.Bytes += i.Size()
		}
		return err
	})
	return saved, err
}

// PID is the restored container's first process, by PIDFile.
func (s *State) PID() (int, error) {
	text, err := os.ReadFile(s.PIDFile())
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("the file with the restored container's process: %w", err)
	}
	return pid, nil
}

// Dump runs a command that has CRIU save the container and end it. The error has CRIU's reason.
func (s *State) Dump(ctx context.Context, cmd *exec.Cmd) error {
	err := s.run(ctx, cmd, "saving", dumpLog)
	s.Saved = err == nil
	return err
}

// Restore runs a command that has CRIU restore the container. The error has CRIU's reason.
func (s *State) Restore(ctx context.Context, cmd *exec.Cmd) error {
	return s.run(ctx, cmd, "restoring", restoreLog)
}

// run runs a command that calls CRIU, which writes the log into Dir. The output goes to a file of that name in the guest's folder, because
// a restored container keeps it open. When ctx ends, both are killed.
func (s *State) run(ctx context.Context, cmd *exec.Cmd, said, log string) error {
	out, err := os.OpenFile(s.path(said), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	// CRIU reads this file once. It reads a runtime's configuration of CRIU (the annotation org.criu.config) twice, and closes the
	// inherited file before the second time.
	cmd.Env = append(cmd.Environ(), variable(s.Folder))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C must reach only Tare
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	if err = cmd.Wait(); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, why(filepath.Join(s.Dir(), log), s.path(said)))
}

// variable returns the environment variable that names CRIU's configuration file for the guest of a folder. CRIU inherits it from the
// engine's program.
func variable(folder string) string { return "CRIU_CONFIG_FILE=" + filepath.Join(folder, configName) }

// End kills every process that makes, saves or restores the guest of a folder: the engine's programs (absolute paths), and CRIU, which outlives the
// program that called it. Call End before anything is removed, because CRIU would make the container's cgroups again. A process that CRIU traces does
// not end before CRIU.
func End(ctx context.Context, folder string, programs ...string) error {
	return proc.EndAll(ctx, folder, programs, variable(folder))
}

// mounts is the folder, named in CRIU's log, in which CRIU assembles a container's mounts.
var mounts = regexp.MustCompile(`/tmp/\.criu\.mntns\.[A-Za-z0-9]{6}`)

// RemoveMounts removes the empty folder that a killed restore leaves in /tmp. folder is the guest's, whose log names it.
func RemoveMounts(folder string) error {
	log, err := os.ReadFile(filepath.Join(folder, stateName, restoreLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if left := mounts.Find(log); left != nil {
		if err := os.Remove(string(left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// passCred is in CRIU's log where the kernel does not support SO_PASSCRED: from Linux 6.16 on only Unix sockets have it.
const passCred = "Can't get 1:16 opt: Operation not supported"

// whyLines is the number of CRIU's error lines in a message. The line that matters is rarely the last.
const whyLines = 3

// why is what CRIU's log says of a failure or, without a log, what the engine's program printed.
func why(log, said string) string {
	if text, err := os.ReadFile(log); err == nil {
		if bytes.Contains(text, []byte(passCred)) {
			return "CRIU before 4.2 cannot save a container with an Internet socket on Linux 6.16 or later; install CRIU 4.2 or later"
		}
		if all := failures(text, proc.Name); len(all) > 0 {
			return strings.Join(all[:min(len(all), whyLines)], "; ")
		}
	}
	var tail proc.Tail
	if text, err := os.ReadFile(said); err == nil {
		_, _ = tail.Write(text)
	}
	return strings.TrimSpace(tail.String())
}

// subject is the process that an error in CRIU's log is about.
var subject = regexp.MustCompile(` for ([0-9]+)$`)

// failures are the errors in CRIU's log, with the name of the process that an error is about. It skips those about RLIMIT_NOFILE, because
// CRIU continues where it cannot raise the limit.
func failures(log []byte, name func(pid int) string) (all []string) {
	for line := range bytes.Lines(log) {
		_, what, is := strings.Cut(string(line), "Error ")
		if !is || strings.Contains(what, "RLIMIT_NOFILE") {
			continue
		}
		what = strings.TrimSpace(what)
		if of := subject.FindStringSubmatch(what); of != nil {
			if pid, err := strconv.Atoi(of[1]); err == nil {
				if named := name(pid); named != "" { // a container that cannot be saved goes on
					what += " (" + named + ")"
				}
			}
		}
		all = append(all, "Error "+what)
	}
	return slices.Compact(all)
}
