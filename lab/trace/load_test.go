//go:build linux

package trace

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/require"
)

// need skips a test that needs something absent, or fails it where everything is required.
func need(t testing.TB, ok bool, what string) {
	t.Helper()
	require.That(t, ok, what)
}

func needRoot(t testing.TB) {
	t.Helper()
	need(t, os.Geteuid() == 0, "root")
}

// needTool is the path of a program that another way of measuring needs.
func needTool(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	need(t, err == nil, name+" (Debian package "+pkg+")")
	return path
}

// loadTime bounds every load: none works for more than a few seconds.
const loadTime = time.Minute

var loadProgram struct {
	sync.Once
	bytes []byte
	err   error
	said  []byte
}

// loadPath is the program of testdata/load.c, which needs no library and no file but itself. It is compiled once.
func loadPath(t testing.TB) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	need(t, err == nil, "a C compiler (Debian package gcc)")
	p := &loadProgram
	path := filepath.Join(t.TempDir(), "load")
	p.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), loadTime)
		defer cancel()
		p.said, p.err = exec.CommandContext(ctx, cc, "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", path, "testdata/load.c").CombinedOutput()
		if p.err == nil {
			p.bytes, p.err = os.ReadFile(path)
		}
	})
	if p.err != nil {
		t.Fatalf("compiling testdata/load.c: %v\n%s", p.err, p.said)
	}
	if err := os.WriteFile(path, p.bytes, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// aLoad is a load that stands at its gate: what it does lies between go and finish, its start and its end outside.
type aLoad struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.Closer
	put  io.Writer
	out  *bufio.Reader
	said bytes.Buffer
	done bool
}

// load starts testdata/load.c with the arguments, up to its gate. It is gone when the test ends. attr may be nil.
func load(t testing.TB, attr *syscall.SysProcAttr, args ...string) *aLoad {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	l := &aLoad{t: t, cmd: exec.CommandContext(ctx, loadPath(t), append([]string{"gate"}, args...)...)}
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setpgid = true // its children go with it
	l.cmd.SysProcAttr = attr
	l.cmd.Cancel = func() error { return syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) }
	l.cmd.WaitDelay = time.Second
	l.cmd.Stderr = &l.said
	in, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.in, l.put, l.out = in, in, bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if !l.done {
			_ = l.cmd.Wait() // it was killed; the test has said what was wrong
		}
	})
	l.line("ready")
	return l
}

func (l *aLoad) pid() int { return l.cmd.Process.Pid }

func (l *aLoad) line(want string) {
	l.t.Helper()
	if got, err := l.out.ReadString('\n'); got != want+"\n" {
		_ = l.cmd.Cancel()
		err2 := l.cmd.Wait()
		l.done = true
		l.t.Fatalf("load %v: %q, %v, %v, %s; want %s", l.cmd.Args[1:], got, err, err2, l.said.String(), want)
	}
}

// work lets the load do its work and returns when it is done; the load still lives.
func (l *aLoad) work() {
	l.t.Helper()
	if _, err := l.put.Write([]byte{'\n'}); err != nil {
		l.t.Fatal(err)
	}
	l.line("done")
}

// finish ends the load and waits for it.
func (l *aLoad) finish() {
	l.t.Helper()
	if err := l.in.Close(); err != nil {
		l.t.Fatal(err)
	}
	err := l.cmd.Wait()
	l.done = true
	if err != nil {
		l.t.Fatalf("load %v: %v: %s", l.cmd.Args[1:], err, l.said.String())
	}
}

func TestLoadDoesAllThatItSays(t *testing.T) {
	file := filepath.Join(scratch(t), "file")
	for _, args := range [][]string{
		{"run", "2", "1", "3"}, {"busy", "2"}, {"system", "2"}, {"anonymous", "3"}, {"file", file, "3"}, {"major", file, "3"},
		{"migrate", "0", "0", "3"}, {"write", file, "3"}, {"read", file, "3"}, {"pingpong", "3"}, {"futex", "2", "3"},
		{"sleep", "2", "3"}, {"socket", "2", "3"}, {"signal", "2", "3"}, {"files", "2", "3"}, {"datagrams", "3", "100"}, {"answers", "0", "0", "3"}, {"threads", "3", "2"},
	} {
		l := load(t, nil, args...)
		l.work()
		l.finish()
	}
	for _, args := range [][]string{nil, {"gate"}, {"run"}, {"run", "1", "2"}, {"run", "1", "2", "x"}, {"file"}, {"write", "/nowhere/at/all"}} {
		ctx, cancel := context.WithTimeout(t.Context(), loadTime)
		out, err := exec.CommandContext(ctx, loadPath(t), args...).CombinedOutput()
		cancel()
		if err == nil || len(bytes.Split(bytes.TrimSpace(out), []byte{'\n'})) != 1 {
			t.Errorf("%v: %v, %q: want a failure and one line", args, err, out)
		}
	}
}

// scratch is a folder on a file system of a block device, which /tmp need not be on.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tare-load-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
