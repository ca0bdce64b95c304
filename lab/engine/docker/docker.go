//go:build linux

// Package docker makes containers with Docker Engine.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/ruler"
	"tare/notebook"
)

// Kind is the engine Docker.
var Kind = engine.Kind{
	Takes:    notebook.Span{Low: 0.3, High: 1.3},
	Platform: notebook.CN, Name: "docker", Usual: true, Capabilities: []string{"docker"}, Fractions: true, Undo: undo, Lasting: []string{kindDocker, kindPulled},
	Ahead:         true,
	Pulls:         true,
	RunsHooks:     true,
	Daemons:       []string{"dockerd", "containerd", "containerd-shim-runc-v2"},
	Packages:      []string{"docker.io", "iptables"},
	Publishes:     true,
	Unsaved:       "docker checkpoint is experimental and off by default",
	Provisionings: notebook.Provisionings, Isolations: []string{notebook.IsolationFull},
	New: func(env engine.Env) engine.Driver { return &Driver{Env: env} },
}

// Driver makes containers with Docker Engine through its API on a Unix socket. The engine must see the state folder at the same
// path.
type Driver struct {
	engine.Env
	// Host is the engine's address, "unix:///…"; empty: DOCKER_HOST, or else dockerapi.DefaultHost.
	Host string
	// answered: the engine has answered in this run.
	answered bool
}

// daemon connects to the engine. It waits for an engine that answered before in this run and now refuses, because it is restarting.
func (d *Driver) daemon(ctx context.Context) (*daemon, error) {
	connect := dial
	if d.answered {
		connect = dialPatiently
	}
	e, err := connect(ctx, d.Host)
	d.answered = d.answered || err == nil
	return e, err
}

func undo() map[string]journal.Undo {
	return map[string]journal.Undo{kindDocker: undoDocker, kindPulled: undoPulled(dial)}
}

const (
	// kindDocker is the journal's kind for a Docker container; its target is the name.
	kindDocker = "docker-container"
	// kindPulled is the journal's kind for an image that a start pulls; its target is the reference.
	kindPulled = "docker-image"
	// labelGuest on a container has the guest's id. Tare never removes a container without it.
	labelGuest = "tare"
	// labelImage on an image has the digest of the image that it was made from.
	labelImage = "tare.image"
	// imageRepository is the name of imported images in the engine.
	imageRepository = "tare/image"
)

type guest struct {
	engine.Base
	daemon *daemon
	name   string
}

// Prepare imports the image into the engine, once for each content. It stays there as a cache. Provision does it too, but then the
// import counts as a part of the guest's start.
func (d *Driver) Prepare(ctx context.Context, img *image.Image) error {
	e, err := d.daemon(ctx)
	if err != nil {
		return err
	}
	_, err = e.imageFor(ctx, &img.Tree)
	return err
}

// imageFor returns the engine's name of the image with the tree's content, and imports it where the engine lacks it.
func (e *daemon) imageFor(ctx context.Context, t *image.Tree) (string, error) {
	tag, err := t.Tag()
	if err != nil {
		return "", err
	}
	name := imageRepository + ":" + tag
	var have imageState
	err = e.do(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &have)
	if err == nil && have.Config.Labels[labelImage] == t.Digest {
		return name, nil
	}
	if err != nil && status(err) != http.StatusNotFound {
		return "", err
	}
	// The engine names an image only when it has all of it, so an interrupted import leaves no image.
	r, w := io.Pipe()
	go func() { w.CloseWithError(t.Tar(ctx, w)) }()
	defer r.Close() // ends the tar when the engine stops reading
	q := url.Values{"fromSrc": {"-"}, "repo": {imageRepository}, "tag": {tag}, "changes": {"LABEL " + labelImage + "=" + t.Digest}}
	if err := e.do(ctx, http.MethodPost, createImage, q, r, nil); err != nil {
		return "", fmt.Errorf("importing the image into the engine: %w", err)
	}
	// Progress and errors come mixed in one stream of answers, so check the image itself.
	if err := e.do(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &have); err != nil {
		return "", fmt.Errorf("the engine did not keep the imported image (is its disk full?): %w", err)
	}
	if have.Config.Labels[labelImage] != t.Digest {
		return "", fmt.Errorf("the engine's image %s has label %s=%q; must be %q; remove it (docker rmi %[1]s)", name, labelImage, have.Config.Labels[labelImage], t.Digest)
	}
	return name, nil
}

// zstdAPI is the API of the first engine that unpacks layers compressed by zstd (Docker 23.0).
const zstdAPI = "1.42"

// Supports implements engine.Chooser: only a newer engine pulls every image, and none pulls lazily.
func (d *Driver) Supports(ctx context.Context, t notebook.Treatment) error {
	switch notebook.PullOf(t).Compression {
	case notebook.CompressionEstargz:
		return Kind.Unsupported("images that are pulled lazily", "it pulls a whole image before a container starts; the engine cri pulls lazily")
	case notebook.CompressionZstd:
	default:
		return nil
	}
	e, err := d.daemon(ctx)
	if err != nil || !older(e.api, zstdAPI) {
		return err
	}
	return Kind.Unsupported("layers compressed by zstd", fmt.Sprintf("this engine has API %s; zstd needs Docker 23.0 (API %s) or newer", e.api, zstdAPI))
}

// Forget implements engine.Puller.
func (d *Driver) Forget(ctx context.Context, reference string) error {
	e, err := d.daemon(ctx)
	if err != nil {
		return err
	}
	return e.forget(ctx, reference)
}

func (e *daemon) forget(ctx context.Context, reference string) error {
	err := steadily(ctx, func(ctx context.Context) error {
		return e.do(ctx, http.MethodDelete, "/images/"+reference, nil, nil, nil)
	})
	if status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// undoPulled has the engine forget an image that a start pulled. Its guest is gone before.
func undoPulled(connect func(context.Context, string) (*daemon, error)) journal.Undo {
	return func(ctx context.Context, entry journal.Entry) error {
		if err := engine.OwnImage(entry); err != nil {
			return err
		}
		e, err := connect(ctx, entry.Detail["host"])
		switch {
		case err == nil:
			return e.forget(ctx, entry.Target)
		case gone(entry):
			return nil
		}
		return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
	}
}

// entries are the journal's for a guest of the spec; they are undone from the last to the first.
func (g *guest) entries(s engine.Spec, data string) (all []journal.Entry) {
	asked := time.Now()
	if s.Pull != "" {
		all = append(all, journal.Entry{Kind: kindPulled, Target: s.Pull, Detail: map[string]string{"host": g.daemon.host, "data": data}})
		asked = asked.Add(engine.PullTime) // the container is requested after the pull
	}
	return append(all, journal.Entry{Kind: kindDocker, Target: g.name, Detail: map[string]string{
		"host": g.daemon.host, "data": data, "guest": s.ID, "time": asked.Format(time.RFC3339Nano),
	}})
}

// pulled has the engine pull the image that the spec names, and notes when it has it. Without one it only asks whether ctx is done.
func (e *daemon) pulled(ctx context.Context, s engine.Spec) error {
	if s.Pull == "" {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, engine.PullTime)
	defer cancel()
	if err := e.do(ctx, http.MethodPost, createImage, url.Values{"fromImage": {s.Pull}}, nil, nil); err != nil {
		return fmt.Errorf("the engine did not pull the image %s: %w", s.Pull, err)
	}
	// Progress and errors come mixed in one stream of answers, so check the image itself.
	if err := e.do(ctx, http.MethodGet, "/images/"+s.Pull+"/json", nil, nil, nil); err != nil {
		return fmt.Errorf("the engine did not pull the image %s: %w", s.Pull, err)
	}
	s.Moments.Mark(notebook.MomentImage)
	return ctx.Err()
}

// Provision makes a container. An *engine.UnsupportedError says what no container can be.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	g, r, err := d.recipe(ctx, s, waiting)
	if err != nil {
		return nil, err
	}
	return engine.Make(ctx, d.Env, s, g, r)
}

// Create implements engine.Creator: it makes what `docker create` makes, the container's configuration and its layer. The start
// makes its namespaces, cgroup, mounts and network.
func (d *Driver) Create(ctx context.Context, s engine.Spec) (*engine.Ahead, error) {
	g, r, err := d.recipe(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	return engine.Create(ctx, d.Env, s, g, r)
}

// recipe is the recipe of a container. Until waiting is done the engine is asked for the container's end, which ends the wait for
// its hello. With nil waiting the engine is only asked to start it.
func (d *Driver) recipe(ctx context.Context, s engine.Spec, waiting context.Context) (*guest, engine.Recipe, error) {
	if err := Kind.Container(s); err != nil {
		return nil, engine.Recipe{}, err
	}
	e, err := d.daemon(ctx)
	if err != nil {
		return nil, engine.Recipe{}, err
	}
	var info engineInfo
	if err := e.do(ctx, http.MethodGet, "/info", nil, nil, &info); err != nil {
		return nil, engine.Recipe{}, err
	}
	if err := info.finds(s.Devices); err != nil {
		return nil, engine.Recipe{}, err
	}
	img := s.Pull
	if img == "" {
		if img, err = e.imageFor(ctx, &s.Image.Tree); err != nil {
			return nil, engine.Recipe{}, err
		}
	}
	g := &guest{Base: engine.Base{Notes: append(notes(s.NetworkMode()), elsewhere(info.DockerRootDir, d.State)...)}, daemon: e, name: engine.ContainerName(s.ID)}
	died := make(chan struct{})
	return g, engine.Recipe{
		What: "docker container", Undo: map[string]journal.Undo{kindDocker: removeDocker, kindPulled: undoPulled(dialPatiently)},
		Journal: func(string) []journal.Entry { return g.entries(s, info.DockerRootDir) },
		Met: func(context.Context) error {
			// Docker's storage drivers may lose the owner and the mode of an image's "/". No command has run in the guest yet.
			if err := config.SameRoot(fmt.Sprintf("/proc/%d/root", g.PID), s.Image.Dir); err != nil {
				return err
			}
			return g.FindCgroup()
		},
		InForce: func() error { return g.LimitsInForce(s.ContainerLimits()) },
		Create: func(ctx context.Context) (engine.Meeting, error) {
			socket, err := g.NewSocket(d.Ruler)
			if err != nil {
				return nil, err
			}
			socket.Died = died
			container, err := configure(img, socket.Dir, s)
			if err != nil {
				return nil, err
			}
			if err := e.pulled(ctx, s); err != nil {
				return nil, err
			}
			err = steadily(ctx, func(ctx context.Context) error {
				return e.do(ctx, http.MethodPost, "/containers/create", url.Values{"name": {g.name}}, container, nil)
			})
			if err == nil {
				s.Moments.Mark(notebook.MomentCreated)
			}
			return socket, err
		},
		Start: func(ctx context.Context) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := steadily(ctx, func(ctx context.Context) error {
				return e.do(ctx, http.MethodPost, "/containers/"+g.name+"/start", nil, nil, nil)
			})
			if err == nil {
				s.Moments.Mark(notebook.MomentReturned)
			}
			if err != nil || waiting == nil {
				return err
			}
			go func() {
				// An error here is not the container's end: the caller then waits for the hello or for ctx.
				if e.do(waiting, http.MethodPost, "/containers/"+g.name+"/wait", nil, nil, nil) == nil {
					close(died)
				}
			}()
			return nil
		},
	}, nil
}

// elsewhere notes that the engine's folder is on another file system than Tare's: results of work that writes then compare the two.
func elsewhere(engines, tares string) []*notebook.Message {
	var a, b unix.Stat_t
	if unix.Stat(engines, &a) != nil || unix.Stat(tares, &b) != nil || a.Dev == b.Dev { // a folder that cannot be read says nothing
		return nil
	}
	return []*notebook.Message{notebook.Say("engine-writes-elsewhere", "engine", engines, "tare", tares)}
}

// finds says why the engine cannot find devices whose descriptions run programs, which it does only for devices that it finds
// itself; nil if it can, or need not.
func (i engineInfo) finds(d device.Edits) error {
	if len(d.Hooks) == 0 {
		return nil
	}
	cannot := func(why string) error {
		return Kind.Unsupported("the device "+d.String(), fmt.Sprintf("its description runs %s while a container is made, which the Docker Engine does only for devices that it knows, and %s", d.Hooks[0].Path, why))
	}
	if len(i.CDISpecDirs) == 0 {
		return cannot(`this one knows no description of devices (CDI); that is switched on in Docker 28.3 or newer, and in 25 to 28.2 by {"features": {"cdi": true}} in /etc/docker/daemon.json`)
	}
	for _, dir := range d.Dirs {
		if !slices.ContainsFunc(i.CDISpecDirs, func(reads string) bool { return same(reads, dir) }) {
			return cannot(fmt.Sprintf("this one reads descriptions in %s and not in %s; name that folder in \"cdi-spec-dirs\" in /etc/docker/daemon.json", strings.Join(i.CDISpecDirs, " and "), dir))
		}
	}
	return nil
}

// same reports whether two paths are the same folder.
func same(a, b string) bool {
	if a == b {
		return true
	}
	left, err := os.Stat(a)
	if err != nil {
		return false
	}
	right, err := os.Stat(b)
	return err == nil && os.SameFile(left, right)
}

// configure makes the configuration of a container of an image, with a folder of the ruler's on the host.
func configure(img, run string, s engine.Spec) (c *containerConfig, err error) {
	processes, err := engine.MaxProcesses()
	if err != nil {
		return nil, err
	}
	limits := s.ContainerLimits()
	c = &containerConfig{
		Image: img, Entrypoint: engine.RulerArgs[:1], Cmd: engine.RulerArgs[1:], Env: []string{}, User: "0:0", WorkingDir: "/",
		Labels: map[string]string{labelGuest: s.ID},
		HostConfig: hostConfig{
			Mounts:      []mount{bind(run, ruler.RunDir)},
			NetworkMode: "bridge",
			Memory:      limits.Memory,
			MemorySwap:  limits.Memory, // memory and swap together: no swap
			PidsLimit:   processes,
			ShmSize:     config.ShmSize(s.Instance.Memory),
			// The ruler prints only why it cannot start. Another logging driver, set as the engine's default, could lose that.
			LogConfig: logConfig{"json-file", map[string]string{"max-size": "64k", "max-file": "1"}},
		},
	}
	if s.Work != nil {
		c.HostConfig.Mounts = append(c.HostConfig.Mounts, bind(s.Work.Dir, ruler.WorkDir))
	}
	if len(s.Devices.Hooks) > 0 {
		c.HostConfig.DeviceRequests = []deviceRequest{{"cdi", s.Devices.Names}}
		s.Devices = device.Edits{} // the engine adds all of them
	}
	for _, n := range s.Devices.Nodes {
		c.HostConfig.Devices = append(c.HostConfig.Devices, deviceMapping{n.Host, n.Path, n.Access})
	}
	for _, m := range s.Mounts() {
		given := bind(m.Host, m.Path)
		given.ReadOnly = m.ReadOnly
		c.HostConfig.Mounts = append(c.HostConfig.Mounts, given)
	}
	switch s.NetworkMode() {
	case notebook.NetHost, notebook.NetNone:
		c.HostConfig.NetworkMode = s.NetworkMode() // the engine uses the same words
	case notebook.NetBridge:
		if s.Network.Port != 0 {
			port := strconv.Itoa(s.Network.Port)
			c.ExposedPorts = map[string]struct{}{port + "/tcp": {}}
			outside := strconv.Itoa(cmp.Or(s.Network.Published, s.Network.Port))
			c.HostConfig.PortBindings = map[string][]portBinding{port + "/tcp": {{s.Network.Host().String(), outside}}}
		}
	}
	c.HostConfig.CpusetCpus = limits.CPUs
	if limits.Quota > 0 {
		if c.HostConfig.CpuQuota, err = config.Quota(limits.Quota); err != nil {
			return nil, err
		}
		c.HostConfig.CpuPeriod = config.Period
	}
	return c, nil
}

func bind(source, target string) mount {
	m := mount{Type: "bind", Source: source, Target: target, ReadOnly: true}
	m.BindOptions.Propagation = "rprivate"
	return m
}

// notes are the notes on a container for its record.
func notes(network string) []*notebook.Message {
	connected := engine.NetworkNote(network)
	if network == "" || network == notebook.NetBridge {
		connected = notebook.Say("engine-bridge", "published", network == notebook.NetBridge)
	}
	return []*notebook.Message{connected, notebook.Say("seccomp-filter", "of", "the engine")}
}

// Address implements engine.Guest. On the engine's bridge the service need not know its address: the engine forwards the published
// port.
func (g *guest) Address() engine.Address {
	a := g.Base.Address()
	if g.Spec.NetworkMode() == notebook.NetBridge {
		a.Listen, a.Port = netip.IPv4Unspecified(), g.Spec.Network.Published
	}
	return a
}

// Diagnose is the engine's description of the container's state.
func (g *guest) Diagnose() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	path := "/containers/" + g.name
	// The ruler's stream ends a little before the engine knows. Do not wait long for a container that goes on: the engine's answer
	// below says so.
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

// Destroy implements engine.Guest.
func (g *guest) Destroy(ctx context.Context) error {
	err := g.Base.Destroy(ctx)
	if err == nil && g.Cgroup != "" {
		// The engine says that the container is gone. Ask the kernel too.
		if left, lerr := cgroup.Procs(g.Cgroup); lerr != nil || len(left) > 0 {
			err = fmt.Errorf("docker removed container %s, but its processes %v still exist (%v)", g.name, left, lerr)
		}
	}
	return err
}

// createTime bounds making and starting a container that the caller no longer waits for.
const createTime = 30 * time.Second

// steadily sends a request that goes on when ctx is done. If it were cut off, the engine would go on making what the following
// removal did not find.
func steadily(ctx context.Context, ask func(context.Context) error) error {
	steady, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	return ask(steady)
}

// undoDocker removes a container that another, dead process requested.
func undoDocker(ctx context.Context, entry journal.Entry) error {
	asked, err := engine.Asked(entry)
	if err != nil {
		return err
	}
	e, err := dial(ctx, entry.Detail["host"])
	if err != nil {
		if gone(entry) {
			return nil
		}
		return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
	}
	return e.remove(ctx, entry, engine.Appears(asked))
}

// removeDocker removes a container that this process requested.
func removeDocker(ctx context.Context, entry journal.Entry) error {
	e, err := dialPatiently(ctx, entry.Detail["host"])
	if err != nil {
		if gone(entry) {
			return nil
		}
		return err
	}
	return e.remove(ctx, entry, time.Time{})
}

// gone reports whether the engine's own data is gone, and all its containers with it.
func gone(entry journal.Entry) bool {
	data := entry.Detail["data"]
	_, err := os.Stat(data)
	return data != "" && errors.Is(err, os.ErrNotExist)
}

// remove removes a container if it is Tare's. It waits for the container to appear until the given time.
func (e *daemon) remove(ctx context.Context, entry journal.Entry, appears time.Time) error {
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
		case entry.Detail["guest"] == "" || c.Config.Labels[labelGuest] != entry.Detail["guest"]:
			return nil // somebody else's container, which had the name first, or an entry that does not say whose it is
		default:
			seen = true
			err := e.do(ctx, http.MethodDelete, path, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
			// Not found: just gone. Conflict: the engine is already removing it. Not running: it ended before the engine could kill it,
			// and Docker 20.10 fails then. Ask again until it is gone.
			s := status(err)
			ended := s == http.StatusInternalServerError && strings.Contains(err.Error(), "is not running")
			if err != nil && s != http.StatusNotFound && s != http.StatusConflict && !ended {
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

// mostComponents bounds the number of programs that Docker Engine lists as its components.
const mostComponents = 16

// Probe implements engine.Prober: it asks Docker Engine for its version. A container would need an image, and leave it there.
func (d *Driver) Probe(ctx context.Context, capability string) notebook.Capability {
	c := notebook.Capability{Name: capability}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	e, err := dial(ctx, d.Host)
	var v struct {
		Version, ApiVersion string
		Components          []struct{ Name, Version string }
	}
	if err == nil {
		err = e.do(ctx, http.MethodGet, "/version", nil, nil, &v)
	}
	switch {
	case err == nil:
		c.Answer, c.Why = notebook.Supported, fmt.Sprintf("Docker Engine %s (API %s) at %s", v.Version, v.ApiVersion, e.host)
		c.Versions = map[string]string{"docker": v.Version}
		for _, part := range v.Components { // the first is the engine itself
			if part.Name != "Engine" && len(c.Versions) < mostComponents {
				c.Versions[part.Name] = part.Version
			}
		}
	case errors.Is(err, fs.ErrPermission):
		c.Answer, c.Why, c.Do = notebook.NotSupported, err.Error(), "run tare as root (sudo tare …)"
	case ctx.Err() != nil:
		c.Answer, c.Why = notebook.Inconclusive, err.Error()
	default:
		c.Answer, c.Why = notebook.NotSupported, err.Error()
		var silent *silentError
		if errors.As(err, &silent) {
			c.Why, c.Do = silent.why(), silent.do
			if _, missing := exec.LookPath("dockerd"); missing != nil {
				c.Do = "apt-get install docker.io, and " + c.Do
			}
		}
	}
	return c
}

// Reads implements engine.Reads: the layers of the engine's own copy of the image, if its storage driver says where they are, and
// the work's files.
func (d *Driver) Reads(ctx context.Context, s engine.Spec) ([]string, error) {
	e, err := dial(ctx, d.Host)
	if err != nil {
		return nil, err
	}
	img, err := e.imageFor(ctx, &s.Image.Tree)
	if err != nil {
		return nil, err
	}
	var have imageState
	if err := e.do(ctx, http.MethodGet, "/images/"+img+"/json", nil, nil, &have); err != nil {
		return nil, err
	}
	var all []string
	for _, dirs := range []string{have.GraphDriver.Data["UpperDir"], have.GraphDriver.Data["LowerDir"]} {
		for _, dir := range strings.Split(dirs, ":") {
			if dir != "" {
				all = append(all, dir)
			}
		}
	}
	if len(all) == 0 {
		return nil, Kind.Unsupported("a cold or a warm page cache", fmt.Sprintf("its storage driver, %s, does not say where an image's files are", have.GraphDriver.Name))
	}
	if s.Work != nil {
		all = append(all, s.Work.Dir)
	}
	return all, nil
}
