//go:build linux

package cn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/journal"
	"tare/notebook"
)

func subject(name string) conformance.Subject {
	return conformance.Subject{
		Name: name,
		New: func(l conformance.Lab) (engine.Driver, error) {
			return New(name, l.Journal, l.State, l.Ruler), nil
		},
		Undo: Undo(),
	}
}

var dockerSubject = conformance.Subject{
	Name: "docker",
	New: func(l conformance.Lab) (engine.Driver, error) {
		return &Docker{Journal: l.Journal, State: l.State, Ruler: l.Ruler}, nil // the engine of DOCKER_HOST
	},
	Undo:    Undo(),
	Objects: dockerObjects,
}

// dockerObjects lists containers and volumes that have the guest's id in their names or labels.
func dockerObjects(ctx context.Context, id string) ([]string, error) {
	e, err := dial(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []json.RawMessage
	if err := e.do(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}}, nil, &all); err != nil {
		return nil, err
	}
	var volumes struct{ Volumes []json.RawMessage }
	if err := e.do(ctx, http.MethodGet, "/volumes", nil, nil, &volumes); err != nil {
		return nil, err
	}
	var found []string
	for _, c := range append(all, volumes.Volumes...) {
		if strings.Contains(string(c), id) {
			found = append(found, "engine object "+string(c))
		}
	}
	return found, nil
}

func TestMain(m *testing.M) {
	conformance.Main(m, subject("crun"), subject("runc"), subject(gVisorEngine), subject(lxcEngine), dockerSubject)
}

var expectations = conformance.Expectations{
	Provisionings: []string{notebook.Vanilla, notebook.Pinned},
	Fraction:      true,
	MemoryLimit:   true,
	WritableRoot:  true,
	SharesKernel:  true,
}

func TestOCI(t *testing.T) {
	for _, runtime := range []string{"crun", "runc"} {
		t.Run(runtime, func(t *testing.T) {
			_, err := exec.LookPath(runtime)
			conformance.Need(t, err == nil, runtime+" (apt-get install "+runtime+")")
			if runtime == "crun" {
				clearUnified(t)
			}
			conformance.Run(t, subject(runtime), expectations)
			t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, subject(runtime), notebook.Vanilla) })
		})
	}
}

func TestGVisor(t *testing.T) {
	_, err := exec.LookPath(RunscName)
	conformance.Need(t, err == nil, RunscName+" (scripts/gvisor/build)")
	conformance.Run(t, subject(gVisorEngine), expectations)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, subject(gVisorEngine), notebook.Vanilla) })
}

func TestLXC(t *testing.T) {
	_, err := exec.LookPath(lxcProgram)
	conformance.Need(t, err == nil, lxcProgram+" ("+lxcInstall+")")
	conformance.Run(t, subject(lxcEngine), expectations)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, subject(lxcEngine), notebook.Vanilla) })
}

func TestProbe(t *testing.T) {
	conformance.Need(t, os.Geteuid() == 0, "root, to mount and to make cgroups")
	_, err := exec.LookPath("runc")
	conformance.Need(t, err == nil, "runc (apt-get install runc)")
	lab := conformance.NewLab(t)
	if c := (&OCI{Journal: lab.Journal, State: lab.State, Ruler: lab.Ruler, Runtime: "runc"}).Probe(t.Context()); c.Answer != notebook.Supported || c.Name != "runc" {
		t.Errorf("runc: %+v, want supported", c)
	}
	if c := (&OCI{Journal: lab.Journal, State: lab.State, Ruler: lab.Ruler, Runtime: "no-such-runtime"}).Probe(t.Context()); c.Answer != notebook.NotSupported || !strings.Contains(c.Do, "install") {
		t.Errorf("a runtime that is not there: %+v, want not supported, and how to install it", c)
	}
	if c := (&OCI{Journal: lab.Journal, State: lab.State, Ruler: lab.Ruler, Runtime: "true"}).Probe(t.Context()); c.Answer != notebook.NotSupported {
		t.Errorf("a runtime that does nothing: %+v, want not supported", c)
	}
	for name, program := range map[string]string{gVisorEngine: RunscName, lxcEngine: lxcProgram} {
		e := New(name, lab.Journal, lab.State, lab.Ruler)
		c := e.Probe(t.Context())
		if _, err := exec.LookPath(program); err != nil {
			if c.Answer != notebook.NotSupported || c.Do == "" {
				t.Errorf("%s without %s: %+v, want not supported, and how to install it", name, program, c)
			}
			continue
		}
		if c.Answer != notebook.Supported || c.Name != name {
			t.Errorf("%s: %+v, want supported", name, c)
		}
		for _, l := range e.Lacks() {
			if !strings.Contains(c.Why, "not so that "+l.Name+": "+l.Why) {
				t.Errorf("%s: %q does not say what it lacks: %+v", name, c.Why, l)
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(lab.State, "guests"))
	if err != nil || len(left) > 0 {
		t.Errorf("after the probes: %v, %v; want nothing", left, err)
	}
}

// clearUnified mounts as v1 those controllers that are on v2 beside v1, for the length of the test: crun refuses a
// host that has them there.
func clearUnified(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(crunUnified)
	has := strings.Fields(string(b))
	if err != nil || len(has) == 0 {
		return
	}
	conformance.Need(t, os.Geteuid() == 0, "root, to mount cgroups")
	var cannot *engine.CannotError
	if err := refusedByCrun("/usr/bin/crun", crunUnified); !errors.As(err, &cannot) {
		t.Errorf("controllers %v on v2: %v, want a engine.CannotError", has, err)
	}
	dir := t.TempDir()
	err = unix.Mount("none", dir, "cgroup", 0, strings.Join(has, ","))
	conformance.Need(t, err == nil, fmt.Sprintf("controllers %v off cgroup v2: mounting them as v1: %v", has, err))
	t.Cleanup(func() {
		if _, err := journal.Unmount(context.Background(), dir); err != nil {
			t.Errorf("unmounting the controllers %v: %v", has, err)
		}
	})
}

func TestDocker(t *testing.T) {
	startDocker(t)
	conformance.Run(t, dockerSubject, expectations)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, dockerSubject, notebook.Vanilla) })
	removed, err := (&Docker{}).RemoveImages(t.Context())
	if err != nil || len(removed) != 1 {
		t.Errorf("RemoveImages: %q, %v; want the suite's one image removed", removed, err)
	}
}

// The host's own engine sets up a firewall, as users' engines do, and forwards what comes to the published port.
// Containers of an OCI runtime meet that firewall too, in TestOCI.
func TestDockerWithItsFirewall(t *testing.T) {
	e, err := dial(t.Context(), DefaultDockerHost)
	conformance.Need(t, err == nil, "the host's own Docker Engine (scripts/docker start)")
	s := dockerSubject
	s.New = func(l conformance.Lab) (engine.Driver, error) {
		return &Docker{Journal: l.Journal, State: l.State, Ruler: l.Ruler, Host: DefaultDockerHost}, nil
	}
	s.Objects = nil // others may use the engine at the same time
	img := conformance.OnNetwork(t, s, expectations, notebook.NetBridge)
	_, hex, _ := strings.Cut(img.Digest, ":")
	// Not RemoveImages: others there are somebody's cache.
	if err := e.do(t.Context(), http.MethodDelete, "/images/"+imageRepository+":"+hex[:12], nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// startDocker starts a Docker Engine of the test's own, with a bridge of its own and no rule or setting changed on
// the host, and has DOCKER_HOST name it.
func startDocker(t *testing.T) {
	t.Helper()
	conformance.Need(t, os.Geteuid() == 0, "root, to start dockerd")
	for _, tool := range []string{"dockerd", "ip"} {
		_, err := exec.LookPath(tool)
		conformance.Need(t, err == nil, tool+" (apt-get install docker.io iproute2)")
	}
	bridge := fmt.Sprintf("tare%d", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if b, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, b)
		}
	}
	ip("link", "add", bridge, "type", "bridge")
	t.Cleanup(func() {
		if b, err := exec.Command("ip", "link", "del", bridge).CombinedOutput(); err != nil {
			t.Errorf("removing bridge %s: %v: %s", bridge, err, b)
		}
	})
	ip("addr", "add", "198.18.77.1/24", "dev", bridge) // of the range for benchmarks: nobody's network
	ip("link", "set", bridge, "up")

	dir, err := os.MkdirTemp("", "tare-docker") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mounts, err := engine.MountsBelow(dir)
		if err != nil {
			t.Error(err)
		}
		for _, m := range slices.Backward(mounts) {
			if _, err := journal.Unmount(context.Background(), m); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	socket := "unix://" + filepath.Join(dir, "docker.sock")
	cmd := exec.Command("dockerd", "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"-H", socket, "--pidfile", filepath.Join(dir, "pid"), "--bridge", bridge,
		"--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) // it may have ended: then the wait below says so
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("dockerd did not end in 20 s")
			cmd.Process.Kill()
			<-ended
		}
	})
	t.Setenv("DOCKER_HOST", socket)
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := dial(t.Context(), "")
		if err == nil {
			return
		}
		select {
		case werr := <-ended:
			ended <- werr
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("dockerd ended: %v\n%s", werr, b)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("dockerd does not answer: %v\n%s", err, b)
		}
	}
}

func TestDockerNotRunning(t *testing.T) {
	socket := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	_, err := dial(t.Context(), socket)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "start it") || !strings.Contains(err.Error(), socket) {
		t.Errorf("no engine: %v; want one line with the address and how to start it", err)
	}
	if _, err := dial(t.Context(), "tcp://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "unix://") {
		t.Errorf("an engine elsewhere: %v; want an error that asks for one on this host", err)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1.9", "1.41", true}, {"1.41", "1.41", false}, {"1.47", "1.41", false}, {"2.0", "1.99", false}, {"garbage", "1.41", true}} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}
