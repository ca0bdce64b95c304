//go:build linux

package lxc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

const (
	streamFD   = 3           // the file of CRIU that becomes the restored ruler's stream: lxc-checkpoint closes 0 and 1
	settleTime = time.Minute // time limit for LXC to notice that its container has ended
)

// restorerOf is the path of the program that saves and restores what the given lxc-start makes.
func restorerOf(program string) string { return filepath.Join(filepath.Dir(program), "lxc-checkpoint") }

// plain are the paths that mean themselves in CRIU's configuration and in a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9/._-]+$`)

var _ engine.Saver = (*guest)(nil)

// Save implements engine.Saver: `lxc-checkpoint --stop`, which ends the container. Its files stay on the disk.
func (g *guest) Save(ctx context.Context) (s engine.Saved, err error) {
	cannot := func(why string) error { return Kind.Unsupported("a saved state", why) }
	switch refused := g.state.Refused(g.Spec.NetworkMode()); {
	case refused != "":
		return s, cannot(refused)
	case g.Spec.Moments == nil:
		return s, cannot("CRIU cannot save this container's standard files; Tare saves only containers whose start it times")
	case !plain.MatchString(g.Folder):
		return s, cannot(fmt.Sprintf("CRIU's configuration and its calls of a shell cannot name the folder %q; name another with TARE_STATE", g.Folder))
	}
	// LXC's monitor is the parent of the container's first process, and removes the container's cgroups when that has ended.
	monitor, err := g.monitor()
	if err != nil {
		return s, err
	}
	defer unix.Close(monitor)
	g.state.Folder, g.state.Options = g.Folder, "empty-ns net\n" // Tare connects the restored container's empty network namespace
	defer func() {
		if err != nil {
			err = errors.Join(err, g.state.Close())
		}
	}()
	if err := g.state.Keep(g.RulerPID()); err != nil {
		return s, err
	}
	if err := g.state.Dump(ctx, g.checkpoint("--stop")); err != nil {
		ended, perr := unix.Poll([]unix.PollFd{{Fd: int32(monitor), Events: unix.POLLIN}}, 0)
		if perr == nil && ended == 0 && ctx.Err() == nil { // CRIU lets the container go on
			return s, cannot(err.Error())
		}
		return s, err
	}
	settled, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := proc.AwaitEnd(settled, monitor); err != nil {
		return s, fmt.Errorf("LXC's monitor, after its container was saved: %w", err)
	}
	if err := removeCgroups(ctx, engine.ContainerName(g.Spec.ID)); err != nil { // the monitor leaves its own
		return s, err
	}
	if err := g.Connection.Unplug(); err != nil {
		return s, err
	}
	if err := g.state.Expect(streamFD, "pidfile "+g.state.PIDFile()+"\n"); err != nil {
		return s, err
	}
	return g.state.Record(notebook.Say("saved-by-lxc"))
}

// monitor opens the process that holds the container.
func (g *guest) monitor() (pidfd int, err error) {
	pid, err := proc.Parent(g.PID)
	if err != nil {
		return 0, err
	}
	if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return 0, fmt.Errorf("LXC's monitor: %w", err)
	}
	// The number may have been another process's by the time it was opened, so look at the parent again.
	if now, err := proc.Parent(g.PID); err != nil || now != pid {
		unix.Close(pidfd)
		return 0, errors.Join(fmt.Errorf("LXC's monitor, process %d, has ended", pid), err)
	}
	return pidfd, nil
}

// checkpoint is a call of lxc-checkpoint for the container.
func (g *guest) checkpoint(verb string, more ...*os.File) *exec.Cmd {
	cmd := exec.Command(g.restorer, verb, "--name", engine.ContainerName(g.Spec.ID), "--rcfile", g.file("lxc.conf"),
		"--checkpoint-dir", g.state.Dir(), "--logfile", g.file("lxc-checkpoint.log"), "--logpriority", "ERROR")
	cmd.ExtraFiles = more
	return cmd
}

func (g *guest) file(name string) string { return filepath.Join(g.Folder, name) }

// Restore implements engine.Saver: `lxc-checkpoint --restore`, in new namespaces and new cgroups.
func (g *guest) Restore(ctx context.Context, m *engine.Moments) (err error) {
	restore := g.checkpoint("--restore", g.state.Stream())
	if err := g.onItsCPUs(restore); err != nil {
		return err
	}
	if err := g.state.Restore(ctx, restore); err != nil {
		return err
	}
	m.Mark(notebook.MomentRestored)
	if g.PID, err = g.state.PID(); err != nil {
		return err
	}
	return errors.Join(g.state.Close(), g.Plug(), g.FindCgroup(), g.LimitsInForce(g.Spec.ContainerLimits()))
}

// setCPUs is the script that CRIU calls at each step of a restore. LXC makes the cgroup without a CPU set, and CRIU sets none, so the script
// sets it before CRIU makes the processes.
const setCPUs = `#!/bin/sh
[ "$CRTOOLS_SCRIPT_ACTION" != pre-restore ] || printf %s "$TARE_CPUS" >"$TARE_CPUSET/cpuset.cpus"
`

// onItsCPUs makes the restore give the container its CPU set.
func (g *guest) onItsCPUs(restore *exec.Cmd) error {
	cpus := g.Spec.ContainerLimits().CPUs
	if cpus == "" {
		return nil
	}
	all, err := cgroup.Mounted()
	if err != nil {
		return err
	}
	of := slices.IndexFunc(all, func(h cgroup.Hierarchy) bool { return h.Has("cpuset") })
	if of < 0 {
		return errors.New("the cgroup controller cpuset is missing on this host; LXC needs it to restore a container with a CPU set; enable it")
	}
	script := g.file("set-cpus")
	restore.Args = append(restore.Args, "--action-script", script)
	restore.Env = append(os.Environ(), "TARE_CPUS="+cpus, "TARE_CPUSET="+filepath.Join(all[of].At, engine.ContainerName(g.Spec.ID)))
	return os.WriteFile(script, []byte(setCPUs), 0o700)
}
