//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/engine/conformance"
	"tare/lab/proc"
	"tare/notebook"
)

var subject = func() conformance.Subject {
	s := conformance.Of(Kind)
	s.Objects = objects
	return s
}()

// objects lists containers with the guest's id in their names, and whether they have tasks.
func objects(ctx context.Context, id string) (found []string, err error) {
	path, err := address()
	if err != nil {
		return nil, err
	}
	c, _, err := dial(ctx, path, namespace)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all, err := c.Containers(ctx)
	for _, made := range all {
		if !strings.Contains(made.ID(), id) {
			continue
		}
		_, terr := made.Task(ctx, nil)
		found = append(found, fmt.Sprintf("engine object %s, with a task: %v", made.ID(), terr == nil))
	}
	return found, err
}

func TestMain(m *testing.M) { conformance.Main(m, subject, pods) }

func TestContainerd(t *testing.T) {
	startContainerd(t, filepath.Join(conformance.Disk(t), "containerd"))
	conformance.Run(t, subject, conformance.Containers)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, subject, notebook.Vanilla) })
}

// startContainerd starts a containerd of the test's own, and has CONTAINERD_ADDRESS name it.
func startContainerd(t *testing.T, dir string) {
	t.Helper()
	require.That(t, os.Geteuid() == 0, "root, to start containerd")
	for _, tool := range []string{"containerd", "runc"} {
		_, err := exec.LookPath(tool)
		require.That(t, err == nil, tool+" (apt-get install containerd runc)")
	}
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	text := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = %q\n", filepath.Join(dir, "root"), filepath.Join(dir, "state"), socket)
	file := filepath.Join(dir, "config.toml")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	log := &proc.Tail{}
	cmd := exec.Command("containerd", "--config", file)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			t.Error("containerd does not end")
		}
	})
	t.Setenv("CONTAINERD_ADDRESS", socket)
	for end := time.Now().Add(20 * time.Second); ; {
		c, _, err := dial(t.Context(), socket, namespace)
		if err == nil {
			c.Close()
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("containerd ended: %v: %s", err, log)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("containerd does not answer: %v: %s", err, log)
		}
	}
}

// The probe names the version, and where containerd is missing what to do.
func TestProbe(t *testing.T) {
	startContainerd(t, filepath.Join(conformance.Disk(t), "containerd"))
	env := conformance.NewLab(t)
	if c := Kind.Probe(t.Context(), env, Kind.New(env), Kind.Name); c.Answer != notebook.Supported || c.Versions["containerd"] == "" {
		t.Errorf("%+v, want supported, with a version", c)
	}
	t.Setenv("CONTAINERD_ADDRESS", filepath.Join(t.TempDir(), "none"))
	if c := Kind.Probe(t.Context(), env, Kind.New(env), Kind.Name); c.Answer != notebook.NotSupported || !strings.Contains(c.Why, "does not answer") {
		t.Errorf("%+v, want not supported", c)
	}
}
