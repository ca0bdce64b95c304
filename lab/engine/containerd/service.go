//go:build linux

package containerd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/proc"
)

const (
	// podNamespace is the namespace of the CRI's containers and images in containerd.
	podNamespace = "k8s.io"
	// imageRepository is the name of imported images in containerd.
	imageRepository = "tare.local/image"
	// labelImage on an image has the digest of the root that it was made from.
	labelImage = "tare.image"
	// defaultSnapshotter is the CRI's, where its configuration names no other.
	defaultSnapshotter = "overlayfs"
)

// service is a connection to containerd and its CRI.
type service struct {
	*client.Client
	runtime          cri.RuntimeServiceClient
	images           cri.ImageServiceClient
	address, version string
	configured       criConfig
}

// criConfig is the part of the CRI's configuration that Tare needs.
type criConfig struct {
	SandboxImage string `json:"sandboxImage"`
	RootDir      string `json:"containerdRootDir"`
	Containerd   struct {
		Snapshotter        string `json:"snapshotter"`
		DefaultRuntimeName string `json:"defaultRuntimeName"`
		Runtimes           map[string]struct {
			Options struct {
				SystemdCgroup bool
			} `json:"options"`
		} `json:"runtimes"`
	} `json:"containerd"`
}

// notReady says why containerd can make no pod, and what to do.
type notReady struct{ why, do string }

// Error implements error.
func (e *notReady) Error() string { return strings.TrimSuffix(e.why+"; "+e.do, "; ") }

// dialCRI connects to the CRI of containerd, and asks for its configuration.
func dialCRI(ctx context.Context, path string) (_ *service, err error) {
	c, version, err := dial(ctx, path, podNamespace)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	conn, is := c.Conn().(grpc.ClientConnInterface)
	if !is {
		return nil, fmt.Errorf("containerd at %s: its client has a connection of another kind (%T)", path, c.Conn())
	}
	s := &service{Client: c, runtime: cri.NewRuntimeServiceClient(conn), images: cri.NewImageServiceClient(conn), address: path, version: version}
	said, err := s.status(ctx)
	if err != nil {
		return nil, err
	}
	if text := said.Info["config"]; text != "" {
		if err := json.Unmarshal([]byte(text), &s.configured); err != nil {
			return nil, fmt.Errorf("containerd at %s: the configuration of its CRI: %w", path, err)
		}
	}
	if s.configured.Containerd.Snapshotter == "" {
		s.configured.Containerd.Snapshotter, err = s.snapshotter(ctx)
	}
	return s, err
}

// snapshotter is the CRI's snapshotter, which containerd 2 has in no configuration that it shows: the folder of its files has its name.
func (s *service) snapshotter(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	at, err := s.images.ImageFsInfo(ctx, &cri.ImageFsInfoRequest{})
	if err != nil {
		return "", fmt.Errorf("containerd's CRI does not say where its images are: %w", err)
	}
	for _, f := range at.ImageFilesystems {
		if _, name, found := strings.Cut(f.GetFsId().GetMountpoint(), "io.containerd.snapshotter.v1."); found {
			return name, nil
		}
	}
	return defaultSnapshotter, nil
}

// status asks the CRI for its state and its configuration.
func (s *service) status(ctx context.Context) (*cri.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	said, err := s.runtime.Status(ctx, &cri.StatusRequest{Verbose: true})
	switch status.Code(err) {
	case codes.OK:
		return said, nil
	case codes.Unimplemented:
		return nil, &notReady{fmt.Sprintf("containerd %s at %s has no CRI, or an older one than v1", s.version, s.address),
			"use containerd 1.6 or later with its plugin cri enabled (sudo scripts/containerd start), and name its socket with CONTAINERD_ADDRESS"}
	}
	return nil, fmt.Errorf("the CRI of containerd at %s does not answer: %w", s.address, err)
}

// ready says why containerd can make no pods that Tare supports; nil if it can.
func (s *service) ready(ctx context.Context) error {
	if s.address == addresses[0] && running("kubelet") {
		return &notReady{"a kubelet uses containerd at " + s.address + ", and removes pods that it did not make",
			"start a separate containerd (sudo scripts/containerd start), and name its socket with CONTAINERD_ADDRESS"}
	}
	said, err := s.status(ctx)
	if err != nil {
		return err
	}
	for _, c := range said.GetStatus().GetConditions() {
		switch { // there are other conditions, which only warn
		case c.Status:
		case c.Type == cri.NetworkReady:
			return &notReady{"containerd has no network for pods: " + c.Message, "put a CNI configuration into /etc/cni/net.d, or start a separate containerd (sudo scripts/containerd start)"}
		case c.Type == cri.RuntimeReady:
			return &notReady{"containerd is not ready for pods: " + c.Message, "read containerd's log (journalctl -u containerd)"}
		}
	}
	of := s.configured.Containerd
	if of.Runtimes[of.DefaultRuntimeName].Options.SystemdCgroup {
		return &notReady{"containerd's CRI makes cgroups through systemd (SystemdCgroup = true); Tare supports only SystemdCgroup = false", "start a separate containerd (sudo scripts/containerd start), and name its socket with CONTAINERD_ADDRESS"}
	}
	if pause := s.configured.SandboxImage; pause != "" {
		if has, err := s.has(ctx, pause); err != nil {
			return err
		} else if !has {
			return &notReady{fmt.Sprintf("containerd lacks the image of pods' sandboxes, %s", pause), "ctr --address " + s.address + " --namespace k8s.io images pull " + pause}
		}
	}
	return nil
}

// running reports whether a program of this name runs on the host.
func running(name string) bool {
	pids, err := proc.All()
	return err == nil && slices.ContainsFunc(pids, func(pid int) bool { return proc.Name(pid) == name })
}

// has reports whether the CRI has the image.
func (s *service) has(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	said, err := s.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
	if err != nil {
		return false, fmt.Errorf("containerd, asked for the image %s: %w", name, err)
	}
	return said.Image != nil, nil
}

// pull has containerd pull and unpack the image.
func (s *service) pull(ctx context.Context, reference string) error {
	ctx, cancel := context.WithTimeout(ctx, engine.PullTime)
	defer cancel()
	if _, err := s.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: reference}}); err != nil {
		return fmt.Errorf("containerd did not pull the image %s: %w", reference, err)
	}
	return nil
}

// pulledLazily returns an error if containerd pulled a layer whole that it was to mount from the registry. A snapshotter that cannot mount such a
// layer has containerd pull it like any other, and says nothing.
func (s *service) pulledLazily(ctx context.Context, reference string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	img, err := s.GetImage(ctx, reference)
	if err != nil {
		return err
	}
	manifest, err := images.Manifest(ctx, s.ContentStore(), img.Target(), img.Platform())
	if err != nil {
		return fmt.Errorf("the manifest of the image %s: %w", reference, err)
	}
	lazy, whole := 0, 0
	for _, l := range manifest.Layers {
		if l.Annotations[estargz.TOCJSONDigestAnnotation] == "" {
			continue
		}
		lazy++
		if _, err := s.ContentStore().Info(ctx, l.Digest); err == nil {
			whole++
		} else if !errdefs.IsNotFound(err) {
			return err
		}
	}
	if whole > 0 {
		return fmt.Errorf("containerd pulled %d of the image's %d layers whole, and did not mount them from the registry; is disable_snapshot_annotations = false in its configuration?", whole, lazy)
	}
	return nil
}

// forget has containerd remove an image, its content and what was unpacked of it.
func (s *service) forget(ctx context.Context, reference string) error {
	ctx, cancel := steadily(ctx)
	defer cancel()
	if _, err := s.images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: reference}}); err != nil {
		return fmt.Errorf("containerd did not remove the image %s: %w", reference, err)
	}
	return nil
}

// wait returns a channel that gets a value when the container's task has ended.
func (s *service) wait(ctx context.Context, id string) (<-chan client.ExitStatus, error) {
	made, err := s.LoadContainer(ctx, id)
	var task client.Task
	if err == nil {
		task, err = made.Task(ctx, nil)
	}
	if err == nil {
		return task.Wait(ctx)
	}
	if errdefs.IsNotFound(err) { // it has ended already
		ended := make(chan client.ExitStatus, 1)
		ended <- client.ExitStatus{}
		return ended, nil
	}
	return nil, fmt.Errorf("containerd does not wait for the container's end: %w", err)
}

// imageFor returns containerd's name of the image with the tree's content, and imports it where containerd lacks it. It stays there as a cache.
func (s *service) imageFor(ctx context.Context, t *image.Tree) (string, error) {
	tag, err := t.Tag()
	if err != nil {
		return "", err
	}
	name := imageRepository + ":" + tag
	have, err := s.GetImage(ctx, name)
	if err == nil {
		whole, err := have.IsUnpacked(ctx, s.configured.Containerd.Snapshotter)
		if err == nil && whole && have.Labels()[labelImage] == t.Digest {
			return name, nil
		}
	} else if !errdefs.IsNotFound(err) {
		return "", err
	}
	if err := s.importTree(ctx, name, t); err != nil {
		return "", fmt.Errorf("importing the image into containerd: %w", err)
	}
	return name, s.noticed(ctx, name)
}

// noticed waits until the CRI knows a new image of containerd's: it learns of it by an event.
func (s *service) noticed(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		has, err := s.has(ctx, name)
		if err != nil || has {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd's CRI did not notice the imported image %s: %w", name, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// importTree makes an image of one layer, and has containerd unpack it.
func (s *service) importTree(ctx context.Context, name string, t *image.Tree) (err error) {
	ctx, done, err := s.WithLease(ctx) // keeps what is written until the image names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done(context.WithoutCancel(ctx))) }()
	layer, err := s.writeLayer(ctx, name, t)
	if err != nil {
		return err
	}
	settings, err := s.writeJSON(ctx, ocispec.MediaTypeImageConfig, ocispec.Image{
		Platform: ocispec.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}},
	}, nil)
	if err != nil {
		return err
	}
	manifest, err := s.writeJSON(ctx, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: settings, Layers: []ocispec.Descriptor{layer},
	}, map[string]string{"containerd.io/gc.ref.content.0": settings.Digest.String(), "containerd.io/gc.ref.content.1": layer.Digest.String()})
	if err != nil {
		return err
	}
	made := images.Image{Name: name, Target: manifest, Labels: map[string]string{labelImage: t.Digest}}
	if err := client.NewImage(s.Client, made).Unpack(ctx, s.configured.Containerd.Snapshotter); err != nil {
		return err
	}
	if _, err = s.ImageService().Create(ctx, made); errdefs.IsAlreadyExists(err) {
		_, err = s.ImageService().Update(ctx, made)
	}
	return err
}

// writeLayer writes the tree as a layer into containerd's store.
func (s *service) writeLayer(ctx context.Context, name string, t *image.Tree) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer}
	w, err := content.OpenWriter(ctx, s.ContentStore(), content.WithRef(name))
	if err != nil {
		return d, err
	}
	defer w.Close()
	if err := w.Truncate(0); err != nil { // of an interrupted import
		return d, err
	}
	sum := digest.Canonical.Digester()
	counted := &counter{w: io.MultiWriter(w, sum.Hash())}
	if err := t.Tar(ctx, counted); err != nil {
		return d, err
	}
	d.Digest, d.Size = sum.Digest(), counted.n
	if err := w.Commit(ctx, d.Size, d.Digest); err != nil && !errdefs.IsAlreadyExists(err) {
		return d, err
	}
	return d, nil
}

// counter counts the bytes that go to w.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// writeJSON writes a value as JSON into containerd's store.
func (s *service) writeJSON(ctx context.Context, mediaType string, v any, labels map[string]string) (ocispec.Descriptor, error) {
	text, err := json.Marshal(v)
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if err != nil {
		return d, err
	}
	return d, content.WriteBlob(ctx, s.ContentStore(), d.Digest.String(), bytes.NewReader(text), d, content.WithLabels(labels))
}

// layers are the folders of the host with the unpacked image of a tree.
func (s *service) layers(ctx context.Context, t *image.Tree) (dirs []string, err error) {
	name, err := s.imageFor(ctx, t)
	if err != nil {
		return nil, err
	}
	img, err := s.GetImage(ctx, name)
	if err != nil {
		return nil, err
	}
	ids, err := img.RootFS(ctx)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.WithLease(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done(context.WithoutCancel(ctx))) }() // removes the view too
	mounts, err := s.SnapshotService(s.configured.Containerd.Snapshotter).View(ctx, fmt.Sprintf("tare-%d", time.Now().UnixNano()), identity.ChainID(ids).String())
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if m.Type == "bind" {
			dirs = append(dirs, m.Source)
		}
	}
	return dirs, nil
}
