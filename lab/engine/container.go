//go:build linux

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tare/lab/cgroup"
	"tare/lab/engine/oci/config"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// RulerArgs is the first process of every container.
var RulerArgs = []string{ruler.Program, "--connect", ruler.Socket}

// rulerArgs are RulerArgs, or those of a ruler that leaves the first process to the system's init.
func (s Spec) rulerArgs() []string {
	if s.System {
		return slices.Concat(RulerArgs, []string{"--init", ruler.SystemInit})
	}
	return RulerArgs
}

// IsFull reports whether the container has all layers of the isolation ladder at once: a quota in addition to its CPU set, and a
// seccomp filter with every engine that takes one.
func (s Spec) IsFull() bool { return s.Isolation == notebook.IsolationFull }

// Container checks the specification of a container against what any container can be and what the kind supports.
func (k Kind) Container(s Spec) error {
	switch {
	case s.Instance.Memory <= 0:
		return fmt.Errorf("a container of %d bytes of memory: must be more than 0", s.Instance.Memory)
	case s.Isolation != "" && (!s.IsFull() || s.Provisioning != notebook.Pinned):
		return fmt.Errorf("isolation %q, %s: a container has isolation %s, %s, or none", s.Isolation, s.Provisioning, notebook.IsolationFull, notebook.Pinned)
	}
	if err := k.Check(s); err != nil {
		return err
	}
	if _, err := config.Quota(s.Instance.Cores); err != nil {
		return k.Unsupported(fmt.Sprintf("%g cores, %s", s.Instance.Cores, s.Provisioning), err.Error())
	}
	return nil
}

// FilterNote says which seccomp filter a runtime gives the spec's container (Spec.OCI).
func (s Spec) FilterNote() *notebook.Message {
	if s.IsFull() {
		return notebook.Say("seccomp-filter", "of", "Docker")
	}
	return notebook.Say("no-seccomp-filter")
}

// ContainerLimits are the limits of the spec's container; none where its size is the host's.
func (s Spec) ContainerLimits() (l notebook.Limits) {
	if s.Provisioning == notebook.Whole {
		return l
	}
	l.Memory = s.Instance.Memory
	if s.Provisioning == notebook.Vanilla || s.IsFull() {
		l.Quota = s.Instance.Cores
	}
	l.CPUs = notebook.FormatCPUList(s.CPUs)
	return l
}

// OCI is the configuration that the spec requests from a runtime, with a folder of the ruler's on the host (Socket.Dir).
func (s Spec) OCI(root, run string) (c config.Container, err error) {
	c = config.Container{
		Root: root, Args: s.rulerArgs(), System: s.System, Hostname: s.ID, Limits: s.ContainerLimits(), Shm: config.ShmSize(s.Instance.Memory), HostNetwork: s.NetworkMode() == notebook.NetHost,
		Devices: s.Devices, Ruler: filepath.Join(run, filepath.Base(ruler.Program)), Mounts: []specs.Mount{config.Bind(run, ruler.RunDir)},
	}
	if s.Work != nil {
		c.Mounts = append(c.Mounts, config.Bind(s.Work.Dir, ruler.WorkDir))
	}
	c.Devices.Mounts = s.Mounts()
	hs, err := cgroup.Mounted()
	if err != nil {
		return c, err
	}
	c.LimitSwap, c.CgroupNamespace = hs.LimitsSwap(), hs.Unified()
	if c.Processes, err = MaxProcesses(); err != nil {
		return c, err
	}
	if s.IsFull() {
		c.Seccomp, err = config.Seccomp()
	}
	return c, err
}

// MaxProcesses is how many processes and threads a container may have at once. It is half of the host kernel's limit, so that a
// guest that forks forever leaves the host the other half.
func MaxProcesses() (int64, error) {
	most, err := proc.Host.MaxTasks()
	return int64(most) / 2, err
}

// ContainerName is the name of a guest's container with its engine, and of its cgroup. The cgroup is at the top of the hierarchies,
// not in a folder "tare": nobody could say when that folder may be removed.
func ContainerName(id string) string { return "tare-" + strings.TrimPrefix(id, "tare-") }

// Held is how an engine makes a container with the kind's program, which holds the container for its lifetime.
type Held struct {
	// Kind is the journal's kind for a container. Its target is the name, and Detail has what Undo needs.
	Kind   string
	Detail func(program, folder string) map[string]string
	// Command configures the container with the given root and folder of the ruler (Socket.Dir), and returns the program's command
	// line. The root need not be mounted yet.
	Command func(b *Base, program, root, run string) (*exec.Cmd, error)
	Returns bool                        // the program ends when the container runs, and another program holds it then
	SetUp   []func() error              // run just before the start, on the thread that starts it
	Met     func(context.Context) error // the recipe's Met; nil: connect the network while the container runs

	// Detached returns the commands for a container that is made ahead (HoldAhead): one that makes it, nil where the program needs
	// none, and one that starts it and then ends. Nobody holds such a container: it lives with its own process.
	Detached func(b *Base, program, root, run string) (create, start *exec.Cmd, err error)
}

// Hold makes a container of the kind, with the image's root, an overlay for what the guest writes, and a socket for the ruler. An
// *UnsupportedError says what no container can be.
func (k Kind) Hold(ctx context.Context, env Env, s Spec, g Made, h Held) (Guest, error) {
	r, program, err := k.held(s, g, h)
	if err != nil {
		return nil, err
	}
	b := g.base()
	var cmd *exec.Cmd
	var socket *Socket
	r.Create = func(ctx context.Context) (_ Meeting, err error) {
		socket, err = b.Rooted(ctx, env.Ruler, func(root, run string) (err error) {
			cmd, err = h.Command(b, program, root, run)
			return err
		})
		return socket, err
	}
	r.Start = func(ctx context.Context) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		cmd.Dir = "/"
		if m := s.Moments; m != nil {
			if b.appears, err = cgroup.OnAppearance(ContainerName(s.ID), func(t time.Time) { m.At(notebook.MomentCreated, t) }); err != nil {
				return err
			}
		}
		if b.Process, err = Start(cmd, nil, h.SetUp...); err != nil {
			return err
		}
		if !h.Returns {
			socket.Died = b.Process.Done()
			return nil
		}
		died := make(chan struct{})
		socket.Died = died
		go func() {
			<-b.Process.Done()
			if b.Process.Succeeded() {
				s.Moments.Mark(notebook.MomentReturned)
			} else {
				close(died)
			}
		}()
		return nil
	}
	return Make(ctx, env, s, g, r)
}

// HoldAhead is Hold for a container that is started later.
func (k Kind) HoldAhead(ctx context.Context, env Env, s Spec, g Made, h Held) (*Ahead, error) {
	r, program, err := k.held(s, g, h)
	if err != nil {
		return nil, err
	}
	b := g.base()
	var start *exec.Cmd
	r.Create = func(ctx context.Context) (Meeting, error) {
		var create *exec.Cmd
		socket, err := b.Rooted(ctx, env.Ruler, func(root, run string) (err error) {
			create, start, err = h.Detached(b, program, root, run)
			return err
		})
		if err == nil && create != nil {
			err = h.run(ctx, create, filepath.Join(b.Folder, "create"))
		}
		return socket, err
	}
	r.Start = func(ctx context.Context) error { return h.run(ctx, start, filepath.Join(b.Folder, "start")) }
	return Create(ctx, env, s, g, r)
}

// held is the common part of the recipes of containers, and the path of the program.
func (k Kind) held(s Spec, g Made, h Held) (r Recipe, program string, err error) {
	b := g.base()
	if err := k.Container(s); err != nil {
		return r, "", err
	}
	if program, err = k.LookUp(); err != nil {
		return r, "", fmt.Errorf("%s: %w", k.Name, err)
	}
	if h.Met == nil {
		h.Met = func(context.Context) (err error) {
			if s.System { // the ruler is a child of the process whose end is the guest's
				b.ruler = b.PID
				if b.PID, err = proc.Parent(b.ruler); err != nil {
					return err
				}
			}
			if err := b.Plug(); err != nil {
				return err
			}
			return b.FindCgroup()
		}
	}
	return Recipe{
		What: k.Name + " container", Address: s.NetworkMode() != notebook.NetHost, Programs: []string{program},
		Met: h.Met, InForce: func() error { return b.LimitsInForce(s.ContainerLimits()) },
		Undo: k.Undo(),
		Journal: func(folder string) []journal.Entry {
			return []journal.Entry{{Kind: h.Kind, Target: ContainerName(s.ID), Detail: h.Detail(program, folder)}}
		},
	}, program, nil
}

// Rooted mounts the container's root and makes the ruler's socket. At the same time it calls configure, which does not need the
// mounted root.
func (b *Base) Rooted(ctx context.Context, becomes string, configure func(root, run string) error) (*Socket, error) {
	root := filepath.Join(b.Folder, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	mounted := make(chan error, 1)
	go func() { mounted <- b.mount(ctx, root) }() // takes longer than the socket and the configuration
	socket, err := b.NewSocket(becomes)
	if err != nil {
		return nil, errors.Join(err, <-mounted)
	}
	return socket, errors.Join(configure(root, socket.Dir), <-mounted)
}

const copying = 5 * time.Minute // time limit for copying an image

// mount mounts the image, or a copy of it, at root, with a layer for what the guest writes.
func (b *Base) mount(ctx context.Context, root string) error {
	from := b.Spec.Image.Dir
	if b.Spec.Copied {
		from = filepath.Join(b.Folder, "copy")
		ctx, cancel := context.WithTimeout(ctx, copying)
		defer cancel()
		// Copy the data too, even where the file system could share it: the guests must have separate files.
		if said, err := proc.Run(exec.CommandContext(ctx, "cp", "--archive", "--reflink=never", "--", b.Spec.Image.Dir, from)); err != nil {
			return fmt.Errorf("copying the image's root to %s: %w: %s", from, cmp.Or(context.Cause(ctx), err), said)
		}
	}
	return Overlay(b.Folder, root, from)
}

// run runs a command of the engine to its end. Its output goes to a file: a container that it leaves behind keeps the output open,
// so a pipe would never end.
func (h Held) run(ctx context.Context, cmd *exec.Cmd, said string) error {
	out, err := os.OpenFile(said, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, out, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C must reach only Tare
	start := func() error { return startAfter(cmd, h.SetUp) }
	if len(h.SetUp) > 0 {
		err = proc.Apart(start)
	} else {
		err = start()
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // does nothing after its end
	defer stop()
	if err = cmd.Wait(); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	var tail proc.Tail
	if text, rerr := os.ReadFile(said); rerr == nil {
		_, _ = tail.Write(text)
	}
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(tail.String()))
}

// LookUp returns the absolute path of the kind's program. The error says how to install it.
func (k Kind) LookUp() (string, error) {
	path, err := exec.LookPath(k.Program)
	if err != nil {
		return "", fmt.Errorf("%w; install it (%s)", err, k.Install)
	}
	return filepath.Abs(path)
}

// Probe tests one of the kind's capabilities for the engine d. For an engine that is not a Prober it runs a container that holds
// only the ruler, waits for the ruler's answer, and checks whether the requested limits are in force. The answer names the kind's
// limitations.
func (k Kind) Probe(ctx context.Context, env Env, d Driver, capability string) notebook.Capability {
	if p, ok := d.(Prober); ok {
		return p.Probe(ctx, capability)
	}
	c := notebook.Capability{Name: capability}
	if os.Geteuid() != 0 {
		c.Answer, c.Why, c.Do = notebook.Inconclusive, "finding out needs root, to run a container", "sudo tare doctor"
		return c
	}
	what, err := k.try(ctx, env, d, capability)
	cannot, never := errors.AsType[*UnsupportedError](err)
	switch {
	case err == nil:
		c.Answer, c.Why = notebook.Supported, what
		if k.Program != "" {
			c.Versions = Versions(ctx, k.Program)
		}
		for _, l := range k.Limitations {
			c.Why += "; limitation: " + l.Name + ": " + l.Why
		}
	case never:
		c.Answer, c.Why, c.Do = notebook.NotSupported, cannot.What+": "+cannot.Why, "use another engine, or change the host as described"
	case errors.Is(err, exec.ErrNotFound):
		c.Answer, c.Why, c.Do = notebook.NotSupported, k.Program+" is not installed", k.Install
	case ctx.Err() != nil:
		c.Answer, c.Why = notebook.Inconclusive, err.Error()
	default:
		c.Answer, c.Why, c.Do = notebook.NotSupported, err.Error(), "see what "+k.Program+" said"
	}
	return c
}

// try makes a guest with an empty root and sends it a request. For a question about saving it saves and restores the guest first.
// seen says what happened.
func (k Kind) try(ctx context.Context, env Env, d Driver, capability string) (seen string, err error) {
	changes := journal.NewChanges(env.Journal, Undo())
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, changes.Undo(undo))
	}()
	id := fmt.Sprintf("probe-%s-%d", strings.ReplaceAll(capability, " ", "-"), os.Getpid())
	root, err := makeFolder(changes, env.State, id+"-root", nil, nil)
	if err != nil {
		return "", err
	}
	img, err := EmptyImage(root)
	if err != nil {
		return "", err
	}
	s := Spec{
		ID: id, Provisioning: notebook.Vanilla, Image: img,
		Instance: notebook.Instance{Name: "probe", Cores: 1, Memory: 256 << 20},
	}
	if capability == k.Saving { // LXC can save only a container whose start is timed
		s.Moments = NewMoments()
	}
	start := time.Now()
	g, err := d.Provision(ctx, s)
	if err != nil {
		return "", err
	}
	seen = fmt.Sprintf("a container with a quota and a memory limit answered %v after the request", time.Since(start).Round(time.Millisecond))
	if capability == k.Saving {
		seen, err = tryRestore(ctx, g)
	}
	if err == nil {
		_, err = g.Ruler().Ping(ctx)
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return seen, errors.Join(err, g.Destroy(undo))
}

// tryRestore saves a guest and restores it.
func tryRestore(ctx context.Context, g Guest) (seen string, err error) {
	s, saves := g.(Saver)
	if !saves {
		return "", errors.New("its containers cannot be saved")
	}
	saved, err := s.Save(ctx)
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := s.Restore(ctx, nil); err != nil {
		return "", err
	}
	return fmt.Sprintf("a container was saved in %.1f MiB and went on %v after the request to restore it", float64(saved.Bytes)/notebook.MiB, time.Since(start).Round(time.Millisecond)), nil
}

// EmptyImage makes an image with the mount points that every guest needs, and nothing else.
func EmptyImage(root string) (*image.Image, error) {
	for _, dir := range []string{"proc", "sys", "dev", "tmp", ruler.WorkDir, ruler.ScratchDir, ruler.RunDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	return &image.Image{Tree: image.Tree{Dir: root}}, nil
}
