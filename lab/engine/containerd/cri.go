//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/ruler"
	"tare/notebook"
)

// CRI is the engine cri: a pod of one container, made by containerd as the kubelet has it made, through the Container Runtime Interface. Its
// start is a sandbox (RunPodSandbox: namespaces, the network by CNI, a process that holds them), the container (CreateContainer) and its start
// (StartContainer). The root is an image of containerd's with its snapshotter, as in a cluster.
var CRI = engine.Kind{
	Takes:    notebook.Span{Low: 0.4, High: 2.5},
	Platform: notebook.CN, Name: "cri", Capabilities: []string{"cri"}, Fractions: true, Undo: undoPods, Lasting: []string{kindPod, kindPulled},
	Unsaved:       "the CRI saves a container (CheckpointContainer) but cannot restore it",
	Provisionings: notebook.Provisionings,
	// The pod's own network comes from CNI, without Tare's bridge.
	Networks: []string{notebook.NetHost},
	Network: func(_ string, service bool) string {
		if service {
			return notebook.NetHost
		}
		return ""
	},
	Ahead:    true,
	Pulls:    true,
	Daemons:  Kind.Daemons,
	Packages: []string{"containerd", "runc", "containernetworking-plugins"},
	New:      func(env engine.Env) engine.Driver { return &podDriver{Env: env} },
}

const (
	// kindPod is the journal's kind for a pod; its target is the pod's name.
	kindPod = "cri-pod"
	// kindPulled is the journal's kind for an image that a pod's start pulls; its target is the reference.
	kindPulled = "cri-image"
	// container is the name of a pod's only container.
	container = "work"
	// settling is how long containerd may fail to stop a sandbox: it does so while a container in it is just ending.
	settling = 5 * time.Second
)

// podDriver makes pods with the containerd of the host.
type podDriver struct {
	engine.Env
	service *service // nil: not connected yet
}

// connected returns the connection to containerd's CRI, which lasts as long as the driver.
func (d *podDriver) connected(ctx context.Context) (*service, error) {
	if d.service != nil {
		return d.service, nil
	}
	at, err := address()
	if err == nil {
		d.service, err = dialCRI(ctx, at)
	}
	return d.service, err
}

// pod is a guest: a sandbox and its container.
type pod struct {
	engine.Base
	service            *service
	config             *cri.PodSandboxConfig
	sandbox, container string     // their ids; "": not made yet
	lazily             chan error // whether containerd pulled lazily; nil: it was not to
}

// Diagnose implements engine.Guest: it is the state of the container, and what its ruler said.
func (g *pod) Diagnose() string {
	if g.container == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	state, ended := "containerd's CRI: ", true
	if c, err := g.service.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: g.container}); err != nil {
		state += err.Error()
	} else {
		state += strings.TrimSpace(fmt.Sprintf("%s, exit code %d %s %s", c.Status.State, c.Status.ExitCode, c.Status.Reason, c.Status.Message))
		ended = c.Status.State == cri.ContainerState_CONTAINER_EXITED
	}
	return state + whatItSaid(ctx, g.Folder, ended)
}

// Prepare implements engine.Preparer: it connects to containerd, and gives it the image.
func (d *podDriver) Prepare(ctx context.Context, img *image.Image) error {
	s, err := d.connected(ctx)
	if err != nil {
		return err
	}
	_, err = s.imageFor(ctx, &img.Tree)
	return err
}

// lazySnapshotter is the snapshotter that pulls images in the format eStargz lazily.
const lazySnapshotter = "stargz"

// Supports implements engine.Chooser: only one snapshotter pulls lazily.
func (d *podDriver) Supports(ctx context.Context, t notebook.Treatment) error {
	if notebook.PullOf(t).Compression != notebook.CompressionEstargz {
		return nil
	}
	s, err := d.connected(ctx)
	if err != nil || s.configured.Containerd.Snapshotter == lazySnapshotter {
		return err
	}
	return CRI.Unsupported("images that are pulled lazily", fmt.Sprintf("this containerd has the snapshotter %s, and lazy pulls need %s; start one that has it (sudo scripts/containerd start FOLDER %[2]s)", s.configured.Containerd.Snapshotter, lazySnapshotter))
}

// Forget implements engine.Puller. containerd removes the image's content and what was unpacked of it before it answers.
func (d *podDriver) Forget(ctx context.Context, reference string) error {
	s, err := d.connected(ctx)
	if err != nil {
		return err
	}
	return s.forget(ctx, reference)
}

// Reads implements engine.Reads: it is the layer that containerd's snapshotter has unpacked, and the work's files.
func (d *podDriver) Reads(ctx context.Context, spec engine.Spec) ([]string, error) {
	s, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.layers(ctx, &spec.Image.Tree)
	if err == nil && spec.Work != nil {
		all = append(all, spec.Work.Dir)
	}
	return all, err
}

// Provision makes a pod. An *engine.UnsupportedError says what no pod can be.
func (d *podDriver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	g, r, err := d.recipe(ctx, s)
	if err != nil {
		return nil, err
	}
	return engine.Make(ctx, d.Env, s, g, r)
}

// Create implements engine.Creator: it makes the sandbox and the container's record. The start makes the container's task.
func (d *podDriver) Create(ctx context.Context, s engine.Spec) (*engine.Ahead, error) {
	g, r, err := d.recipe(ctx, s)
	if err != nil {
		return nil, err
	}
	return engine.Create(ctx, d.Env, s, g, r)
}

func (d *podDriver) recipe(ctx context.Context, s engine.Spec) (*pod, engine.Recipe, error) {
	if err := CRI.Container(s); err != nil {
		return nil, engine.Recipe{}, err
	}
	service, err := d.connected(ctx)
	if err != nil {
		return nil, engine.Recipe{}, err
	}
	img := s.Pull
	if img == "" {
		if img, err = service.imageFor(ctx, &s.Image.Tree); err != nil {
			return nil, engine.Recipe{}, err
		}
	}
	connected := notebook.Say("pod-network")
	if s.NetworkMode() != "" {
		connected = engine.NetworkNote(s.NetworkMode())
	}
	g := &pod{Base: engine.Base{Notes: []*notebook.Message{connected, s.FilterNote()}}, service: service}
	died := make(chan struct{})
	return g, engine.Recipe{
		What: "pod",
		Undo: map[string]journal.Undo{
			kindPod:    func(ctx context.Context, e journal.Entry) error { return service.remove(ctx, e, time.Time{}) },
			kindPulled: func(ctx context.Context, e journal.Entry) error { return service.forget(ctx, e.Target) },
		},
		Journal: func(string) []journal.Entry {
			var all []journal.Entry // undone from the last to the first
			if s.Pull != "" {
				all = append(all, journal.Entry{Kind: kindPulled, Target: s.Pull, Detail: map[string]string{"address": service.address, "data": service.configured.RootDir}})
			}
			return append(all, journal.Entry{Kind: kindPod, Target: engine.ContainerName(s.ID), Detail: map[string]string{
				"address": service.address, "data": service.configured.RootDir, "guest": s.ID, "time": time.Now().Format(time.RFC3339Nano),
			}})
		},
		Create: func(ctx context.Context) (engine.Meeting, error) {
			socket, err := g.NewSocket(d.Ruler)
			if err != nil {
				return nil, err
			}
			socket.Died = died
			return socket, g.create(ctx, img, socket.Dir)
		},
		Start: func(ctx context.Context) error { return g.start(ctx, died) },
		Met: func(context.Context) error {
			if g.lazily != nil {
				if err := <-g.lazily; err != nil {
					return err
				}
			}
			if err := config.SameRoot(fmt.Sprintf("/proc/%d/root", g.PID), s.Image.Dir); err != nil {
				return err
			}
			if err := limitProcesses(g.PID); err != nil {
				return err
			}
			return g.FindCgroup()
		},
		InForce: func() error { return g.LimitsInForce(s.ContainerLimits()) },
	}, nil
}

// limitProcesses limits the number of processes and threads of a container, given one of its processes. The CRI has no such limit: in a
// cluster, the kubelet writes it.
func limitProcesses(pid int) error {
	most, err := engine.MaxProcesses()
	if err != nil {
		return err
	}
	dir, err := cgroup.Of(pid, "pids")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.FormatInt(most, 10)), 0o644)
}

// create makes the sandbox and the container's record. A request goes on when ctx is done: if it were cut off, containerd would go on making
// what the following removal did not find.
func (g *pod) create(ctx context.Context, img, run string) error {
	shm, err := g.mountShm()
	if err != nil {
		return err
	}
	g.config = g.sandboxConfig()
	made, err := g.containerConfig(img, run, shm)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	steady, cancel := steadily(ctx)
	defer cancel()
	sandbox, err := g.service.runtime.RunPodSandbox(steady, &cri.RunPodSandboxRequest{Config: g.config})
	if err != nil {
		return fmt.Errorf("containerd did not make the pod's sandbox: %w", err)
	}
	g.sandbox = sandbox.PodSandboxId
	g.Spec.Moments.Mark(notebook.MomentSandbox)
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.Spec.Pull != "" {
		if err = g.service.pull(ctx, img); err == nil && g.service.configured.Containerd.Snapshotter == lazySnapshotter {
			g.lazily = make(chan error, 1)
			go func() { g.lazily <- g.service.pulledLazily(context.WithoutCancel(ctx), img) }() // while the start goes on
		}
	} else if has, herr := g.service.has(steady, img); herr != nil || !has {
		err = errors.Join(fmt.Errorf("containerd has lost the image %s", img), herr)
	}
	if err != nil {
		return err
	}
	g.Spec.Moments.Mark(notebook.MomentImage)
	steady, cancel = steadily(ctx)
	defer cancel()
	c, err := g.service.runtime.CreateContainer(steady, &cri.CreateContainerRequest{PodSandboxId: g.sandbox, Config: made, SandboxConfig: g.config})
	if err != nil {
		return fmt.Errorf("containerd did not make the pod's container: %w", err)
	}
	g.container = c.ContainerId
	g.Spec.Moments.Mark(notebook.MomentCreated)
	return nil
}

// mountShm mounts the pod's /dev/shm. That of a sandbox has 64 MiB whatever the pod's size (config.ShmSize).
func (g *pod) mountShm() (string, error) {
	dir := filepath.Join(g.Folder, "shm")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	err := unix.Mount("shm", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, fmt.Sprintf("mode=1777,size=%d", config.ShmSize(g.Spec.Instance.Memory)))
	if err != nil {
		return "", fmt.Errorf("mounting the pod's /dev/shm: %w", err)
	}
	return dir, nil
}

// sandboxConfig is the configuration of the pod's sandbox.
func (g *pod) sandboxConfig() *cri.PodSandboxConfig {
	name := engine.ContainerName(g.Spec.ID)
	of := &cri.NamespaceOption{Network: cri.NamespaceMode_POD, Pid: cri.NamespaceMode_CONTAINER, Ipc: cri.NamespaceMode_POD}
	hostname := config.Hostname(g.Spec.ID)
	if g.Spec.NetworkMode() == notebook.NetHost {
		of.Network, hostname = cri.NamespaceMode_NODE, "" // it has the host's name too
	}
	return &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: g.Spec.ID}, Hostname: hostname,
		LogDirectory: g.Folder, Labels: map[string]string{labelGuest: g.Spec.ID},
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    "/" + name,
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: of, Seccomp: unfiltered},
		},
	}
}

// unfiltered has a container run without a seccomp filter, which is also the kubelet's default.
var unfiltered = &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}

// containerConfig is the configuration of the pod's container of an image, with folders of the host for the ruler and for /dev/shm.
func (g *pod) containerConfig(img, run, shm string) (*cri.ContainerConfig, error) {
	limits := g.Spec.ContainerLimits()
	resources := &cri.LinuxContainerResources{CpusetCpus: limits.CPUs, MemoryLimitInBytes: limits.Memory}
	if limits.Quota > 0 {
		quota, err := config.Quota(limits.Quota)
		if err != nil {
			return nil, err
		}
		resources.CpuPeriod, resources.CpuQuota = config.Period, quota
	}
	hs, err := cgroup.Mounted()
	if err != nil {
		return nil, err
	}
	if hs.LimitsSwap() {
		resources.MemorySwapLimitInBytes = limits.Memory // memory and swap together: no swap
	}
	c := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: container}, Image: &cri.ImageSpec{Image: img},
		Command: engine.RulerArgs, WorkingDir: "/", LogPath: said, Labels: map[string]string{labelGuest: g.Spec.ID},
		Mounts: []*cri.Mount{{HostPath: run, ContainerPath: ruler.RunDir, Readonly: true}, {HostPath: shm, ContainerPath: "/dev/shm"}},
		Linux: &cri.LinuxContainerConfig{
			Resources:       resources,
			SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: g.config.Linux.SecurityContext.NamespaceOptions, RunAsUser: &cri.Int64Value{}, Seccomp: unfiltered},
		},
	}
	if g.Spec.Work != nil {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: g.Spec.Work.Dir, ContainerPath: ruler.WorkDir, Readonly: true})
	}
	for _, m := range g.Spec.Mounts() {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: m.Host, ContainerPath: m.Path, Readonly: m.ReadOnly})
	}
	for _, n := range g.Spec.Devices.Nodes {
		c.Devices = append(c.Devices, &cri.Device{HostPath: n.Host, ContainerPath: n.Path, Permissions: n.Access})
	}
	return c, nil
}

// start starts the container. died is closed when the container has ended.
func (g *pod) start(ctx context.Context, died chan<- struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	steady, cancel := steadily(ctx)
	defer cancel()
	if _, err := g.service.runtime.StartContainer(steady, &cri.StartContainerRequest{ContainerId: g.container}); err != nil {
		return fmt.Errorf("containerd did not start the pod's container: %w", err)
	}
	g.Spec.Moments.Mark(notebook.MomentReturned)
	ended, err := g.service.wait(context.WithoutCancel(ctx), g.container) // until the removal of the guest at the latest
	if err != nil {
		return err
	}
	go func() {
		<-ended
		close(died)
	}()
	return nil
}

func undoPods() map[string]journal.Undo {
	return map[string]journal.Undo{kindPod: undoPod, kindPulled: undoPulled}
}

// undoPulled has containerd forget an image that a pod's start pulled. The pod is gone before.
func undoPulled(ctx context.Context, e journal.Entry) error {
	if err := engine.OwnImage(e); err != nil {
		return err
	}
	s, err := dialCRI(ctx, e.Detail["address"])
	if err != nil {
		if gone(e) {
			return nil
		}
		return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
	}
	defer s.Close()
	return s.forget(ctx, e.Target)
}

// undoPod removes a pod that another, dead process requested.
func undoPod(ctx context.Context, e journal.Entry) error {
	asked, err := engine.Asked(e)
	if err != nil {
		return err
	}
	if id := e.Detail["guest"]; id == "" || e.Target != engine.ContainerName(id) {
		return nil // the entry does not say whose it is
	}
	s, err := dialCRI(ctx, e.Detail["address"])
	if err != nil {
		if gone(e) {
			return cgroup.RemoveEverywhere(ctx, e.Target)
		}
		return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
	}
	defer s.Close()
	return s.remove(ctx, e, engine.Appears(asked))
}

// gone reports whether containerd's own folder is gone, and all its pods and images with it.
func gone(e journal.Entry) bool {
	_, err := os.Stat(e.Detail["data"])
	return e.Detail["data"] != "" && errors.Is(err, fs.ErrNotExist)
}

// remove stops and removes the sandboxes of a guest, with their containers. Until the given time it also waits for one to appear, even after
// removing one: containerd may still be serving a request that was cut off.
func (s *service) remove(ctx context.Context, e journal.Entry, appears time.Time) error {
	id := e.Detail["guest"]
	var failing time.Time // since when; zero: it does not fail
	for {
		all, err := s.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: map[string]string{labelGuest: id}}})
		if err != nil {
			return fmt.Errorf("containerd, asked for the pod %s: %w", e.Target, err)
		}
		if len(all.Items) == 0 && !time.Now().Before(appears) {
			return cgroup.RemoveEverywhere(ctx, e.Target)
		}
		for _, sandbox := range all.Items {
			if err = s.end(ctx, sandbox.Id); err != nil {
				break
			}
		}
		switch {
		case err == nil:
			failing = time.Time{}
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) > settling:
			return fmt.Errorf("containerd has not removed the pod %s: %w", e.Target, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd has not removed the pod %s: %w", e.Target, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end stops a sandbox, which kills its containers, and removes both. Like create, it goes on when ctx is done.
func (s *service) end(ctx context.Context, sandbox string) error {
	ctx, cancel := steadily(ctx)
	defer cancel()
	if _, err := s.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		return err
	}
	_, err := s.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox})
	return err
}

// Probe implements engine.Prober: it asks containerd whether it can make pods.
func (d *podDriver) Probe(ctx context.Context, capability string) notebook.Capability {
	c := notebook.Capability{Name: capability}
	s, err := d.connected(ctx)
	if err == nil {
		err = s.ready(ctx)
	}
	var cannot *notReady
	switch {
	case err == nil:
		c.Answer, c.Why = notebook.Supported, fmt.Sprintf("containerd %s at %s, through its CRI", s.version, s.address)
		c.Versions = map[string]string{"containerd": s.version}
	case errors.As(err, &cannot):
		c.Answer, c.Why, c.Do = notebook.NotSupported, cannot.why, cannot.do
	default:
		c.Answer, c.Why, c.Do = unanswered(ctx, err, "apt-get install "+strings.Join(CRI.Packages, " ")+", and start containerd")
	}
	return c
}

// QuickProbe implements engine.QuickProber: asking containerd makes no pod.
func (d *podDriver) QuickProbe(ctx context.Context, capability string) notebook.Capability {
	return engine.Unprivileged(d.Probe(ctx, capability))
}
