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
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/network"
	"tare/lab/platform"
	"tare/lab/platform/oci"
	"tare/lab/ruler"
	"tare/notebook"
)

// OCI makes containers with an OCI runtime.
type OCI struct {
	// Journal has every change that is made on the host.
	Journal *host.Journal
	// State is the folder below which the guests' folders are made.
	State string
	// Tare is the path of the program that is the ruler. It is static.
	Tare string
	// Runtime is the runtime's name, looked up in PATH, or its path: "crun", "runc".
	Runtime string
}

// kindOCI is the journal's kind for a container of an OCI runtime, target its name.
const kindOCI = "oci-container"

// undoTime bounds what the drivers undo on their own.
const undoTime = 30 * time.Second

type ociGuest struct {
	platform.Parts        // its process is `crun run`, for as long as the container lives
	pid            int    // of the ruler, on the host
	cgroup         string // folder that lists the container's processes
	network        string // mode
}

// Provision makes a container. A *platform.CannotError says what no container can be.
func (d *OCI) Provision(ctx context.Context, s platform.Spec) (_ platform.Guest, err error) {
	if err := check("cn with "+d.Runtime, s); err != nil {
		return nil, err
	}
	runtime, err := exec.LookPath(d.Runtime)
	if err != nil {
		return nil, fmt.Errorf("OCI runtime: %w; install it (apt-get install %s)", err, filepath.Base(d.Runtime))
	}
	if runtime, err = filepath.Abs(runtime); err != nil {
		return nil, err
	}
	if err := refusedByCrun(runtime, crunUnified); err != nil {
		return nil, err
	}
	g := &ociGuest{Parts: platform.Parts{Changes: platform.NewChanges(d.Journal, Undo())}, network: s.NetworkMode()}
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
			defer cancel()
			err = errors.Join(fmt.Errorf("%s container %s: %w", d.Runtime, s.ID, err), g.Destroy(undo))
		}
	}()
	if g.Connection, err = platform.Connect(s.Network, s.NetworkMode() == notebook.NetBridge); err != nil {
		return nil, err
	}
	folder, err := g.Changes.MakeFolder(d.State, s.ID, runtime)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(folder, "root")
	if err := overlay(folder, root, s.Image.Dir); err != nil {
		return nil, err
	}
	door, err := openDoor(folder)
	if err != nil {
		return nil, err
	}
	defer door.l.Close()
	name := containerName(s.ID)
	if err := d.writeConfig(folder, root, name, door.path, s); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	states := filepath.Join(folder, "runtime")
	if err := g.Changes.Announce(host.Entry{Kind: kindOCI, Target: name, Detail: map[string]string{
		"runtime": runtime, "states": states,
	}}); err != nil {
		return nil, err
	}
	cmd := exec.Command(runtime, "--root", states, "run", "--bundle", folder, name)
	cmd.Dir = "/"
	if g.Process, err = platform.Start(cmd, nil); err != nil {
		return nil, err
	}
	if g.Client, g.pid, err = door.meet(ctx, g.Process.Done()); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w (%s)", err, g.Autopsy())
		}
		return nil, err
	}
	// Nothing but the ruler runs in the container until its first order, and the ruler needs no network: so it is
	// connected while it runs, which every runtime allows.
	if err := g.connect(); err != nil {
		return nil, err
	}
	if g.cgroup, err = cgroupOf(g.pid); err != nil {
		return nil, err
	}
	return g, inForce(g.pid, s)
}

// connect sets up what the container's network namespace has in it.
func (g *ociGuest) connect() error {
	if g.network == notebook.NetNone {
		return network.Loopback(g.pid) // not every runtime does
	}
	return g.Connection.Plug(g.pid)
}

// Probe tries the runtime: it runs a container with nothing in it but the ruler, has it answer, and looks whether the
// limits asked for are in force. The capability is called as the runtime is.
func (d *OCI) Probe(ctx context.Context) notebook.Capability {
	c := notebook.Capability{Name: filepath.Base(d.Runtime)}
	took, err := d.try(ctx)
	cannot, never := errors.AsType[*platform.CannotError](err)
	switch {
	case err == nil:
		c.Answer, c.Why = notebook.Supported, fmt.Sprintf("a container with a quota and a memory limit answered %v after it was asked for", took.Round(time.Millisecond))
	case never:
		c.Answer, c.Why, c.Do = notebook.NotSupported, cannot.What+": "+cannot.Why, "use another engine, or change the host as said"
	case errors.Is(err, exec.ErrNotFound):
		c.Answer, c.Why, c.Do = notebook.NotSupported, d.Runtime+" is not installed", "apt-get install "+c.Name
	case ctx.Err() != nil:
		c.Answer, c.Why = notebook.Inconclusive, err.Error()
	default:
		c.Answer, c.Why, c.Do = notebook.NotSupported, err.Error(), "see what "+c.Name+" said"
	}
	return c
}

// try makes a guest of an empty root and asks it something.
func (d *OCI) try(ctx context.Context) (took time.Duration, err error) {
	changes := platform.NewChanges(d.Journal, nil)
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, changes.Undo(undo))
	}()
	id := fmt.Sprintf("probe-%s-%d", filepath.Base(d.Runtime), os.Getpid())
	root, err := changes.MakeFolder(d.State, id+"-root")
	if err != nil {
		return 0, err
	}
	for _, dir := range []string{"proc", "sys", "dev", "tmp", ruler.WorkDir, ruler.ScratchDir, ruler.RunDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	g, err := d.Provision(ctx, platform.Spec{
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
		return &platform.CannotError{Platform: "cn with crun", What: "any container on this host",
			Why: fmt.Sprintf("crun refuses a host where cgroup v2 has controllers (%s) beside cgroup v1; use runc or docker, or mount them as v1 (mount -t cgroup -o %s none DIR)",
				strings.Join(has, " "), strings.Join(has, ","))}
	}
	return nil
}

// containerName is a container's name with its runtime or engine, and its cgroup's. The cgroup is at the top of
// the hierarchies and not in a folder "tare" there: nobody could say when that may be removed.
func containerName(id string) string { return "tare-" + strings.TrimPrefix(id, "tare-") }

// overlay mounts the image with a layer over it that takes what the container writes, and goes with the folder.
func overlay(folder, root, image string) error {
	upper, work := filepath.Join(folder, "upper"), filepath.Join(folder, "work")
	st, err := os.Stat(image)
	if err != nil {
		return fmt.Errorf("the image's root: %w", err)
	}
	for _, dir := range []string{root, upper, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.Chmod(upper, st.Mode()); err != nil { // it is the container's "/"
		return err
	}
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)
	options := "lowerdir=" + escape.Replace(image) + ",upperdir=" + escape.Replace(upper) + ",workdir=" + escape.Replace(work)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay mount at %s (%s): %w", root, options, err)
	}
	return unix.Mount("", root, "", unix.MS_PRIVATE, "")
}

func (d *OCI) writeConfig(folder, root, name, socket string, s platform.Spec) error {
	tare, err := filepath.Abs(d.Tare)
	if err != nil {
		return err
	}
	c := oci.Container{
		Root: root, Args: rulerArgs, Env: []string{}, Hostname: s.ID,
		Cgroup: "/" + name,
		Memory: s.Instance.Memory, HostNetwork: s.NetworkMode() == notebook.NetHost,
		Mounts: []specs.Mount{oci.Bind(tare, rulerProgram, true), oci.Bind(socket, rulerSocket, false)},
	}
	if s.Work != nil {
		c.Mounts = append(c.Mounts, oci.Bind(s.Work.Dir, ruler.WorkDir, true))
	}
	if s.Provisioning == notebook.Vanilla {
		c.Quota = s.Instance.Cores
	} else {
		c.CPUs = s.CPUs
	}
	hs, err := hierarchies()
	if err != nil {
		return err
	}
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

// Processes lists the ruler first.
func (g *ociGuest) Processes() ([]int, error) { return inside(g.cgroup, g.pid) }

func (g *ociGuest) Limits() (notebook.Limits, error) { return host.LimitsOf(g.pid) }

func (g *ociGuest) Facts() platform.Facts {
	words := "the loopback alone, in a namespace"
	switch g.network {
	case notebook.NetBridge:
		words = "a namespace with a virtual cable to the bridge that the load is on"
	case notebook.NetHost:
		words = "the host's"
	}
	return platform.Facts{Kernel: g.Client.Hello().Kernel, Notes: []string{"network: " + words, "no seccomp filter"}}
}

func (g *ociGuest) Autopsy() string {
	if g.Process == nil {
		return ""
	}
	return "the runtime: " + g.Process.Ended()
}

// undoOCI removes a container in whatever state it is.
func undoOCI(ctx context.Context, e host.Entry) error {
	states := e.Detail["states"]
	// The runtime itself first: one that outlived its Tare may still be making what is looked for below.
	if err := platform.EndProcesses(ctx, filepath.Dir(states), []string{e.Detail["runtime"]}); err != nil {
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

// removeCgroups kills what is in the cgroup of that name in every hierarchy, and removes it.
func removeCgroups(ctx context.Context, name string) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range hs {
		errs = append(errs, host.RemoveCgroup(ctx, filepath.Join(h.at, name)))
	}
	return errors.Join(errs...)
}

// hierarchy is a mounted hierarchy of cgroups.
type hierarchy struct {
	at      string // mount point
	v2      bool
	options []string // v1: among them the controllers
}

type mounted []hierarchy

// hierarchies lists those that are mounted.
func hierarchies() (mounted, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseHierarchies(string(info))
}

func parseHierarchies(info string) (mounted, error) {
	var hs mounted
	for line := range strings.Lines(info) {
		mount, super, ok := strings.Cut(strings.TrimSpace(line), " - ")
		m, s := strings.Fields(mount), strings.Fields(super)
		if !ok || len(m) < 5 || len(s) < 3 {
			return nil, fmt.Errorf("/proc/self/mountinfo: %q: want \"… - TYPE SOURCE OPTIONS\"", line)
		}
		if s[0] == "cgroup" || s[0] == "cgroup2" {
			hs = append(hs, hierarchy{m[4], s[0] == "cgroup2", strings.Split(s[2], ",")})
		}
	}
	return hs, nil
}

// unified says whether all controllers are on cgroup v2.
func (hs mounted) unified() bool { return hs.v1("memory") == nil }

func (hs mounted) v1(controller string) *hierarchy {
	for _, h := range hs {
		for _, o := range h.options {
			if !h.v2 && o == controller {
				return &h
			}
		}
	}
	return nil
}

// accountsSwap says whether the kernel can limit a cgroup's swap.
func (hs mounted) accountsSwap() bool {
	file := "/proc/swaps" // cgroup v2 accounts it wherever there is swap at all
	if h := hs.v1("memory"); h != nil {
		file = filepath.Join(h.at, "memory.memsw.limit_in_bytes")
	}
	_, err := os.Stat(file)
	return err == nil
}
