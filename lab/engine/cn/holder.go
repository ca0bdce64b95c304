//go:build linux

package cn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/ruler"
	"tare/notebook"
)

// undoTime bounds what the drivers undo on their own.
const undoTime = 30 * time.Second

// holder makes containers of an engine without a daemon: a program on the host makes the container and holds it for as
// long as it lives.
type holder struct {
	journal *journal.Journal
	state   string // folder below which the guests' folders are made
	engine  string // its name
	program string // absolute path
	notes   []string
	// command configures the container with that root and that socket, announces it and gives the command that runs it.
	command func(g *guest, folder, root, socket string) (*exec.Cmd, error)
	// sandbox: the engine is gVisor, where the one that comes to the door is not the ruler.
	sandbox bool
}

// guest is a container that a program holds.
type guest struct {
	engine.Parts        // its process is the program
	first        int    // process whose end is the guest's, on the host
	cgroup       string // folder that lists the container's processes
	network      string // mode
	sandbox      bool   // the container's kernel is gVisor's
	notes        []string
}

// provision makes a container. A *engine.CannotError says what no container can be.
func (h *holder) provision(ctx context.Context, s engine.Spec) (_ engine.Guest, err error) {
	if err := check("cn with "+h.engine, s); err != nil {
		return nil, err
	}
	g := &guest{Parts: engine.Parts{Changes: engine.NewChanges(h.journal, Undo())}, network: s.NetworkMode(), sandbox: h.sandbox, notes: h.notes}
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
			defer cancel()
			err = errors.Join(fmt.Errorf("%s container %s: %w", h.engine, s.ID, err), g.Destroy(undo))
		}
	}()
	if g.Connection, err = engine.Connect(s.Network, s.NetworkMode() == notebook.NetBridge); err != nil {
		return nil, err
	}
	folder, err := g.Changes.MakeFolder(h.state, s.ID, h.program)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(folder, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	if err := engine.Overlay(folder, root, s.Image.Dir); err != nil {
		return nil, err
	}
	door, err := openDoor(folder)
	if err != nil {
		return nil, err
	}
	defer door.l.Close()
	cmd, err := h.command(g, folder, root, door.path)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd.Dir = "/"
	if g.Process, err = engine.Start(cmd, nil); err != nil {
		return nil, err
	}
	if g.Client, g.first, err = door.meet(ctx, g.Process.Done()); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w (%s)", err, g.Autopsy())
		}
		return nil, err
	}
	if g.sandbox {
		g.first, err = sentry(g.first) // its network was there before it
	} else {
		// Nothing but the ruler runs in the container until its first order, and the ruler needs no network: so it is
		// connected while it runs, which every other engine allows.
		err = g.connect()
	}
	if err != nil {
		return nil, err
	}
	if g.cgroup, err = cgroupOf(g.first); err != nil {
		return nil, err
	}
	return g, inForce(g.first, s)
}

// connect sets up what the container's network namespace has in it.
func (g *guest) connect() error {
	switch g.network {
	case "", notebook.NetNone:
		return network.Loopback(g.first) // not every engine does
	}
	return g.Connection.Plug(g.first)
}

// Processes lists the process first whose end is the guest's.
func (g *guest) Processes() ([]int, error) { return inside(g.cgroup, g.first) }

func (g *guest) Limits() (notebook.Limits, error) { return cgroup.LimitsOf(g.first) }

func (g *guest) Facts() engine.Facts {
	words := "the loopback alone, in a namespace"
	switch g.network {
	case notebook.NetBridge:
		words = "a namespace with a virtual cable to the bridge that the load is on"
	case notebook.NetHost:
		words = "the host's"
	}
	return engine.Facts{Kernel: g.Client.Hello().Kernel, Notes: append([]string{"network: " + words}, g.notes...)}
}

func (g *guest) Autopsy() string {
	if g.Process == nil {
		return ""
	}
	return "the runtime: " + g.Process.Ended()
}

// containerName is a container's name with its runtime or engine, and its cgroup's. The cgroup is at the top of
// the hierarchies and not in a folder "tare" there: nobody could say when that may be removed.
func containerName(id string) string { return "tare-" + strings.TrimPrefix(id, "tare-") }

// lookUp gives a program's absolute path.
func lookUp(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// probe is an Engine's.
func probe(ctx context.Context, d engine.Lacking, name, program, install string, j *journal.Journal, state string) notebook.Capability {
	c := notebook.Capability{Name: name}
	took, err := try(ctx, d, name, j, state)
	cannot, never := errors.AsType[*engine.CannotError](err)
	switch {
	case err == nil:
		c.Answer, c.Why = notebook.Supported, fmt.Sprintf("a container with a quota and a memory limit answered %v after it was asked for", took.Round(time.Millisecond))
		for _, l := range d.Lacks() {
			c.Why += "; not so that " + l.Name + ": " + l.Why
		}
	case never:
		c.Answer, c.Why, c.Do = notebook.NotSupported, cannot.What+": "+cannot.Why, "use another engine, or change the host as said"
	case errors.Is(err, exec.ErrNotFound):
		c.Answer, c.Why, c.Do = notebook.NotSupported, program+" is not installed", install
	case ctx.Err() != nil:
		c.Answer, c.Why = notebook.Inconclusive, err.Error()
	default:
		c.Answer, c.Why, c.Do = notebook.NotSupported, err.Error(), "see what "+program+" said"
	}
	return c
}

// try makes a guest of an empty root and asks it something.
func try(ctx context.Context, d engine.Driver, name string, j *journal.Journal, state string) (took time.Duration, err error) {
	changes := engine.NewChanges(j, nil)
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, changes.Undo(undo))
	}()
	id := fmt.Sprintf("probe-%s-%d", name, os.Getpid())
	root, err := changes.MakeFolder(state, id+"-root")
	if err != nil {
		return 0, err
	}
	for _, dir := range []string{"proc", "sys", "dev", "tmp", ruler.WorkDir, ruler.ScratchDir, ruler.RunDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	g, err := d.Provision(ctx, engine.Spec{
		ID: id, Provisioning: notebook.Vanilla, Image: &image.Image{Tree: image.Tree{Dir: root}},
		Instance: notebook.Instance{Name: "probe", Cores: 1, Memory: 256 << 20},
	})
	if err != nil {
		return 0, err
	}
	took = time.Since(start)
	_, err = g.Ruler().Ping(ctx)
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return took, errors.Join(err, g.Destroy(undo))
}
