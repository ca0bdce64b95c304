//go:build linux

package containerd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/image"
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
	startPods(t, s.Disk)
	conformance.Run(t, s, conformance.Containers)
	t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, s, notebook.Vanilla) })
}

// startPods starts a containerd of the test's own on a disk, which makes pods, and has CONTAINERD_ADDRESS name it.
func startPods(t *testing.T, disk string) {
	t.Helper()
	require.That(t, os.Geteuid() == 0, "root, to start containerd")
	for _, tool := range []string{"containerd", "ctr", "runc", "gcc", "/usr/lib/cni/ptp"} {
		_, err := exec.LookPath(tool)
		require.That(t, err == nil, tool+" (apt-get install "+strings.Join(CRI.Packages, " ")+" gcc)")
	}
	dir := filepath.Join(disk, "pods")
	script := func(what string) error {
		out, err := exec.Command("../../../scripts/containerd", what, dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("scripts/containerd %s: %w: %s", what, err, out)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := script("stop"); err != nil {
			t.Error(err)
		}
	})
	if err := script("start"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERD_ADDRESS", filepath.Join(dir, "containerd.sock"))
}

// A pod's start has its parts: the sandbox, the image, the container and its start.
func TestPodsMoments(t *testing.T) {
	startPods(t, conformance.Disk(t))
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
