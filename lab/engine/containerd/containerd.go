//go:build linux

// Package containerd makes containers with containerd, through its own client. The root is the image's with an overlay by Tare, as in an OCI
// runtime's container: containerd gets no image and no snapshot. The configuration is the one that an OCI runtime gets, and containerd hands it
// to runc. Tare's containers are in a namespace of their own, which other users of containerd do not see.
package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// Kind is the engine containerd. It keeps the whole contract.
var Kind = engine.Kind{
	Takes:    notebook.Span{Low: 0.15, High: 1.2},
	Platform: notebook.CN, Name: "containerd", Usual: true, Capabilities: []string{"containerd"}, Fractions: true, Undo: undo, Lasting: []string{kindContainerd},
	Unsaved:       "Tare does not use containerd's checkpoints; it can save containers of runc",
	Provisionings: notebook.Provisionings, Isolations: []string{notebook.IsolationFull},
	Networks: engine.Cabled, Ahead: true, Copies: true, RunsHooks: true,
	Daemons:  []string{"containerd", "containerd-shim-runc-v2"},
	Packages: []string{"containerd", "runc"},
	New:      func(env engine.Env) engine.Driver { return &Driver{Env: env} },
}

// Driver makes containers with the containerd of the host.
type Driver struct {
	engine.Env
	connection       *client.Client // nil: not connected yet
	address, version string         // its socket, and the version of containerd
}

const (
	// namespace is the namespace of Tare's containers in containerd.
	namespace = "tare"
	// labelGuest on a container has the guest's id. Tare never removes a container without it.
	labelGuest = "tare"
	// kindContainerd is the journal's kind for a container; its target is the name.
	kindContainerd = "containerd-container"
	// answerTime bounds the wait for containerd to accept a connection, or to answer a simple request.
	answerTime = 10 * time.Second
	// createTime bounds making, starting or removing a container that the caller no longer waits for.
	createTime = 30 * time.Second
)

// addresses are where containerd listens: by default, and where the Docker Engine has started it.
var addresses = []string{"/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock"}

// address is the path of containerd's socket: CONTAINERD_ADDRESS, or the first of addresses that exists.
func address() (string, error) {
	if given := os.Getenv("CONTAINERD_ADDRESS"); given != "" {
		return strings.TrimPrefix(given, "unix://"), nil
	}
	for _, path := range addresses {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("containerd does not run: there is no socket %s: %w; start it (systemctl start containerd), or name another socket with CONTAINERD_ADDRESS", strings.Join(addresses, " or "), fs.ErrNotExist)
}

// dial connects to containerd for a namespace of its containers, and asks for its version.
func dial(ctx context.Context, path, namespace string) (*client.Client, string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := client.New(path, client.WithDefaultNamespace(namespace), client.WithTimeout(answerTime))
	if err != nil {
		return nil, "", fmt.Errorf("containerd at %s does not answer: %w", path, err)
	}
	v, err := c.Version(ctx)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("containerd at %s does not answer: %w", path, err), c.Close())
	}
	return c, v.Version, nil
}

// connected returns the connection to containerd, which lasts as long as the driver.
func (d *Driver) connected(ctx context.Context) (_ *client.Client, err error) {
	if d.connection == nil {
		if d.address, err = address(); err != nil {
			return nil, err
		}
		d.connection, d.version, err = dial(ctx, d.address, namespace)
	}
	return d.connection, err
}

type guest struct {
	engine.Base
	made client.Container // nil: its record is not made yet
}

// Files in a guest's folder with what its ruler prints: why it cannot start.
const (
	said    = "said"     // what it prints as errors; of a pod, all that it prints
	saidOut = "said-out" // the rest
)

// printing makes the files, one for each stream. A shim that gets one file for both closes it at the end of the first stream, and then loses
// what comes by the other (containerd 1.6 to 2.4, process/io.go).
func printing(folder string) cio.Creator {
	return func(string) (cio.IO, error) {
		for _, name := range []string{said, saidOut} {
			f, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			if err := f.Close(); err != nil {
				return nil, err
			}
		}
		return printed{cio.Config{Stdout: filepath.Join(folder, saidOut), Stderr: filepath.Join(folder, said)}}, nil
	}
}

// printed are the files as containerd wants them. The shim writes to them, so there is nothing to copy, to await or to close here.
type printed struct{ of cio.Config }

func (p printed) Config() cio.Config { return p.of }
func (printed) Cancel()              {}
func (printed) Wait()                {}
func (printed) Close() error         { return nil }

// Diagnose implements engine.Guest: it is the state of the container's task, and what its ruler said.
func (g *guest) Diagnose() string {
	if g.made == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	state, ended := "containerd: ", true
	if task, err := g.made.Task(ctx, nil); err != nil {
		state += err.Error()
	} else if s, err := task.Status(ctx); err != nil {
		state += err.Error()
	} else {
		state += fmt.Sprintf("%s, exit code %d", s.Status, s.ExitStatus)
		ended = s.Status == client.Stopped
	}
	return state + whatItSaid(ctx, g.Folder, ended)
}

// shimTime bounds the wait for what an ended container has printed: its shim passes it on after the end is known, and on a busy host
// long after it.
const shimTime = 5 * time.Second

// whatItSaid is what a container's ruler has printed, as the end of a sentence.
func whatItSaid(ctx context.Context, folder string, ended bool) string {
	ctx, cancel := context.WithTimeout(ctx, shimTime)
	defer cancel()
	for {
		all, text := true, ""
		for _, name := range []string{said, saidOut} {
			path := filepath.Join(folder, name)
			all = complete(path) && all // before it is read
			if b, err := os.ReadFile(path); err == nil {
				text += string(b)
			}
		}
		if text != "" {
			return "; it said: " + strings.TrimSpace(text[:min(len(text), mostSaid)])
		}
		if !ended || all {
			return ""
		}
		select {
		case <-time.After(10 * time.Millisecond): // the shim gives no notice
		case <-ctx.Done():
			return ""
		}
	}
}

// complete reports whether nobody will write to the file any more, because nobody has it open to write: only then the kernel grants a
// lease to a reader.
func complete(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // then nobody ever wrote to it
	}
	defer f.Close() // which ends the lease
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil
}

// mostSaid bounds what is shown of what a ruler printed, in bytes.
const mostSaid = 4096

// Prepare implements engine.Preparer: it connects to containerd.
func (d *Driver) Prepare(ctx context.Context, _ *image.Image) error {
	_, err := d.connected(ctx)
	return err
}

// Provision makes a container. An *engine.UnsupportedError says what no container can be.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	g, r, err := d.recipe(ctx, s)
	if err != nil {
		return nil, err
	}
	return engine.Make(ctx, d.Env, s, g, r)
}

// Create implements engine.Creator: it makes the container's record in containerd, and its root. The start makes the task: its namespaces, cgroup
// and mounts.
func (d *Driver) Create(ctx context.Context, s engine.Spec) (*engine.Ahead, error) {
	g, r, err := d.recipe(ctx, s)
	if err != nil {
		return nil, err
	}
	return engine.Create(ctx, d.Env, s, g, r)
}

func (d *Driver) recipe(ctx context.Context, s engine.Spec) (*guest, engine.Recipe, error) {
	if err := Kind.Container(s); err != nil {
		return nil, engine.Recipe{}, err
	}
	c, err := d.connected(ctx)
	if err != nil {
		return nil, engine.Recipe{}, err
	}
	g := &guest{Base: engine.Base{Notes: []*notebook.Message{engine.NetworkNote(s.NetworkMode()), s.FilterNote()}}}
	name := engine.ContainerName(s.ID)
	died := make(chan struct{})
	return g, engine.Recipe{
		What: "containerd container", Address: s.NetworkMode() != notebook.NetHost,
		Undo: map[string]journal.Undo{kindContainerd: func(ctx context.Context, e journal.Entry) error { return remove(ctx, c, e, time.Time{}) }},
		Journal: func(string) []journal.Entry {
			return []journal.Entry{{Kind: kindContainerd, Target: name, Detail: map[string]string{
				"address": d.address, "guest": s.ID, "time": time.Now().Format(time.RFC3339Nano),
			}}}
		},
		Create: func(ctx context.Context) (engine.Meeting, error) {
			socket, err := g.Rooted(ctx, d.Ruler, func(root, run string) (err error) {
				g.made, err = create(ctx, c, s, name, root, run)
				return err
			})
			if err != nil {
				return nil, err
			}
			socket.Died = died
			return socket, nil
		},
		Start: func(ctx context.Context) error { return start(ctx, g, died) },
		Met: func(context.Context) error {
			if err := g.Plug(); err != nil {
				return err
			}
			return g.FindCgroup()
		},
		InForce: func() error { return g.LimitsInForce(s.ContainerLimits()) },
	}, nil
}

// steadily is a context for a request that goes on when ctx is done.
func steadily(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), createTime)
}

// create makes the container's record. A request goes on when ctx is done: if it were cut off, containerd would go on making what the
// following removal did not find.
func create(ctx context.Context, c *client.Client, s engine.Spec, name, root, run string) (client.Container, error) {
	wanted, err := s.OCI(root, run)
	if err != nil {
		return nil, err
	}
	wanted.Cgroup = "/" + name
	spec, err := config.Config(wanted)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	steady, cancel := steadily(ctx)
	defer cancel()
	made, err := c.NewContainer(steady, name, client.WithSpec(spec), client.WithContainerLabels(map[string]string{labelGuest: s.ID}))
	if err != nil {
		return nil, fmt.Errorf("containerd did not make the container: %w", err)
	}
	return made, nil
}

// start makes the container's task and starts it. died is closed when the task has ended.
func start(ctx context.Context, g *guest, died chan<- struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	steady, cancel := steadily(ctx)
	defer cancel()
	task, err := g.made.NewTask(steady, printing(g.Folder))
	if err != nil {
		return fmt.Errorf("containerd did not make the container's task: %w", err)
	}
	g.Spec.Moments.Mark(notebook.MomentCreated)
	ended, err := task.Wait(context.WithoutCancel(ctx)) // it ends with the task, which the removal of the guest ends at the latest
	if err != nil {
		return fmt.Errorf("containerd does not wait for the container's end: %w", err)
	}
	go func() {
		<-ended
		close(died)
	}()
	if err := task.Start(steady); err != nil {
		return fmt.Errorf("containerd did not start the container: %w", err)
	}
	g.Spec.Moments.Mark(notebook.MomentReturned)
	return nil
}

func undo() map[string]journal.Undo { return map[string]journal.Undo{kindContainerd: undoContainerd} }

// undoContainerd removes a container that another, dead process requested, and the shim that containerd may have left behind.
func undoContainerd(ctx context.Context, e journal.Entry) error {
	asked, err := engine.Asked(e)
	if err != nil {
		return err
	}
	c, _, err := dial(ctx, e.Detail["address"], namespace)
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrUnreachable, err)
	}
	defer c.Close()
	if err := remove(ctx, c, e, engine.Appears(asked)); err != nil {
		return err
	}
	return endShims(ctx, e.Target)
}

// remove removes a container if it is Tare's, with its task. Until the given time it also waits for the container to appear, even
// after removing it: containerd may still be serving a request that was cut off.
func remove(ctx context.Context, c *client.Client, e journal.Entry, appears time.Time) error {
	for {
		made, err := c.LoadContainer(ctx, e.Target)
		switch {
		case errdefs.IsNotFound(err):
			if !time.Now().Before(appears) {
				return cgroup.RemoveEverywhere(ctx, e.Target)
			}
		case err != nil:
			return fmt.Errorf("containerd, asked for the container %s: %w", e.Target, err)
		default:
			labels, err := made.Labels(ctx)
			if err != nil && !errdefs.IsNotFound(err) {
				return err
			}
			if err == nil && (e.Detail["guest"] == "" || labels[labelGuest] != e.Detail["guest"]) {
				return nil // somebody else's container, or an entry that does not say whose it is
			}
			if err := end(ctx, made); err != nil {
				return fmt.Errorf("containerd has not removed the container %s: %w", e.Target, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd has not removed the container %s: %w", e.Target, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// endShims kills the shims of a container that is gone. If the client of a request to delete a task dies at the wrong moment, containerd removes
// the task and the container, and leaves the shim running ("the shim might be leaked").
func endShims(ctx context.Context, name string) error {
	pids, err := proc.All()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if !isShim(pid, name) {
			continue
		}
		start, err := proc.StartTime(pid)
		if err == nil && isShim(pid, name) { // check again: the pid may have been reused before its start time was read
			err = proc.Kill(ctx, pid, start)
		}
		if err != nil && !proc.Ended(err) {
			return fmt.Errorf("containerd left the shim of the container %s running, and Tare cannot end it: %w", name, err)
		}
	}
	return nil
}

// isShim reports whether the process is the shim of Tare's container of this name: containerd passes a shim its namespace and the container's name.
func isShim(pid int, name string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false // ended
	}
	args := strings.Split(string(text), "\x00")
	has := func(flag, value string) bool {
		i := slices.Index(args, flag)
		return i > 0 && i+1 < len(args) && args[i+1] == value
	}
	return strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && has("-namespace", namespace) && has("-id", name)
}

// end kills the container's task and removes both. What is gone already counts as removed, and a task that has just appeared is left to the next
// attempt. Like create, it goes on when ctx is done.
func end(ctx context.Context, made client.Container) error {
	ctx, cancel := steadily(ctx)
	defer cancel()
	task, err := made.Task(ctx, nil)
	if err == nil {
		_, err = task.Delete(ctx, client.WithProcessKill)
	}
	if err == nil || errdefs.IsNotFound(err) {
		err = made.Delete(ctx)
	}
	if errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err) {
		return nil
	}
	return err
}

// Probe implements engine.Prober: it asks containerd for its version.
func (d *Driver) Probe(ctx context.Context, capability string) notebook.Capability {
	c := notebook.Capability{Name: capability}
	_, err := d.connected(ctx)
	switch {
	case err == nil:
		c.Answer, c.Why = notebook.Supported, fmt.Sprintf("containerd %s at %s", d.version, d.address)
		c.Versions = map[string]string{"containerd": d.version}
	default:
		c.Answer, c.Why, c.Do = unanswered(ctx, err, "apt-get install containerd runc, and start it")
	}
	return c
}

// unanswered is the answer of a probe for which containerd could not be asked. install is what to do where it is not installed.
func unanswered(ctx context.Context, err error, install string) (answer notebook.Answer, why, do string) {
	answer, why = notebook.NotSupported, err.Error()
	_, missing := exec.LookPath("containerd")
	switch {
	case errors.Is(err, fs.ErrPermission):
		do = "run tare as root (sudo tare …)"
	case ctx.Err() != nil:
		answer = notebook.Inconclusive
	case missing != nil:
		do = install
	}
	return answer, why, do
}

// QuickProbe implements engine.QuickProber: asking containerd makes no container.
func (d *Driver) QuickProbe(ctx context.Context, capability string) notebook.Capability {
	return engine.Unprivileged(d.Probe(ctx, capability))
}
