//go:build linux

package ruler

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a trial leaves in its scratch folder is gone before the next, however hostile, and nothing outside it is.
func TestScratchIsEmptied(t *testing.T) {
	g := startHere(t)
	outside := t.TempDir()
	keep := filepath.Join(outside, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := g.mustRun(t, sh(`set -e
		ln -s `+outside+` link; ln -s `+keep+` filelink; ln -s loop loop
		mkdir -p a/b/c; ln -s `+outside+` a/b/link; echo x > a/b/c/file; ln `+keep+` a/hard 2>/dev/null || true
		mkfifo pipe; chmod 000 a/b/c; mkdir -- .hidden '-rf' 'new
line'; touch -- '-x' '*'
		d=deep; i=0; while [ $i -lt 200 ]; do mkdir $d; cd $d; i=$((i+1)); touch f; done; cd `+g.scratch+`
		i=0; while [ $i -lt 5000 ]; do : > many$i; i=$((i+1)); done
		chmod 0 .`))
	if r.Exit != 0 || r.Error != "" {
		t.Fatalf("%+v %s", r, r.Stderr)
	}
	o := sh("ls -A | wc -l")
	o.KeepScratch = true
	if r, _ := g.mustRun(t, o); strings.TrimSpace(string(r.Stdout)) == "0" {
		t.Errorf("scratch was not kept: %+v", r)
	}
	r, _ = g.mustRun(t, sh("ls -A | wc -l; stat -c %a ."))
	if want := "0\n755\n"; string(r.Stdout) != want {
		t.Errorf("%q, want %q; %+v %s", r.Stdout, want, r, r.Stderr)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("a file outside is gone: %v", err)
	}
}

// A mount that a trial left is not entered.
func TestScratchMount(t *testing.T) {
	outside := t.TempDir()
	keep := filepath.Join(outside, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	at := filepath.Join(scratch, "sub", "mnt")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	err := unix.Mount(outside, at, "", unix.MS_BIND, "") // the same file system: its device number tells nothing
	need(t, err == nil, fmt.Sprintf("the right to mount (%v)", err))
	defer unix.Unmount(at, unix.MNT_DETACH)
	s, err := openScratch(scratch)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.empty(nil); err == nil || !strings.Contains(err.Error(), "mount") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("a file in the mount is gone: %v", err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.empty(nil); err != nil {
		t.Error(err)
	}
}

func TestScratchStops(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	close(stopped)
	if err := s.empty(stopped); err == nil {
		t.Error("went on although it was stopped")
	}
	if s, err := openScratch(filepath.Join(dir, "absent")); err != nil || s.empty(nil) == nil {
		t.Errorf("an absent folder: %v, and was emptied", err)
	}
	if _, err := openScratch(filepath.Join(dir, "f")); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// busyboxRoot makes a root filesystem with only busybox: no /proc, no /dev.
func busyboxRoot(t *testing.T) string {
	t.Helper()
	need(t, os.Getuid() == 0, "root, for chroot")
	busybox, err := os.ReadFile("/bin/busybox")
	need(t, err == nil, "busybox-static")
	root := t.TempDir()
	for _, d := range []string{"bin", ScratchDir} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "bin/busybox"), busybox, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "true", "pwd", "ls", "sleep", "echo", "setsid", "cat"} {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Bare metal: the image's root by chroot, without a /proc or /dev of its own.
func TestRoot(t *testing.T) {
	root := busyboxRoot(t)
	g := start(t, func(fd *os.File) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", "ruler", "--fd", "3", "--root", root)
		cmd.ExtraFiles = []*os.File{fd}
		return cmd
	})
	m := mark(6)
	o := Order{Argv: []string{"sh", "-c", "pwd; ls /; cat; setsid sleep " + m + " & echo left"}, Timeout: 10 * time.Second, OutputLimit: 4096}
	r, _ := g.mustRun(t, o)
	if want := ScratchDir + "\nbin\nleft\n"; string(r.Stdout) != want || r.Error != "" {
		t.Errorf("%q, want %q; %+v %s", r.Stdout, want, r, r.Stderr)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if _, err := g.Cost(t.Context(), 5); err != nil {
		t.Error(err)
	}
	r, _ = g.mustRun(t, Order{Argv: []string{"ls", "-A", ScratchDir}, Timeout: 10 * time.Second, OutputLimit: 4096})
	if len(r.Stdout) != 0 || r.Exit != 0 {
		t.Errorf("the ruler's own file is seen in scratch: %q %+v", r.Stdout, r)
	}
}

// A container: the ruler is process 1 of its own PID namespace.
func TestProcessOne(t *testing.T) {
	scratch := t.TempDir()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = attr
	err := probe.Run()
	need(t, err == nil, fmt.Sprintf("PID namespaces (%v)", err))
	m := mark(7)
	bystander := exec.Command("sleep", m+"1")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	g := start(t, func(fd *os.File) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "RULER_TEST_SCRATCH="+scratch, "GORACE=atexit_sleep_ms=0")
		cmd.ExtraFiles = []*os.File{fd}
		cmd.SysProcAttr = attr
		return cmd
	})
	if g.Hello().PID != 1 {
		t.Fatalf("process %d", g.Hello().PID)
	}
	r, _ := g.mustRun(t, sh("setsid sh -c 'sleep "+m+" & setsid sleep "+m+" & wait' & sleep 0.05; echo started"))
	if r.Error != "" || string(r.Stdout) != "started\n" {
		t.Errorf("%+v %s", r, r.Stdout)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if len(alive(t, m+"1")) != 1 {
		t.Error("a process outside was killed")
	}
}

func TestMainArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "--connect"},
		{[]string{"--connect", "/x", "--fd", "3"}, 2, "needs --connect"},
		{[]string{"--connect", "/no/such/socket"}, 1, "/no/such/socket"},
		{[]string{"--fd", "77"}, 1, "file 77"},
		{[]string{"--connect", "/x", "more"}, 2, "more"},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"--help"}, 0, "ruler --connect"},
	} {
		out, err := exec.Command("/proc/self/exe", append([]string{"ruler"}, c.args...)...).CombinedOutput()
		code := 0
		if exit := (&exec.ExitError{}); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%q: exit %d, %s", c.args, code, out)
		}
	}
}

func TestConnectBySocket(t *testing.T) {
	root := busyboxRoot(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("/proc/self/exe", "ruler", "--connect", path, "--root", root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	l.(*net.UnixListener).SetDeadline(time.Now().Add(20 * time.Second))
	conn, err := l.Accept()
	if err != nil {
		cmd.Process.Kill()
		t.Fatal(err)
	}
	c, err := Connect(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, _, err := c.Run(t.Context(), Order{Argv: []string{"echo", "hi"}, Timeout: 10 * time.Second, OutputLimit: 10})
	if err != nil || string(r.Stdout) != "hi\n" {
		t.Errorf("%+v %v", r, err)
	}
}
