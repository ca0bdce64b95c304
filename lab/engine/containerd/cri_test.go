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

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/image"
	"tare/lab/proc"
	"tare/lab/registry"
	"tare/notebook"
)

var pods = func() conformance.Subject {
	s := conformance.Of(CRI)
	s.Objects = sandboxes
	return s
}()

// sandboxes lists the pods' sandboxes and containers of the guest, in any state.
func sandboxes(ctx context.Context, id string) (found []string, err error) {
	path, err := address()
	if err != nil {
		return nil, err
	}
	s, err := dialCRI(ctx, path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	all, err := s.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	for _, p := range all.Items {
		if strings.Contains(p.Metadata.Name, id) {
			found = append(found, fmt.Sprintf("pod %s, %s", p.Metadata.Name, p.State))
		}
	}
	made, err := s.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	for _, c := range made.Containers {
		if strings.Contains(c.Labels[labelGuest], id) {
			found = append(found, fmt.Sprintf("container %s of a pod, %s", c.Id, c.State))
		}
	}
	return found, nil
}

func TestPods(t *testing.T) {
	s := pods
	s.Disk = conformance.Disk(t)
	startPods(t, s.Disk, "")
	conformance.Run(t, s, conformance.Containers)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, s, notebook.Vanilla) })
}

// startPods starts a containerd of the test's own on a disk, which makes pods, and has CONTAINERD_ADDRESS name it. It has the usual snapshotter, or
// another.
func startPods(t *testing.T, disk, snapshotter string) (dir string) {
	t.Helper()
	require.That(t, os.Geteuid() == 0, "root, to start containerd")
	for _, tool := range []string{"containerd", "ctr", "runc", "gcc", "/usr/lib/cni/ptp"} {
		_, err := exec.LookPath(tool)
		require.That(t, err == nil, tool+" (apt-get install "+strings.Join(CRI.Packages, " ")+" gcc)")
	}
	dir = filepath.Join(disk, "pods")
	script := func(what ...string) error {
		out, err := exec.Command("../../../scripts/containerd", what...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("scripts/containerd %s: %w: %s", what, err, out)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := script("stop", dir); err != nil {
			t.Error(err)
		}
	})
	if err := script("start", dir, snapshotter); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERD_ADDRESS", filepath.Join(dir, "containerd.sock"))
	return dir
}

// lazily is how a start pulls an image of three layers lazily.
var lazily = notebook.Pull{Compression: notebook.CompressionEstargz, Layers: 3}

// wants is a treatment whose start pulls so.
func wants(p notebook.Pull) notebook.Treatment {
	return notebook.Treatment{Factors: map[string]string{notebook.FactorPull.Name: p.Text()}}
}

// Where containerd's snapshotter pulls lazily, a pod's root is that of the image, and its layers are mounted from the registry. They are gone with
// the pod.
func TestPodsThatPullLazily(t *testing.T) {
	_, err := exec.LookPath("tare-stargz")
	require.That(t, err == nil, "tare-stargz (scripts/stargz/build)")
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("the host has no FUSE: %v", err)
	}
	require.That(t, registry.Find() == nil, "docker-registry (apt-get install docker-registry)")
	s := pods
	s.Disk = conformance.Disk(t)
	dir := startPods(t, s.Disk, lazySnapshotter)
	env := conformance.NewLab(t)
	d := CRI.New(env).(*podDriver)
	if err := d.Supports(t.Context(), wants(lazily)); err != nil {
		t.Fatal(err)
	}
	conformance.Pulled(t, s, conformance.Containers, lazily)

	g, err := d.Provision(t.Context(), pushed(t, env))
	if err != nil {
		t.Fatal(err)
	}
	if n := fuseMounts(t, dir); n != lazily.Layers {
		t.Errorf("%d layers are mounted from the registry, want %d", n, lazily.Layers)
	}
	if err := g.Destroy(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := fuseMounts(t, dir); n != 0 {
		t.Errorf("%d layers are mounted after the pod's end", n)
	}
}

// pushed is a container of a small image that a registry has, to be pulled lazily.
func pushed(t *testing.T, env engine.Env) engine.Spec {
	t.Helper()
	root := image.Tree{Dir: t.TempDir(), Digest: "sha256:" + strings.Repeat("1", 64)}
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(root.Dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	from, err := registry.Start(t.Context(), env.Journal, env.State)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close(context.Background()) })
	reference, _, err := from.Push(t.Context(), &root, lazily)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Spec{
		ID: "lazily", Provisioning: notebook.Vanilla, Instance: notebook.Instance{Name: "small", Cores: 1, Memory: 128 * notebook.MiB},
		Image: &image.Image{Tree: root}, Pull: reference,
	}
}

// fuseMounts counts the mounts of FUSE below a folder.
func fuseMounts(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := proc.MountsBelow(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range all {
		var fs unix.Statfs_t
		if err := unix.Statfs(at, &fs); err != nil && !errors.Is(err, unix.ENOENT) { // it may be gone by now
			t.Fatal(err)
		}
		if fs.Type == unix.FUSE_SUPER_MAGIC {
			n++
		}
	}
	return n
}

// A containerd with the usual snapshotter would pull such images as any other, so it is refused.
func TestPodsThatDoNotPullLazily(t *testing.T) {
	require.That(t, registry.Find() == nil, "docker-registry (apt-get install docker-registry)")
	startPods(t, conformance.Disk(t), "")
	env := conformance.NewLab(t)
	d := CRI.New(env).(*podDriver)
	if err := d.Supports(t.Context(), wants(notebook.Pull{Compression: notebook.CompressionZstd, Layers: 1})); err != nil {
		t.Error(err)
	}
	err := d.Supports(t.Context(), wants(lazily))
	if _, refused := errors.AsType[*engine.UnsupportedError](err); !refused || !strings.Contains(err.Error(), "snapshotter overlayfs") {
		t.Error(err)
	}
	// That all layers were pulled whole is noticed.
	s, err := d.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reference := pushed(t, env).Pull
	if err := s.pull(t.Context(), reference); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.forget(context.Background(), reference); err != nil {
			t.Error(err)
		}
	}()
	want := fmt.Sprintf("pulled %d of the image's %[1]d layers whole", lazily.Layers)
	if err := s.pulledLazily(t.Context(), reference); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A pod's start has its parts: the sandbox, the image, the container and its start.
func TestPodsMoments(t *testing.T) {
	startPods(t, conformance.Disk(t), "")
	env := conformance.NewLab(t)
	d := CRI.New(env)
	c := CRI.Probe(t.Context(), env, d, CRI.Name)
	if c.Answer != notebook.Supported || c.Versions["containerd"] == "" {
		t.Fatalf("%+v, want supported, with a version", c)
	}
	// Nothing but the ruler runs in it, so its root is empty.
	root := image.Tree{Dir: t.TempDir(), Digest: "sha256:" + strings.Repeat("0", 64)}
	s := engine.Spec{
		ID: "moments", Provisioning: notebook.Vanilla, Instance: notebook.Instance{Name: "small", Cores: 1, Memory: 128 * notebook.MiB},
		Image: &image.Image{Tree: root}, Moments: engine.NewMoments(),
	}
	g, err := d.Provision(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var names []string
	for _, m := range s.Moments.Noted() {
		names = append(names, m.Name)
	}
	want := []string{notebook.MomentSandbox, notebook.MomentImage, notebook.MomentCreated}
	if got := strings.Join(names[:min(len(names), len(want))], " "); got != strings.Join(want, " ") {
		t.Errorf("the moments of a pod's start are %v, want them to begin with %v", names, want)
	}
}

// A containerd without the CRI, as Docker starts it, is told apart from one that does not answer.
func TestNoPods(t *testing.T) {
	startContainerd(t, filepath.Join(conformance.Disk(t), "containerd"))
	env := conformance.NewLab(t)
	if c := CRI.Probe(t.Context(), env, CRI.New(env), CRI.Name); c.Answer != notebook.NotSupported || !strings.Contains(c.Why, "has no CRI") || !strings.Contains(c.Do, "CONTAINERD_ADDRESS") {
		t.Errorf("%+v, want not supported, with what to do", c)
	}
}
