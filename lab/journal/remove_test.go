//go:build linux

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/proc"
	"tare/lab/proc/proctest"
	"tare/lab/ruler/empty"
)

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// tmpfs mounts one until the end of the test.
func tmpfs(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("tare-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			t.Error(err)
		}
	})
}

func TestRemoveDir(t *testing.T) {
	state := t.TempDir()
	outside := filepath.Join(t.TempDir(), "precious")
	write(t, outside)
	dir := mkdir(t, state, "a", "b")
	mkdir(t, dir, "c", "d")
	for i := range 3000 {
		write(t, filepath.Join(dir, "c", fmt.Sprint(i)))
	}
	for _, link := range []string{"l", "c/d/l"} {
		if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemoveDir(testContext(t), state, dir); err != nil {
		t.Fatal(err)
	}
	if exists(dir) || !exists(filepath.Join(state, "a")) || !exists(outside) {
		t.Errorf("removed: dir %v, its parent %v, what a link led to %v", !exists(dir), !exists(filepath.Join(state, "a")), !exists(outside))
	}
	for _, gone := range []string{dir, dir + "/x/y"} {
		if err := RemoveDir(testContext(t), state, gone); err != nil {
			t.Errorf("what is not there: %v", err)
		}
	}
}

// A guest can make a tree that is deeper than any path may be long, or than descriptors can be had.
func TestRemoveDirThatIsVeryDeep(t *testing.T) {
	state := t.TempDir()
	dir := mkdir(t, state, "deep")
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		err := unix.Mkdirat(fd, "d", 0o755)
		child, err2 := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err := errors.Join(err, err2, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd = child
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(files.Cur, 256), Max: files.Max}); err != nil {
		t.Fatal(err)
	}
	if err := RemoveDir(testContext(t), state, dir); err != nil {
		t.Fatal(err)
	}
	if exists(dir) {
		t.Error("it is left")
	}
}

func TestRemoveDirRefuses(t *testing.T) {
	state := t.TempDir()
	outside := t.TempDir()
	write(t, outside+"/precious")
	if err := os.Symlink(outside, state+"/link"); err != nil {
		t.Fatal(err)
	}
	mkdir(t, outside, "dir")
	write(t, state+"/file")
	for _, path := range []string{outside, outside + "/dir", state, state + "/", state + "/../x", "relative", "",
		state + "/link", state + "/link/dir", state + "/file", state + "x"} {
		if err := RemoveDir(testContext(t), state, path); err == nil {
			t.Errorf("RemoveDir(%q): got no error", path)
		}
	}
	if !exists(outside+"/precious") || !exists(outside+"/dir") || !exists(state+"/link") || !exists(state+"/file") {
		t.Error("something was removed")
	}
}

func TestRemoveDirNeverCrossesAMount(t *testing.T) {
	require.Root(t)
	state := t.TempDir()
	dir := mkdir(t, state, "dir")
	write(t, dir+"/before")
	inner := mkdir(t, dir, "m")
	// A bind mount of the same file system: a device number would not show it.
	other := t.TempDir()
	write(t, other+"/precious")
	if err := unix.Mount(other, inner, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(inner, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, path := range []string{dir, inner} {
		if err := RemoveDir(testContext(t), state, path); err == nil || !strings.Contains(err.Error(), inner) {
			t.Errorf("RemoveDir(%s) = %v, want an error that names %s", path, err, inner)
		}
	}
	if !exists(other+"/precious") || !exists(dir+"/before") {
		t.Error("something was removed")
	}
	// And where the list of mounts was not looked at, or was out of date:
	parent, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	if err := empty.Folder(parent, testContext(t).Err); err == nil {
		t.Error("a folder with a mount in it was emptied")
	}
	if !exists(other + "/precious") {
		t.Error("what lies behind the mount was removed")
	}
}

func TestUnmount(t *testing.T) {
	require.Root(t)
	dir := mkdir(t, t.TempDir(), "with space")
	tmpfs(t, dir)
	tmpfs(t, dir) // one on the other
	if err := Unmount(testContext(t), dir); err != nil {
		t.Fatal(err)
	}
	if mounts, err := proc.MountsBelow(dir); len(mounts) > 0 || err != nil {
		t.Errorf("still mounted: %v, %v", mounts, err)
	}
	for _, path := range []string{dir, dir + "/none/none"} {
		if err := Unmount(testContext(t), path); err != nil {
			t.Errorf("nothing mounted: %v", err)
		}
	}
}

func TestUnmountBusyIsDetached(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	tmpfs(t, dir)
	write(t, dir+"/file")
	f, err := os.Open(dir + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Unmount(ctx, dir); err != nil {
		t.Error(err)
	}
	if exists(dir + "/file") {
		t.Error("still mounted")
	}
}

func TestUnmountLeavesWhatIsBelow(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	tmpfs(t, dir)
	inner := mkdir(t, dir, "inner")
	tmpfs(t, inner)
	if err := Unmount(testContext(t), dir); err == nil || !strings.Contains(err.Error(), inner) {
		t.Errorf("Unmount = %v, want an error that names %s", err, inner)
	}
	if mounts, err := proc.MountsBelow(inner); len(mounts) != 1 || err != nil {
		t.Errorf("on the inner one: %v, %v", mounts, err)
	}
}

func TestKillProcess(t *testing.T) {
	cmd := proctest.Start(t, "sleep", "60")
	e, err := ProcessEntry(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	pid, started, err := parseProcess(e.Target)
	if err != nil {
		t.Fatal(err)
	}
	// Another process that has the pid of one recorded earlier.
	if err := KillProcess(testContext(t), fmt.Sprintf("%d %d", pid, started-1)); err != nil || !proctest.Alive(pid) {
		t.Fatalf("with another start time: %v, alive %v", err, proctest.Alive(pid))
	}
	if err := KillProcess(testContext(t), e.Target); err != nil || proctest.Alive(pid) {
		t.Errorf("KillProcess = %v, alive %v", err, proctest.Alive(pid))
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	if err := KillProcess(testContext(t), e.Target); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	for _, bad := range []string{"", "x", "1 5", "0 0", "-1 5", "12", "12 x", "99999999999999 1"} {
		if err := KillProcess(testContext(t), bad); err == nil {
			t.Errorf("KillProcess(%q): got no error", bad)
		}
	}
}
