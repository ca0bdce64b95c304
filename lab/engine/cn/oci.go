//go:build linux

package cn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tare/lab/engine"
	"tare/lab/engine/oci"
	"tare/lab/journal"
	"tare/lab/ruler"
	"tare/notebook"
)

// OCI makes containers with an OCI runtime.
type OCI struct {
	// Journal has every change that is made on the host.
	Journal *journal.Journal
	// State is the folder below which the guests' folders are made.
	State string
	// Ruler is the path of the ruler's program.
	Ruler string
	// Runtime is the runtime's name, looked up in PATH, or its path: "crun", "runc", RunscName.
	Runtime string
}

// kindOCI is the journal's kind for a container of an OCI runtime, target its name.
const kindOCI = "oci-container"

// Provision makes a container. A *engine.CannotError says what no container can be.
func (d *OCI) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	runtime, err := lookUp(d.Runtime)
	if err != nil {
		return nil, fmt.Errorf("OCI runtime: %w; install it (%s)", err, d.install())
	}
	if err := refusedByCrun(runtime, crunUnified); err != nil {
		return nil, err
	}
	h := holder{journal: d.Journal, state: d.State, engine: d.engine(), program: runtime}
	h.command = func(g *guest, folder, root, socket string) (*exec.Cmd, error) {
		c, err := container(d.Ruler, root, socket, s)
		if err != nil {
			return nil, err
		}
		var flags []string
		if d.isGVisor() {
			if flags, c.Network, err = toGVisor(g, folder); err != nil {
				return nil, err
			}
		}
		name := containerName(s.ID)
		if err := writeConfig(folder, name, c); err != nil {
			return nil, err
		}
		states := filepath.Join(folder, "runtime")
		if err := g.Changes.Announce(journal.Entry{Kind: kindOCI, Target: name, Detail: map[string]string{
			"runtime": runtime, "states": states,
		}}); err != nil {
			return nil, err
		}
		return exec.Command(runtime, slices.Concat([]string{"--root", states}, flags, []string{"run", "--bundle", folder, name})...), nil
	}
	h.notes = []string{"no seccomp filter"}
	if full(s) {
		h.notes = []string{"Docker's seccomp filter"}
	}
	if d.isGVisor() {
		h.sandbox, h.notes = true, gVisorNotes
	}
	return h.provision(ctx, s)
}

// engine is the name of the engine: the runtime's own, but for gVisor's.
func (d *OCI) engine() string {
	if d.isGVisor() {
		return gVisorEngine
	}
	return filepath.Base(d.Runtime)
}

// install says how the runtime is had.
func (d *OCI) install() string {
	if d.isGVisor() {
		return "scripts/gvisor/build, or apt-get install runsc where it is of 2023 or later"
	}
	return "apt-get install " + filepath.Base(d.Runtime)
}

// Lacks implements engine.Lacking.
func (d *OCI) Lacks() []engine.Lack {
	if d.isGVisor() {
		return gVisorLacks
	}
	return nil
}

// Probe implements Engine.
func (d *OCI) Probe(ctx context.Context) notebook.Capability {
	return probe(ctx, d, d.engine(), d.Runtime, d.install(), d.Journal, d.State)
}

// crunUnified is where crun looks for controllers on a host that has both versions of cgroups.
const crunUnified = "/sys/fs/cgroup/unified/cgroup.controllers"

// refusedByCrun says whether crun will refuse to run anything: it does where cgroup v2, mounted beside v1, has
// controllers.
func refusedByCrun(runtime, controllers string) error {
	if filepath.Base(runtime) != "crun" {
		return nil
	}
	b, err := os.ReadFile(controllers)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if has := strings.Fields(string(b)); len(has) > 0 {
		return &engine.CannotError{Platform: "cn with crun", What: "any container on this host",
			Why: fmt.Sprintf("crun refuses a host where cgroup v2 has controllers (%s) beside cgroup v1; use runc or docker, or mount them as v1 (mount -t cgroup -o %s none DIR)",
				strings.Join(has, " "), strings.Join(has, ","))}
	}
	return nil
}

// container is the configuration that a spec asks for.
func container(program, root, socket string, s engine.Spec) (c oci.Container, err error) {
	if program, err = filepath.Abs(program); err != nil {
		return c, err
	}
	c = oci.Container{
		Root: root, Args: rulerArgs, Env: []string{}, Hostname: s.ID,
		Memory: s.Instance.Memory, HostNetwork: s.NetworkMode() == notebook.NetHost,
		Mounts: []specs.Mount{oci.Bind(program, ruler.Program, true), oci.Bind(socket, ruler.Socket, false)},
	}
	if s.Work != nil {
		c.Mounts = append(c.Mounts, oci.Bind(s.Work.Dir, ruler.WorkDir, true))
	}
	if s.Provisioning == notebook.Vanilla || full(s) {
		c.Quota = s.Instance.Cores
	}
	if s.Provisioning != notebook.Vanilla {
		c.CPUs = s.CPUs
	}
	if full(s) {
		if c.Seccomp, err = oci.Seccomp(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// writeConfig writes the configuration for an OCI runtime into the guest's folder.
func writeConfig(folder, name string, c oci.Container) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	c.Cgroup = "/" + name
	c.CgroupNamespace = hs.unified()
	c.LimitSwap = hs.accountsSwap()
	config, err := oci.Config(c)
	if err != nil {
		return err
	}
	b, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "config.json"), b, 0o600)
}

// undoOCI removes a container in whatever state it is.
func undoOCI(ctx context.Context, e journal.Entry) error {
	states := e.Detail["states"]
	// The runtime itself first: one that outlived its Tare may still be making what is looked for below.
	if err := engine.EndProcesses(ctx, filepath.Dir(states), []string{e.Detail["runtime"]}); err != nil {
		return err
	}
	// A runtime keeps a folder for each container that it knows.
	var deleting error
	if _, err := os.Lstat(filepath.Join(states, e.Target)); err == nil {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		cmd := exec.CommandContext(bounded, e.Detail["runtime"], "--root", states, "delete", "--force", e.Target)
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			deleting = fmt.Errorf("%s delete: %w: %s", e.Detail["runtime"], err, out)
		}
	}
	// Where the runtime cannot (it was killed while it made the container, and reads half a state), the cgroup still
	// has all of the container's processes, and with it they go. So the runtime's error counts with the cgroup's.
	if err := removeCgroups(ctx, e.Target); err != nil {
		return errors.Join(err, deleting)
	}
	return nil
}
