//go:build linux

package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/engine/containerd"
	"tare/lab/engine/docker"
	"tare/lab/engine/layers"
	"tare/lab/engine/lxc"
	"tare/lab/engine/oci"
	"tare/lab/engine/podman"
	"tare/lab/engine/qemu"
	"tare/lab/network"
	"tare/lab/programs"
	"tare/lab/setting"
	"tare/notebook"
)

// Engines are Tare's engines. Where a study names no engine of a platform, the first one is used; of several usual ones, the first
// that the host supports.
var Engines = engine.Registry{
	bare.Kind,
	docker.Kind,
	oci.Crun,
	oci.Runc,
	podman.Kind,
	containerd.Kind,
	containerd.CRI,
	lxc.Kind,
	oci.GVisor,
	layers.Kind,
	qemu.VM,
	qemu.MicroVM,
	qemu.VMCN,
}

// made is an engine of a kind whose guests have the kernel with this name.
type made struct{ kind, kernel string }

// engine is the kind's engine on this host; kernel is a name in l.kernels, or "".
func (l *Lab) engine(k engine.Kind, kernel string) engine.Driver {
	of := made{k.String(), kernel}
	e, ok := l.engines[of]
	if !ok {
		env := l.env
		env.Kernel = l.kernels[kernel]
		e = k.New(env)
		l.engines[of] = e
	}
	return e
}

// engineOf is the engine that makes the treatment's guests. If trials are traced, a guest with a kernel of its own gets the program
// that traces inside it.
func (l *Lab) engineOf(t notebook.Treatment) (k engine.Kind, e engine.Driver, err error) {
	if k, err = Engines.Find(t.Platform, t.Engine); err != nil {
		return k, nil, err
	}
	if l.kit != nil && k.TracesInside && l.env.Tracer == "" {
		if l.env.Tracer, err = programs.File(l.env.State, programs.Tracer); err != nil {
			return k, nil, err
		}
		maps.DeleteFunc(l.engines, func(m made, _ engine.Driver) bool { return m.kind == k.String() }) // they were made without it
	}
	return k, l.engine(k, t.Kernel), nil
}

// asked is a capability of a host for guests with the kernel with this name.
type asked struct{ capability, kernel string }

// ask asks the kind's engine for some of its capabilities, each once in a session and all at the same time. The capabilities of a
// guest depend on its kernel.
func (l *Lab) ask(ctx context.Context, k engine.Kind, kernel string, names ...string) []notebook.Capability {
	answers := make([]notebook.Capability, len(names))
	known := make([]bool, len(names))
	e := l.engine(k, kernel)
	var wg sync.WaitGroup
	for i, name := range names {
		if answers[i], known[i] = l.answers[asked{name, kernel}]; known[i] {
			continue
		}
		if slices.Contains(k.Accelerators, name) {
			l.say("trying " + name + " with a small guest")
		}
		wg.Go(func() { answers[i] = k.Probe(ctx, l.env, e, name) })
	}
	wg.Wait()
	for i := range names {
		if !known[i] {
			l.answers[asked{names[i], kernel}] = answers[i]
			l.host.Capabilities = append(l.host.Capabilities, answers[i])
		}
	}
	return answers
}

// UseKernels sets the files of guests' kernels, by the names that treatments have for them.
func (l *Lab) UseKernels(files map[string]string) { l.kernels = files }

// Accelerator chooses the accelerator of guests with this kernel, for a kind that has several: want is one of them, or "auto".
func (l *Lab) Accelerator(ctx context.Context, k engine.Kind, kernel, want string, emulate bool) (string, error) {
	names := candidates(k, want, emulate)
	var why []*notebook.Message
	answers := l.ask(ctx, k, kernel, names...)
	for i, c := range answers {
		if c.Answer == notebook.Supported {
			if i > 0 {
				l.say("VMs are emulated (" + names[i] + "), because " + names[0] + " does not work on this host: " + answers[0].Why)
			}
			return names[i], nil
		}
		why = append(why, notebook.Say("accelerator-missing", "accelerator", names[i], "cause", c.Why)) // the doctor says what to do about it
	}
	switch {
	case want == "auto" && !emulate:
		why = append(why, notebook.Say("emulation-not-allowed"))
	case want == k.Accelerators[0]:
		why = append(why, notebook.Say("tcg-emulates"))
	}
	return "", &notebook.Error{Says: notebook.Several(why)}
}

// candidates are the accelerators to try, the preferred one first: want, or with "auto" the kind's first, and its last if emulation
// is allowed.
func candidates(k engine.Kind, want string, emulate bool) []string {
	switch {
	case want != "auto":
		return []string{want}
	case emulate:
		return []string{k.Accelerators[0], k.Accelerators[len(k.Accelerators)-1]}
	}
	return k.Accelerators[:1]
}

// Supports says why the host does not support the treatment; nil if it does.
func (l *Lab) Supports(ctx context.Context, t notebook.Treatment) error {
	k, err := Engines.Find(t.Platform, t.Engine)
	if err != nil {
		return err
	}
	if err := k.Supports(t); err != nil {
		return err
	}
	if l.away != nil && t.Network == notebook.NetBridge {
		if err := network.CanForward(); err != nil {
			return err
		}
	}
	if _, err := devicesOf(t); err != nil {
		return err
	}
	if err := setting.Host.Supports(setting.For(t)); err != nil {
		return err
	}
	if t.HostCores > 0 {
		if why := l.cannotShrink(ctx, t.HostCores); why != nil {
			return &notebook.Error{Says: why}
		}
	}
	if name := k.Needs(t); name != "" {
		if c := l.ask(ctx, k, t.Kernel, name)[0]; c.Answer != notebook.Supported {
			return errors.New(strings.TrimSuffix(c.Why+"; "+c.Do, "; "))
		}
	}
	if c, ok := l.engine(k, t.Kernel).(engine.Chooser); ok {
		return c.Supports(ctx, t)
	}
	return nil
}

// CheckKernel says why a file cannot be the kernel of virtual machines; nil if it may be.
func CheckKernel(file string) error {
	for _, k := range Engines {
		if k.Kernel != nil {
			_, err := k.Kernel(file)
			return err
		}
	}
	return nil
}
