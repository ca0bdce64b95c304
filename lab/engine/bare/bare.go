//go:build linux

// Package bare is bare metal: the image's root by chroot and a CPU set of the instance's cores, and otherwise only what the work
// would have on the machine itself. It has no other limit, no namespace and no overlay. The root is read-only, and what a workload
// writes goes to folders on the file system of Tare's state.
//
// The CPU set is a cgroup's (engine.Base.HoldToCPUs), because affinity does not confine a program that sets its own.
//
// The root becomes an overlay in one case: a device for whose libraries the image has no place, or whose programs write into the
// root. The overlay is read-only too, and the record says so.
//
// The network is the host's, with two exceptions: a preparation that nobody may reach has a network namespace with only the
// loopback, and the load on other guests has one with a cable to the bridge.
package bare

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// Kind is bare metal.
var Kind = engine.Kind{
	Takes:    notebook.Span{Low: 0.01, High: 0.2},
	Platform: notebook.BM, RunsHooks: true,
	Network: func(_ string, service bool) string {
		if service {
			return notebook.NetHost
		}
		return ""
	},
	New: func(env engine.Env) engine.Driver { return &Driver{env} },
}

// Driver makes guests of bare metal.
type Driver struct{ engine.Env }

type guest struct {
	engine.Base
	root string
}

// Supports says why this host cannot confine a guest of the treatment to its CPUs; nil if it can, or if the guest has all online
// CPUs.
func (d *Driver) Supports(_ context.Context, t notebook.Treatment) error {
	why, err := engine.CanHoldToCPUs()
	if err != nil || why == "" || t.OthersOffline {
		return err
	}
	online, err := proc.OnlineCPUs()
	if err != nil || t.Instance.Cores == float64(cmp.Or(t.HostCores, len(online))) {
		return err
	}
	return Kind.Unsupported("CPUs of its own", why)
}

// Provision makes a guest of bare metal. It supports neither parts of a core nor limits: an *engine.UnsupportedError says so.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	if err := Kind.Check(s); err != nil {
		return nil, err
	}
	if h, is := device.Late(s.Devices.Hooks); is {
		return nil, Kind.Unsupported("the device "+s.Devices.String(),
			fmt.Sprintf("its description runs %s at the moment %s, in a container or after its start, but bare metal has no container; the engines crun and runc support this", h.Path, h.When))
	}
	g := &guest{Base: engine.Base{Unfenced: true}}
	switch layer, err := layered(s); {
	case err != nil:
		return nil, err
	case layer:
		g.Notes = []*notebook.Message{notebook.Say("root-overlay", "devices", s.Devices.String())}
	}
	return engine.Make(ctx, d.Env, s, g, engine.Recipe{
		What: "bare metal guest", Address: s.NetworkMode() == notebook.NetBridge, Programs: []string{d.Ruler},
		Create: func(ctx context.Context) (engine.Meeting, error) {
			g.root = filepath.Join(g.Folder, "root")
			if err := Mounts(ctx, g.Folder, g.root, s, nil); err != nil {
				return nil, err
			}
			if err := g.HoldToCPUs(); err != nil {
				return nil, err
			}
			s.Moments.Mark(notebook.MomentCreated)
			cmd := exec.Command(d.Ruler, "--fd", "3", "--root", g.root)
			if ownNetwork(s) {
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			}
			return g.StartRuler(cmd, s.CPUs)
		},
		Met: func(context.Context) error {
			if !ownNetwork(s) {
				return nil
			}
			return g.PlugNew()
		},
		InForce: func() error { return g.inForce(s) },
	})
}

// ownNetwork reports whether the guest has a network namespace.
func ownNetwork(s engine.Spec) bool {
	m := s.NetworkMode()
	return m == notebook.NetBridge || m == notebook.NetNone
}

// inForce checks that the kernel confines the guest to its CPUs and limits nothing else.
func (g *guest) inForce(s engine.Spec) error {
	l, err := g.Limits()
	if err != nil {
		return err
	}
	if want := notebook.FormatCPUList(s.CPUs); l.CPUs != want {
		return fmt.Errorf("its ruler may use CPUs %s, not %s, because a CPU set above its own forbids the others; run tare outside of that CPU set", l.CPUs, want)
	}
	if err := g.HeldToCPUs(); err != nil {
		return err
	}
	if limits := engine.Differences(l, notebook.Limits{}); limits != nil {
		return Kind.Unsupported("the machine without a limit",
			fmt.Sprintf("tare itself runs in a cgroup with %s (%s); run it outside, for example from a login on the host", strings.Join(limits, " and "), l.Source))
	}
	return nil
}

// Scratch is the folder on the host that the guest has at ruler.ScratchDir. The host can read the guest's files there while the
// guest lives.
func (g *guest) Scratch() string { return filepath.Join(g.root, ruler.ScratchDir) }
