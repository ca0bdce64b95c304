//go:build linux

// Package oci makes containers with OCI runtimes: runc, crun, and gVisor's runsc.
package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/criu"
	"tare/lab/engine/oci/config"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// Crun and Runc are the engines of the two common runtimes.
var (
	Crun = kind("crun", "crun", "apt-get install crun", true)
	Runc = func() engine.Kind {
		k := kind("runc", "runc", "apt-get install runc", false)
		k.Saving, k.Unsaved = "runc restore", ""
		k.Capabilities = append(k.Capabilities, k.Saving)
		return driven(k, false)
	}()
)

// kind registers the engine of a runtime, a program that makes containers from OCI bundles. apart: it refuses a host where cgroup
// v2 has controllers next to v1, so Tare runs it without a view of cgroup v2.
func kind(name, program, install string, apart bool) engine.Kind {
	k := engine.Kind{
		Takes:   notebook.Span{Low: 0.08, High: 0.6},
		Program: program, Install: install, Packages: []string{name},
		Platform: notebook.CN, Name: name, Usual: true, Capabilities: []string{name}, Fractions: true, Undo: undo,
		Provisionings: notebook.Provisionings, Isolations: []string{notebook.IsolationFull},
		Networks: engine.Cabled, Ahead: true, Copies: true, RunsHooks: true,
		Unsaved: "Tare saves only containers of runc; Debian's crun is built without CRIU",
	}
	return driven(k, apart)
}

// driven gives the kind its driver.
func driven(k engine.Kind, apart bool) engine.Kind {
	self := k
	k.New = func(env engine.Env) engine.Driver { return &Driver{Env: env, Kind: self, apart: apart} }
	return k
}

// Driver makes containers with a runtime.
type Driver struct {
	engine.Env
	Kind  engine.Kind
	apart bool // see kind
}

// kindOCI is the journal's kind for a container of an OCI runtime; its target is the name.
const kindOCI = "oci-container"

// detailApart says in the journal that the runtime runs without a view of cgroup v2.
const detailApart = "apart"

func undo() map[string]journal.Undo { return map[string]journal.Undo{kindOCI: undoOCI} }

// Provision makes a container. An *engine.UnsupportedError says what no container can be.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	notes := []*notebook.Message{engine.NetworkNote(s.NetworkMode()), s.FilterNote()}
	if d.Kind.Saving != "" {
		return d.provision(ctx, s, &container{Base: engine.Base{Notes: notes}, driver: d}, nil, nil)
	}
	return d.provision(ctx, s, &engine.Base{Notes: notes}, nil, nil)
}

// Create implements engine.Creator: a bundle with its root mounted. Starting it is `run --detach`, which makes the namespaces, the
// cgroup and the mounts, as in the engines that call a runtime. (What a runtime itself calls "created" already has all of these.)
func (d *Driver) Create(ctx context.Context, s engine.Spec) (*engine.Ahead, error) {
	return d.ahead(ctx, s, &engine.Base{Notes: []*notebook.Message{engine.NetworkNote(s.NetworkMode())}}, nil, nil)
}

// ahead makes a container that is started later. prepare and met are as in provision.
func (d *Driver) ahead(ctx context.Context, s engine.Spec, g engine.Made,
	prepare func(*config.Container) ([]string, error), met func(context.Context) error) (*engine.Ahead, error) {
	h := d.held(prepare, met)
	h.Detached = func(b *engine.Base, runtime, root, run string) (create, start *exec.Cmd, err error) {
		start, err = d.command(b, runtime, root, run, prepare, "--detach")
		return nil, start, err
	}
	return d.Kind.HoldAhead(ctx, d.Env, s, g, h)
}

// provision makes a container. prepare, if not nil, changes the configuration and returns more arguments for the runtime. met is
// the recipe's Met.
func (d *Driver) provision(ctx context.Context, s engine.Spec, g engine.Made,
	prepare func(*config.Container) ([]string, error), met func(context.Context) error) (engine.Guest, error) {
	return d.Kind.Hold(ctx, d.Env, s, g, d.held(prepare, met))
}

func (d *Driver) held(prepare func(*config.Container) ([]string, error), met func(context.Context) error) engine.Held {
	h := engine.Held{
		Kind: kindOCI, Met: met,
		Detail: func(runtime, folder string) map[string]string {
			detail := map[string]string{"runtime": runtime, "states": states(folder)}
			if d.apart {
				detail[detailApart] = "yes"
			}
			return detail
		},
		Command: func(b *engine.Base, runtime, root, run string) (*exec.Cmd, error) {
			return d.command(b, runtime, root, run, prepare)
		},
	}
	if d.apart {
		h.SetUp = append(h.SetUp, HideV2)
	}
	return h
}

// states is where the runtime keeps the state of the containers of a guest's folder.
func states(folder string) string { return filepath.Join(folder, "runtime") }

// command writes the bundle and returns the command that runs it, with additional arguments.
func (d *Driver) command(b *engine.Base, runtime, root, run string, prepare func(*config.Container) ([]string, error), more ...string) (*exec.Cmd, error) {
	c, err := b.Spec.OCI(root, run)
	if err != nil {
		return nil, err
	}
	var flags []string
	if prepare != nil {
		if flags, err = prepare(&c); err != nil {
			return nil, err
		}
	}
	name := engine.ContainerName(b.Spec.ID)
	c.Cgroup = "/" + name
	spec, err := config.Config(c)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.Folder, "config.json"), text, 0o600); err != nil {
		return nil, err
	}
	return exec.Command(runtime, slices.Concat([]string{"--root", states(b.Folder)}, flags, []string{"run"}, more, []string{"--bundle", b.Folder, name})...), nil
}

// HideV2 gives the calling thread its own mount namespace without a cgroup v2 that has controllers next to those of v1. Processes
// that it starts see a host with only v1. The host keeps all its mounts.
func HideV2() error {
	mounts, err := proc.Host.Mounts()
	if err != nil {
		return err
	}
	hs, err := cgroup.Among(mounts)
	if err != nil || hs.Unified() || !slices.ContainsFunc(hs, func(h cgroup.Hierarchy) bool { return h.V2 && len(h.Controllers) > 0 }) {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace for the runtime: %w", err)
	}
	// What the host unmounts later goes here too, and changes here do not appear there.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("a mount namespace for the runtime: %w", err)
	}
	for _, m := range slices.Backward(mounts) {
		if m.FSType != "cgroup2" {
			continue
		}
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("hiding the cgroup v2 at %s from the runtime: %w", m.Mountpoint, err)
		}
	}
	return nil
}

// undoOCI removes a container in any state.
func undoOCI(ctx context.Context, e journal.Entry) error {
	states := e.Detail["states"]
	if err := engine.OwnFolder(e, filepath.Dir(states)); err != nil {
		return err
	}
	// End the runtime first: a runtime that outlived its Tare may still be making what the next step looks for.
	if err := criu.End(ctx, filepath.Dir(states), e.Detail["runtime"]); err != nil {
		return err
	}
	// A runtime keeps a folder for each container.
	var deleting error
	if _, err := os.Lstat(filepath.Join(states, e.Target)); err == nil {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		cmd := exec.CommandContext(bounded, e.Detail["runtime"], "--root", states, "delete", "--force", e.Target)
		cmd.WaitDelay = time.Second
		deleting = proc.Apart(func() error {
			if e.Detail[detailApart] != "" {
				if err := HideV2(); err != nil {
					return err
				}
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s delete: %w: %s", e.Detail["runtime"], err, out)
			}
			return nil
		})
	}
	// The runtime fails if it was killed while it made the container and now reads half a state. The cgroup still has all of the
	// container's processes, which are removed with it. So the runtime's error counts only if the cgroup's removal fails too.
	if err := cgroup.RemoveEverywhere(ctx, e.Target); err != nil {
		return errors.Join(err, deleting)
	}
	return criu.RemoveMounts(filepath.Dir(states))
}
