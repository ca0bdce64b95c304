//go:build linux

package remote_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/image"
	"tare/lab/programs"
	"tare/lab/programs/programstest"
	"tare/lab/remote"
	"tare/lab/remote/remotetest"
	"tare/lab/ruler"
)

// root is a small root filesystem, as the store keeps them.
func root(t *testing.T) *image.Image {
	t.Helper()
	require.Program(t, "busybox")
	dir := t.TempDir()
	for _, d := range []string{"bin", "proc", "sys", "dev", "tmp", ruler.WorkDir, ruler.ScratchDir, ruler.RunDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err == nil {
		err = exec.Command("cp", busybox, filepath.Join(dir, "bin/busybox")).Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &image.Image{Tree: image.Tree{Digest: "sha256:0123", Dir: dir}}
}

// A place is what bare metal is, on another machine; a connection that is lost leaves nothing there, and the next place is made anew.
func TestPlaces(t *testing.T) {
	m := remotetest.New(t)
	sent := 0
	away, err := remote.Open(t.Context(), "ssh://root@"+m.Address, filepath.Join(t.TempDir(), "ssh"), programstest.Build(t, programs.Ruler), func(string) { sent++ })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := away.Close(context.Background()); err != nil {
			t.Error(err)
		}
		m.Empty()
	}()
	if away.Here().String() != m.Here {
		t.Errorf("it sees this host as %s, want %s", away.Here(), m.Here)
	}
	image := root(t)
	run := func(script string) (ruler.Result, string, error) {
		t.Helper()
		g, err := away.Place(t.Context(), image, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := g.Ruler().Run(t.Context(), ruler.Order{Argv: []string{"/bin/busybox", "sh", "-c", script}, Timeout: 30 * time.Second, OutputLimit: 4096})
		why := g.Diagnose()
		if ahead, bound, cerr := g.Ruler().Clock(t.Context()); err == nil && (cerr != nil || ahead.Abs() > bound+time.Millisecond || bound <= 0 || bound > time.Second) {
			t.Errorf("its clock is this host's, and it is %v ahead, ± %v, %v", ahead, bound, cerr)
		}
		if derr := g.Destroy(t.Context()); derr != nil {
			t.Error(derr)
		}
		return r, why, err
	}
	const look = `busybox ip -4 addr show eth0; busybox touch /bin/x && echo writable; echo x >/tmp/x && echo x >x && echo scratch; cat /dev/null; busybox ls /`
	for range 2 {
		r, _, err := run("PATH=/bin; busybox() { /bin/busybox \"$@\"; }; " + look)
		if said := string(r.Stdout) + string(r.Stderr); err != nil || r.Exit != 0 || !strings.Contains(said, m.Address) || !strings.Contains(said, "scratch\n") || strings.Contains(said, "writable") || strings.Contains(said, "etc") {
			t.Errorf("%v, exit %d: %s", err, r.Exit, said)
		}
	}
	if sent != 1 {
		t.Errorf("the root was sent %d times, want once", sent)
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, cmd := range m.Processes() {
				if strings.HasPrefix(cmd, "/bin/busybox sh -c sleep 25") {
					m.Kill()
					return
				}
			}
			select {
			case <-t.Context().Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	if _, why, err := run("sleep 25; true"); err == nil || !strings.HasPrefix(why, "the connection was lost: ") {
		t.Errorf("its connection was killed: %v (%s)", err, why)
	}
	<-done
	m.Empty()
	if _, err := away.Place(t.Context(), image, nil); err == nil || !strings.Contains(err.Error(), "Connection refused") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without a server: %v", err)
	}
	m.Serve()
	if r, _, err := run("exit 3"); err != nil || r.Exit != 3 || sent != 2 {
		t.Errorf("with a new connection: %v, exit %d, sent %d times", err, r.Exit, sent)
	}
}
