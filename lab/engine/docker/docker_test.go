//go:build linux

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/dockerapi"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

var dockerSubject = conformance.Subject{
	Name: "docker", Networks: Kind.NetworkModes(), Ahead: Kind.Ahead, Shares: Kind.Shares() == nil, Pulls: Kind.Pulls,
	New: func(l engine.Env) (engine.Driver, error) {
		return Kind.New(l), nil // the engine of DOCKER_HOST
	},
	Undo:    engine.Registry{Kind}.Undo(),
	Objects: dockerObjects,
	Unnamed: true,
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

func TestMain(m *testing.M) { conformance.Main(m, dockerSubject) }

func TestDocker(t *testing.T) {
	s := dockerSubject
	s.Disk = conformance.Disk(t)
	s.Descriptions = filepath.Join(s.Disk, "docker", "cdi")
	startDocker(t, filepath.Join(s.Disk, "docker"), s.Descriptions)
	s.RunsHooks = readsDescriptions(t)
	can := conformance.Containers
	can.Publishes = true
	conformance.Run(t, s, can)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, dockerSubject, notebook.Vanilla) })
}

// The host's own engine sets up a firewall, as users' engines do, and forwards what comes to the published port.
// Containers of other engines meet that firewall too, in their own tests.
func TestDockerWithItsFirewall(t *testing.T) {
	e, err := dial(t.Context(), dockerapi.DefaultHost)
	require.That(t, err == nil, "the host's own Docker Engine (scripts/docker start)")
	s := dockerSubject
	s.New = func(l engine.Env) (engine.Driver, error) {
		return &Driver{Env: l, Host: dockerapi.DefaultHost}, nil
	}
	s.Unnamed = false // others may use the engine at the same time
	can := conformance.Containers
	can.Publishes = true
	img := conformance.OnNetwork(t, s, can, notebook.NetBridge)
	_, hex, _ := strings.Cut(img.Digest, ":")
	if err := e.do(t.Context(), http.MethodDelete, "/images/"+imageRepository+":"+hex[:12], nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// readsDescriptions says whether the engine of DOCKER_HOST knows descriptions of devices (CDI): Docker 28.3 or newer, as it comes.
func readsDescriptions(t *testing.T) bool {
	t.Helper()
	e, err := dial(t.Context(), "")
	var info engineInfo
	if err == nil {
		err = e.do(t.Context(), http.MethodGet, "/info", nil, nil, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(info.CDISpecDirs) > 0
}

// startDocker starts a Docker Engine of the test's own, with a bridge of its own and no rule or setting changed on
// the host, and has DOCKER_HOST name it. Where it can it reads descriptions of devices in the given folder.
func startDocker(t *testing.T, dir, descriptions string) {
	t.Helper()
	require.That(t, os.Geteuid() == 0, "root, to start dockerd")
	for _, tool := range []string{"dockerd", "ip"} {
		_, err := exec.LookPath(tool)
		require.That(t, err == nil, tool+" (apt-get install docker.io iproute2)")
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

	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mounts, err := proc.MountsBelow(dir)
		if err != nil {
			t.Error(err)
		}
		for _, m := range slices.Backward(mounts) {
			if err := journal.Unmount(context.Background(), m); err != nil {
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
	if help, err := exec.CommandContext(t.Context(), "dockerd", "--help").Output(); err != nil {
		t.Fatal(err)
	} else if strings.Contains(string(help), "--cdi-spec-dir ") {
		cmd.Args = append(cmd.Args, "--cdi-spec-dir", descriptions)
	}
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
		case <-time.After(time.Minute):
			t.Error("dockerd did not end in a minute")
			cmd.Process.Kill()
			<-ended
		}
	})
	t.Setenv("DOCKER_HOST", socket)
	deadline := time.Now().Add(2 * time.Minute)
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
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "start the engine of this address") || !strings.Contains(err.Error(), socket) {
		t.Errorf("no engine: %v; want one line with the address and how to start it", err)
	}
	if _, err := dial(t.Context(), "tcp://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "unix://") {
		t.Errorf("an engine elsewhere: %v; want an error that asks for one on this host", err)
	}
}

// An engine that answered before and is started again is waited for; one that answers, but with something else, is not.
func TestAnEngineThatIsStartedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	serve := func() (stop func()) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: pong("1.41", nil)}
		go s.Serve(l)
		return func() { s.Close() }
	}
	d := &Driver{Host: "unix://" + path}
	if _, err := d.daemon(t.Context()); err == nil {
		t.Fatal("an engine that is not there answers")
	}
	stop := serve()
	if _, err := d.daemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	again := time.AfterFunc(3*pollTime, func() { t.Cleanup(serve()) })
	defer again.Stop()
	if _, err := d.daemon(t.Context()); err != nil {
		t.Errorf("an engine that was started again: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*pollTime)
	defer cancel()
	if _, err := dialPatiently(ctx, "unix:///nosuch/docker.sock"); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("when there is no more time: %v", err)
	}
}

// What cannot be removed because its engine does not answer blocks nobody else; with the engine's data its containers are gone.
func TestContainersOfAnAbsentEngine(t *testing.T) {
	data := t.TempDir()
	e := journal.Entry{Kind: kindDocker, Target: "tare-x", Detail: map[string]string{
		"host": "unix:///nosuch/docker.sock", "data": data, "time": time.Now().Format(time.RFC3339Nano)}}
	t.Setenv("DOCKER_HOST", "unix:///another/docker.sock")
	err := undoDocker(t.Context(), e)
	if !errors.Is(err, journal.ErrUnreachable) {
		t.Errorf("an engine that does not answer: %v", err)
	}
	if said := fmt.Sprint(err); !strings.Contains(said, "unix:///nosuch/docker.sock") || !strings.Contains(said, "start the engine of this address again (DOCKER_HOST changes nothing here)") {
		t.Errorf("an engine that the journal names is missed with: %s", said)
	}
	if _, err := dial(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "unix:///another/docker.sock") || !strings.Contains(err.Error(), "or name another one with DOCKER_HOST") {
		t.Errorf("an engine that DOCKER_HOST names is missed with: %v", err)
	}
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	if err := undoDocker(t.Context(), e); err != nil {
		t.Errorf("an engine whose data is gone: %v", err)
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

func TestDockerProbe(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	patience := time.Minute
	probe := func(at string) notebook.Capability {
		t.Helper()
		t.Setenv("DOCKER_HOST", at)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return Kind.Probe(ctx, engine.Env{}, Kind.New(engine.Env{}), "docker")
	}
	if c := probe("unix://" + socket); c.Answer != notebook.NotSupported || !strings.Contains(c.Do, "dockerd") {
		t.Errorf("no engine: %+v", c)
	}
	if c := probe("ssh://there"); c.Answer != notebook.NotSupported || !strings.Contains(c.Why, "ssh://there") {
		t.Errorf("an address of another kind: %+v", c)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var version atomic.Value
	version.Store(`{"Version":"27.0","ApiVersion":"1.46"}`)
	silent := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.46") })
	mux.HandleFunc("/v1.46/version", func(w http.ResponseWriter, r *http.Request) {
		if version.Load() == "silent" {
			select {
			case <-silent:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, version.Load())
	})
	server := http.Server{Handler: mux}
	go server.Serve(l)
	t.Cleanup(func() { close(silent); server.Close() })
	if c := probe("unix://" + socket); c.Answer != notebook.Supported || !strings.Contains(c.Why, "27.0") {
		t.Errorf("an engine: %+v", c)
	}
	for bad, want := range map[string]notebook.Answer{"not JSON": notebook.NotSupported, "silent": notebook.Inconclusive} {
		version.Store(bad)
		patience = time.Minute
		if want == notebook.Inconclusive { // all of it is waited for
			patience = 300 * time.Millisecond
		}
		if c := probe("unix://" + socket); c.Answer != want {
			t.Errorf("one that answers %q: %+v, want %s", bad, c, want)
		}
	}
	patience = time.Minute
	if c := probe("tcp://127.0.0.1:1"); c.Answer != notebook.NotSupported {
		t.Errorf("a closed port: %+v", c)
	}
}
