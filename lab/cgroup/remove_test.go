//go:build linux

package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/proc"
	"tare/lab/proc/proctest"
)

// TestMain is also a program that keeps making processes.
func TestMain(m *testing.M) {
	if os.Getenv("TARE_TEST_FORK") != "" {
		forkForEver()
	}
	os.Exit(m.Run())
}

// testContext ends before the test would be given up.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// cgroupTop is where the memory hierarchy of version 1 ("cgroup") or that of version 2 ("cgroup2") is mounted.
func cgroupTop(t *testing.T, fstype string) string {
	t.Helper()
	mounts, err := proc.Host.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if m.FSType == fstype && (fstype == "cgroup2" || slices.Contains(strings.Split(m.VFSOptions, ","), "memory")) {
			return m.Mountpoint
		}
	}
	return ""
}

// makeGroup makes a cgroup until the end of the test.
func makeGroup(t *testing.T, top, name string) string {
	t.Helper()
	dir := filepath.Join(top, fmt.Sprintf("tare-test-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func enter(t *testing.T, dir string, pid int) {
	t.Helper()
	if err := os.WriteFile(dir+"/cgroup.procs", fmt.Append(nil, pid), 0); err != nil {
		t.Fatal(err)
	}
}

// forkForEver makes children that make children: always some live, none for long.
func forkForEver() {
	for {
		cmd := exec.Command("/bin/sh", "-c", "sleep 0.01 & sleep 0.01 & sleep 0.02")
		if err := cmd.Run(); err != nil {
			os.Exit(1)
		}
	}
}

func TestRemove(t *testing.T) {
	require.Root(t)
	for _, fstype := range []string{"cgroup", "cgroup2"} {
		t.Run(fstype, func(t *testing.T) {
			top := cgroupTop(t, fstype)
			require.That(t, top != "", "a mounted "+fstype+" hierarchy")
			dir := makeGroup(t, top, "remove")
			below := mkdir(t, dir, "a", "b")
			mkdir(t, dir, "c")
			// A program that keeps making processes while it is killed.
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "TARE_TEST_FORK=1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			enter(t, below, cmd.Process.Pid)
			deadline := time.Now().Add(10 * time.Second)
			for {
				pids, err := Procs(dir)
				if err != nil {
					t.Fatal(err)
				}
				if len(pids) > 1 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("only %v in the cgroup", pids)
				}
				time.Sleep(time.Millisecond)
			}
			if err := Remove(testContext(t), dir); err != nil {
				t.Fatal(err)
			}
			if exists(dir) || proctest.Alive(cmd.Process.Pid) {
				t.Errorf("left: the cgroup %v, the process %v", exists(dir), proctest.Alive(cmd.Process.Pid))
			}
			if err := Remove(testContext(t), dir); err != nil {
				t.Errorf("what is not there: %v", err)
			}
			if pids, err := Procs(dir); err != nil || len(pids) > 0 {
				t.Errorf("processes of what is not there: %v, %v", pids, err)
			}
			if err := Remove(testContext(t), top); err == nil {
				t.Error("the root of the hierarchy is not refused")
			}
		})
	}
}

func TestRemoveThatIsFrozen(t *testing.T) {
	require.Root(t)
	// Version 1 has a hierarchy for it, version 2 a file in every cgroup.
	top := cgroupTop(t, "cgroup2")
	file, value := "cgroup.freeze", "1"
	if g, err := host.find("self", "freezer"); err == nil && g.Version == 1 && g.Dir != "" {
		top, file, value = g.Top, "freezer.state", "FROZEN"
	}
	require.That(t, top != "", "a mounted freezer")
	dir := makeGroup(t, top, "frozen")
	cmd := proctest.Start(t, "sleep", "60")
	enter(t, dir, cmd.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	if err := Remove(testContext(t), dir); err != nil || proctest.Alive(cmd.Process.Pid) {
		t.Errorf("Remove = %v, alive %v", err, proctest.Alive(cmd.Process.Pid))
	}
}

func TestRemoveRefusesWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, "/proc", "relative", "/"} {
		if err := Remove(testContext(t), path); err == nil {
			t.Errorf("Remove(%q): got no error", path)
		}
	}
	if !exists(dir) {
		t.Error("it was removed")
	}
}

func TestRemoveNeverKillsItself(t *testing.T) {
	require.Root(t)
	own, err := Of(os.Getpid(), "pids")
	if err != nil {
		t.Fatal(err)
	}
	require.That(t, own != "", "a mounted cgroup hierarchy with pids")
	g, err := host.find("self", "pids")
	if err != nil {
		t.Fatal(err)
	}
	dir := makeGroup(t, g.Top, "self")
	enter(t, dir, os.Getpid())
	err = Remove(testContext(t), dir)
	enter(t, own, os.Getpid())
	if err == nil || !strings.Contains(err.Error(), "this process") {
		t.Errorf("Remove = %v", err)
	}
}
