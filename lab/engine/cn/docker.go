//go:build linux

package cn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// Docker makes containers with Docker Engine through its API on a Unix socket.
type Docker struct {
	// Journal has every change that is made on the host.
	Journal *journal.Journal
	// State is the folder below which the guests' folders are made. The engine sees the same path.
	State string
	// Ruler is the path of the ruler's program.
	Ruler string
	// Host is the engine's address, "unix:///PATH"; empty: DOCKER_HOST, or else DefaultDockerHost.
	Host string
}

const (
	// kindDocker is the journal's kind for a container of Docker's, target its name.
	kindDocker = "docker-container"
	// labelGuest on a container has the guest's id. Nothing without it is ever removed.
	labelGuest = "tare"
	// labelImage on an image has the digest of the image that it was made of.
	labelImage = "tare.image"
	// imageRepository is how images that are handed to the engine are called there.
	imageRepository = "tare/image"
)

type dockerGuest struct {
	engine.Parts
	daemon  *daemon
	name    string
	pid     int
	cgroup  string
	network string // mode
}

// Prepare hands the image to the engine, once for each content: it stays there, as a cache, until RemoveImages.
// Provision does it too; done before, it does not count as a guest's start.
func (d *Docker) Prepare(ctx context.Context, img *image.Image) error {
	e, err := dial(ctx, d.Host)
	if err != nil {
		return err
	}
	_, err = e.imageFor(ctx, &img.Tree)
	return err
}

// RemoveImages removes the images that Tare handed to the engine, and says which. Those that a container still
// uses stay, with an error.
func (d *Docker) RemoveImages(ctx context.Context) (removed []string, err error) {
	e, err := dial(ctx, d.Host)
	if err != nil {
		return nil, err
	}
	var images []struct {
		ID       string `json:"Id"`
		RepoTags []string
	}
	q := url.Values{"filters": {`{"label":["` + labelImage + `"]}`}}
	if err := e.do(ctx, http.MethodGet, "/images/json", q, nil, &images); err != nil {
		return nil, err
	}
	var errs []error
	for _, i := range images {
		if err := e.do(ctx, http.MethodDelete, "/images/"+i.ID, nil, nil, nil); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, strings.Join(append(i.RepoTags, i.ID), " "))
	}
	return removed, errors.Join(errs...)
}

// imageFor returns the engine's name of the image with the tree's content, and makes it where the engine lacks it.
func (e *daemon) imageFor(ctx context.Context, t *image.Tree) (string, error) {
	_, hex, ok := strings.Cut(t.Digest, ":")
	if !ok || len(hex) < 12 {
		return "", fmt.Errorf("image digest %q: want ALGORITHM:HEX", t.Digest)
	}
	tag := hex[:12]
	name := imageRepository + ":" + tag
	var have imageState
	err := e.do(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &have)
	if err == nil && have.Config.Labels[labelImage] == t.Digest {
		return name, nil
	}
	if err != nil && status(err) != http.StatusNotFound {
		return "", err
	}
	// The engine names an image only when it has all of it, so an import that is cut off leaves none.
	r, w := io.Pipe()
	go func() { w.CloseWithError(t.Tar(w)) }()
	defer r.Close() // ends the tar when the engine wants no more of it
	q := url.Values{"fromSrc": {"-"}, "repo": {imageRepository}, "tag": {tag}, "changes": {"LABEL " + labelImage + "=" + t.Digest}}
	if err := e.do(ctx, http.MethodPost, "/images/create", q, r, nil); err != nil {
		return "", fmt.Errorf("handing the image to the engine: %w", err)
	}
	// Progress and errors come mixed in one stream of answers; the image itself is the proof.
	if err := e.do(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &have); err != nil {
		return "", fmt.Errorf("the engine did not keep the image handed to it (is its disk full?): %w", err)
	}
	if have.Config.Labels[labelImage] != t.Digest {
		return "", fmt.Errorf("the engine's image %s has label %s=%q, want %q; remove it (docker rmi %[1]s)", name, labelImage, have.Config.Labels[labelImage], t.Digest)
	}
	return name, nil
}

// Provision makes a container. A *engine.CannotError says what no container can be.
func (d *Docker) Provision(ctx context.Context, s engine.Spec) (_ engine.Guest, err error) {
	if err := check("cn with docker", s); err != nil {
		return nil, err
	}
	e, err := dial(ctx, d.Host)
	if err != nil {
		return nil, err
	}
	img, err := e.imageFor(ctx, &s.Image.Tree)
	if err != nil {
		return nil, err
	}
	var info struct{ DockerRootDir string }
	if err := e.do(ctx, http.MethodGet, "/info", nil, nil, &info); err != nil {
		return nil, err
	}
	g := &dockerGuest{
		Parts:  engine.Parts{Changes: engine.NewChanges(d.Journal, map[string]journal.Undo{kindDocker: removeDocker})},
		daemon: e, name: containerName(s.ID), network: s.NetworkMode(),
	}
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
			defer cancel()
			err = errors.Join(fmt.Errorf("docker container %s: %w", s.ID, err), g.Destroy(undo))
		}
	}()
	if g.Connection, err = engine.Connect(s.Network, false); err != nil {
		return nil, err
	}
	folder, err := g.Changes.MakeFolder(d.State, s.ID)
	if err != nil {
		return nil, err
	}
	door, err := openDoor(folder)
	if err != nil {
		return nil, err
	}
	defer door.l.Close()
	config, err := d.config(img, door.path, s)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := g.Changes.Announce(journal.Entry{Kind: kindDocker, Target: g.name, Detail: map[string]string{
		"host": e.host, "data": info.DockerRootDir, "guest": s.ID, "time": time.Now().Format(time.RFC3339Nano),
	}}); err != nil {
		return nil, err
	}
	if err := e.createAndStart(ctx, g.name, config); err != nil {
		return nil, err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	died := make(chan struct{})
	go func() {
		// An error here is not the container's end: the one who waits then waits for its hello or for ctx.
		if e.do(waiting, http.MethodPost, "/containers/"+g.name+"/wait", nil, nil, nil) == nil {
			close(died)
		}
	}()
	if g.Client, g.pid, err = door.meet(ctx, died); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w (%s)", err, g.Autopsy())
		}
		return nil, err
	}
	if g.cgroup, err = cgroupOf(g.pid); err != nil {
		return nil, err
	}
	return g, inForce(g.pid, s)
}

func (d *Docker) config(img, socket string, s engine.Spec) (*containerConfig, error) {
	program, err := filepath.Abs(d.Ruler)
	if err != nil {
		return nil, err
	}
	c := &containerConfig{
		Image: img, Entrypoint: rulerArgs[:1], Cmd: rulerArgs[1:], Env: []string{}, User: "0:0", WorkingDir: "/",
		Labels: map[string]string{labelGuest: s.ID},
		HostConfig: hostConfig{
			Mounts:      []mount{bind(program, ruler.Program, true), bind(socket, ruler.Socket, false)},
			NetworkMode: "bridge",
			Memory:      s.Instance.Memory,
			MemorySwap:  s.Instance.Memory, // the sum: no swap
			ShmSize:     oci.ShmSize(s.Instance.Memory),
			// The ruler prints what keeps it from starting, and nothing else; another driver set as the engine's
			// default could lose it.
			LogConfig: logConfig{"json-file", map[string]string{"max-size": "64k", "max-file": "1"}},
		},
	}
	if s.Work != nil {
		c.HostConfig.Mounts = append(c.HostConfig.Mounts, bind(s.Work.Dir, ruler.WorkDir, true))
	}
	switch s.NetworkMode() {
	case notebook.NetHost, notebook.NetNone:
		c.HostConfig.NetworkMode = s.NetworkMode() // the engine's words are the same
	case notebook.NetBridge:
		if s.Network.Port != 0 {
			port := strconv.Itoa(s.Network.Port)
			c.ExposedPorts = map[string]struct{}{port + "/tcp": {}}
			c.HostConfig.PortBindings = map[string][]portBinding{port + "/tcp": {{s.Network.Bridge.Host().String(), port}}}
		}
	}
	if s.Provisioning == notebook.Vanilla || full(s) {
		if c.HostConfig.CpuQuota, err = oci.Quota(s.Instance.Cores); err != nil {
			return nil, err
		}
		c.HostConfig.CpuPeriod = oci.Period
	}
	if s.Provisioning != notebook.Vanilla {
		c.HostConfig.CpusetCpus = proc.FormatCPUList(s.CPUs)
	}
	return c, nil
}

func bind(source, target string, readonly bool) mount {
	m := mount{Type: "bind", Source: source, Target: target, ReadOnly: readonly}
	m.BindOptions.Propagation = "rprivate"
	return m
}

// Processes lists the ruler first.
func (g *dockerGuest) Processes() ([]int, error) { return inside(g.cgroup, g.pid) }

func (g *dockerGuest) Limits() (notebook.Limits, error) { return cgroup.LimitsOf(g.pid) }

func (g *dockerGuest) Facts() engine.Facts {
	words := "the engine's bridge"
	switch g.network {
	case notebook.NetBridge:
		words += ", with the service's port published where the load is"
	case notebook.NetHost:
		words = "the host's"
	case notebook.NetNone:
		words = "the loopback alone, in a namespace"
	}
	return engine.Facts{Kernel: g.Client.Hello().Kernel, Notes: []string{"network: " + words, "the engine's seccomp filter"}}
}

// Address implements engine.Guest. On the engine's bridge the service need not know its address: the engine brings
// what comes to the published port.
func (g *dockerGuest) Address() engine.Address {
	a := g.Parts.Address()
	if g.network == notebook.NetBridge {
		a.Listen = netip.IPv4Unspecified()
	}
	return a
}

// Autopsy is what the engine says of the container.
func (g *dockerGuest) Autopsy() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	path := "/containers/" + g.name
	// The ruler's stream ends a little before the engine knows. A container that lives on is not waited for, and
	// the engine's answer below says so.
	soon, stop := context.WithTimeout(ctx, time.Second)
	g.daemon.do(soon, http.MethodPost, path+"/wait", nil, nil, nil)
	stop()
	var c containerState
	if err := g.daemon.do(ctx, http.MethodGet, path+"/json", nil, nil, &c); err != nil {
		return "the engine: " + err.Error()
	}
	said := fmt.Sprintf("the engine: %s, exit code %d", c.State.Status, c.State.ExitCode)
	if c.State.OOMKilled {
		said += ", out of memory"
	}
	if c.State.Error != "" {
		said += ": " + c.State.Error
	}
	if log := g.daemon.log(ctx, g.name); log != "" {
		said += "; it said: " + log
	}
	return said
}

func (g *dockerGuest) Destroy(ctx context.Context) error {
	err := g.Parts.Destroy(ctx)
	if err == nil && g.cgroup != "" {
		// The engine says that the container is gone; the kernel is asked as well.
		if left, lerr := cgroup.Procs(g.cgroup); lerr != nil || len(left) > 0 {
			err = fmt.Errorf("docker removed container %s and processes %v of it live on (%v)", g.name, left, lerr)
		}
	}
	return err
}

// createAndStart makes the container run. It is not broken off half-way when ctx is done: the engine would go on
// making what the removal that follows had not found.
func (e *daemon) createAndStart(ctx context.Context, name string, config *containerConfig) error {
	steady, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := e.do(steady, http.MethodPost, "/containers/create", url.Values{"name": {name}}, config, nil); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.do(steady, http.MethodPost, "/containers/"+name+"/start", nil, nil, nil)
}

// inFlight is how long after it was asked for a container may still appear: a Tare that was killed may have died
// between its request and the engine's doing.
const inFlight = 3 * time.Second

// undoDocker removes a container that another process, which has died, asked for.
func undoDocker(ctx context.Context, entry journal.Entry) error {
	asked, err := time.Parse(time.RFC3339Nano, entry.Detail["time"])
	if err != nil {
		return fmt.Errorf("the journal's entry for %s: %w", entry.Target, err)
	}
	until := time.Now().Add(min(inFlight, inFlight-time.Since(asked)))
	return remove(ctx, entry, until)
}

// removeDocker removes a container that this process asked for.
func removeDocker(ctx context.Context, entry journal.Entry) error {
	return remove(ctx, entry, time.Time{})
}

// remove removes a container, unless it is not Tare's. Until the given time it waits for it to appear.
func remove(ctx context.Context, entry journal.Entry, appears time.Time) error {
	e, err := dial(ctx, entry.Detail["host"])
	if err != nil {
		data := entry.Detail["data"]
		if _, serr := os.Stat(data); data != "" && errors.Is(serr, os.ErrNotExist) {
			return nil // the engine's own data is gone, and all its containers with it
		}
		return err
	}
	path := "/containers/" + entry.Target
	for seen := false; ; {
		var c containerState
		err := e.do(ctx, http.MethodGet, path+"/json", nil, nil, &c)
		switch {
		case status(err) == http.StatusNotFound:
			if seen || !time.Now().Before(appears) {
				return nil
			}
		case err != nil:
			return err
		case c.Config.Labels[labelGuest] != entry.Detail["guest"]:
			return nil // somebody else's, which had the name before us
		default:
			seen = true
			err := e.do(ctx, http.MethodDelete, path, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
			// Not found: gone just now. Conflict: the engine is removing it already; ask again until it has.
			if s := status(err); err != nil && s != http.StatusNotFound && s != http.StatusConflict {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("docker has not removed container %s: %w", entry.Target, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
