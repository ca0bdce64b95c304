//go:build linux

// Package layers makes a container from one layer of isolation after the other, so that a study can measure the cost of each
// layer (the isolation ladder; paper "pinning", section VI: "overhead by isolation level"). A guest has the layer that its
// spec names and all layers below it in notebook.Rungs, or only that one and what it needs (notebook.LayersOf). The lowest layer adds to a process of package bare. Each layer changes
// only this:
//
//	cgroup        its own cgroup in every hierarchy, with bare metal's CPU set; it counts, and limits nothing else.
//	quota         a CPU quota of the instance's cores.
//	memory        the memory limit, without additional swap.
//	uts, ipc      UTS and IPC namespaces; the UTS namespace has its own host name.
//	pid           a PID namespace with the ruler as first process, and its own /proc.
//	mount         a mount namespace, with pivot_root instead of chroot.
//	network       a network namespace with only the loopback, and its own /sys; lower layers have the host's network.
//	seccomp       Docker's default filter (config.Seccomp).
//	capabilities  the capabilities that Docker's containers have by default (config.Capabilities), also as bounding set.
//	overlay       a writable layer over the image, instead of the read-only image with separate writable folders.
//	bridge        a virtual cable to the bridge of the spec's network.
//
// The engines' containers have the same limits and names, so an OCI runtime's container is one more rung. Only the engine's
// own parts then differ: a device list for its cgroup, masked paths, and programs that keep running.
package layers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/engine/oci/config"
	"tare/notebook"
)

// Kind is the engine that makes the isolation ladder's rungs.
var Kind = engine.Kind{
	Takes:    notebook.Span{Low: 0.04, High: 0.3},
	Platform: notebook.CN, Name: notebook.LayersEngine, Isolations: slices.Concat(notebook.Rungs, notebook.SingleLayers),
	Network: func(top string, service bool) string {
		if service {
			return reached(top)
		}
		if Has(top, "bridge") {
			return notebook.NetBridge
		}
		return ""
	},
	NoDevices: "a rung of the isolation ladder has the devices that every container has; ask for an engine",
	New:       func(env engine.Env) engine.Driver { return &Driver{env} },
}

// Driver makes guests of some layers. The layers are Tare's own. Which of them the kernel allows shows when a guest is made.
type Driver struct{ engine.Env }

// Has reports whether a guest of the isolation has the layer (notebook.LayersOf).
func Has(isolation, layer string) bool { return slices.Contains(notebook.LayersOf(isolation), layer) }

// reached is how a guest whose topmost layer is top is connected if the load must reach a service in it. By its layers the network
// is the host's (notebook.NetHost), nobody's (NetNone), or on the bridge (NetBridge).
func reached(top string) string {
	switch {
	case Has(top, "bridge"):
		return notebook.NetBridge
	case Has(top, "network"):
		return notebook.NetNone
	}
	return notebook.NetHost
}

type guest struct {
	engine.Base
	layer   string // the topmost one
	network string // mode
	root    string
	dirs    []string // of its cgroups
}

func (g *guest) has(layer string) bool { return Has(g.layer, layer) }

// ownNetwork reports whether the guest has a network namespace: by its layers or, below those, by the request, as on bare metal.
func (g *guest) ownNetwork() bool {
	return g.has("network") || g.network == notebook.NetBridge || g.network == notebook.NetNone
}

// cannot is the error for a layer that this host, or the spec, does not allow.
func (g *guest) cannot(what, why string) error {
	return &engine.UnsupportedError{Engine: "cn of layers up to " + g.layer, What: what, Why: why}
}

// Provision makes a guest. An *engine.UnsupportedError says which layer this host cannot make.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	g := &guest{Base: engine.Base{Unfenced: true}, layer: s.Isolation, network: s.NetworkMode()}
	if err := g.check(s); err != nil {
		return nil, err
	}
	mode := g.network
	if mode == "" && !g.ownNetwork() {
		mode = notebook.NetHost
	}
	g.Notes = []*notebook.Message{engine.NetworkNote(mode)}
	return engine.Make(ctx, d.Env, s, g, engine.Recipe{
		What: "guest of layers up to " + g.layer + ",", Address: g.network == notebook.NetBridge, Programs: []string{d.Entry, d.Ruler},
		ErrorsFrom: g.explain,
		Create: func(ctx context.Context) (engine.Meeting, error) {
			g.root = filepath.Join(g.Folder, "root")
			if err := bare.Mounts(ctx, g.Folder, g.root, s, g.base(g.Folder, s.Image.Dir)); err != nil {
				return nil, err
			}
			if err := g.cgroups(s); err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return g.start(d.Entry, d.Ruler, s)
		},
		Met: func(context.Context) error {
			g.Cgroup = g.dirs[0]
			if !g.ownNetwork() {
				return nil
			}
			return g.PlugNew()
		},
		InForce: func() error { return g.inForce(s) },
	})
}

// explain adds the output of the process that enters the layers to an error. Where the kernel refused a layer, the error is an
// *engine.UnsupportedError.
func (g *guest) explain(err error) error {
	said := g.Diagnose()
	if _, why, ok := strings.Cut(said, refusal); ok {
		layer, why, _ := strings.Cut(why, ": ")
		return g.cannot(layer, "the kernel refuses it: "+why)
	}
	return fmt.Errorf("%w (%s)", err, said)
}

// check refuses impossible specifications.
func (g *guest) check(s engine.Spec) error {
	if err := Kind.Check(s); err != nil {
		return err
	}
	switch {
	case !slices.Contains(Kind.Isolations, g.layer):
		return fmt.Errorf("layers up to %q: must be one of %s", g.layer, strings.Join(Kind.Isolations, ", "))
	case s.Instance.Memory <= 0:
		return fmt.Errorf("layers with %d bytes of memory; must be more than 0", s.Instance.Memory)
	case g.has("network") && g.network == notebook.NetHost:
		return g.cannot("the host's network", "it has a network namespace; ask for a lower layer")
	}
	return nil
}

// base mounts the overlay; nil below that layer, where the root is bare metal's.
func (g *guest) base(folder, image string) func() error {
	if !g.has("overlay") {
		return nil
	}
	return func() error {
		err := engine.Overlay(folder, g.root, image)
		if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) {
			return g.cannot("overlay", fmt.Sprintf("the kernel refuses it on the file system of %s: %v", folder, err))
		}
		return err
	}
}

// namespaces are the namespaces of the layers, by their names in /proc/PID/ns.
var namespaces = []struct {
	layer, name string
	flag        uintptr
}{
	{"uts", "uts", unix.CLONE_NEWUTS}, {"ipc", "ipc", unix.CLONE_NEWIPC}, {"pid", "pid", unix.CLONE_NEWPID},
	{"mount", "mnt", unix.CLONE_NEWNS}, {"network", "net", unix.CLONE_NEWNET},
}

// owns reports whether the guest has a namespace of its own for the layer.
func (g *guest) owns(layer string) bool {
	if layer == "network" {
		return g.ownNetwork()
	}
	return g.has(layer)
}

// start starts the process that enters the layers and becomes the ruler.
func (g *guest) start(program, becomes string, s engine.Spec) (engine.Meeting, error) {
	order, err := json.Marshal(entry{Layer: g.layer, Ruler: becomes, Cgroups: g.dirs, CPUs: s.CPUs, Hostname: config.Hostname(s.ID)})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, Command, g.root, string(order))
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, n := range namespaces {
		if g.owns(n.layer) {
			cmd.SysProcAttr.Cloneflags |= n.flag
		}
	}
	m, err := g.StartRuler(cmd, s.CPUs)
	for _, no := range []error{unix.EINVAL, unix.EPERM, unix.ENOSPC} {
		if cmd.SysProcAttr.Cloneflags != 0 && errors.Is(err, no) {
			return nil, g.cannot("namespaces", fmt.Sprintf("the kernel refuses a process in namespaces of its own: %v (see /proc/sys/user)", err))
		}
	}
	return m, err
}
