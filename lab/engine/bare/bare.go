//go:build linux

// Package bare is bare metal: the image's root by chroot and a CPU set of the instance's cores, and nothing else
// that the work would not have had on the machine itself. No other limit, no namespace, no overlay; the root is
// read-only, and what a workload writes goes to folders on the file system that Tare's state is on.
//
// The CPU set is a cgroup's (engine.Base.HoldToCPUs): affinity alone would hold no program that sets its own.
//
// One thing makes an overlay of the root: a device for whose libraries the image has no place, or which has programs write into the root. It is
// read-only too, and the record says so.
//
// The network is the host's. Only what must not be reached while it is prepared, and the load that is applied to other
// guests, have a network namespace: with the loopback alone, and with a cable to the bridge.
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

// Supports says why this host cannot hold a guest of the treatment to its CPUs; nil: it can, or the guest is to have all CPUs that are online.
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

// Provision makes a guest of bare metal. It gives no part of a core and no limit: an *engine.UnsupportedError says so.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	if err := Kind.Check(s); err != nil {
		return nil, err
	}
	if h, is := device.Late(s.Devices.Hooks); is {
		return nil, Kind.Unsupported("the device "+s.Devices.String(),
			fmt.Sprintf("its description has %s run at the moment %s, in a container or after its start, and there is none; the engines crun and runc can", h.Path, h.When))
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

// ownNetwork says whether the guest has a network namespace.
func ownNetwork(s engine.Spec) bool {
	m := s.NetworkMode()
	return m == notebook.NetBridge || m == notebook.NetNone
}

// inForce says whether the kernel holds the guest to its CPUs and to nothing else.
func (g *guest) inForce(s engine.Spec) error {
	l, err := g.Limits()
	if err != nil {
		return err
	}
	if want := notebook.FormatCPUList(s.CPUs); l.CPUs != want {
		return fmt.Errorf("its ruler may use CPUs %s, not %s: a CPU set above its own forbids the others; run tare outside of it", l.CPUs, want)
	}
	if err := g.HeldToCPUs(); err != nil {
		return err
	}
	if limits := engine.Differences(l, notebook.Limits{}); limits != nil {
		return Kind.Unsupported("the machine without a limit",
			fmt.Sprintf("tare itself runs in a cgroup with %s (%s); run it outside, as from a login on the host", strings.Join(limits, " and "), l.Source))
	}
	return nil
}

// Scratch is the folder on the host that the guest has at ruler.ScratchDir: what it left there can be taken from
// the host as long as the guest lives.
func (g *guest) Scratch() string { return filepath.Join(g.root, ruler.ScratchDir) }
