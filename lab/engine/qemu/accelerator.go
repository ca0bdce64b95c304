//go:build linux

package qemu

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/lab/engine/qemu/guestinit"
	"tare/lab/proc"
	"tare/notebook"
)

// patience is the time limit for the hello of the probe's guest. With hardware virtualization it takes well under a second.
// Emulated on a busy host it takes some seconds, and 20 or more where KVM emulates its kernel mode.
var patience = map[string]time.Duration{notebook.KVM: 10 * time.Second, notebook.KVMEmulated: 4 * time.Minute, notebook.TCG: time.Minute}

// Probe implements engine.Prober: it reports whether QEMU is installed, or whether guests run with an accelerator.
func (d *Driver) Probe(ctx context.Context, capability string) notebook.Capability {
	if !slices.Contains(d.kind.Accelerators, capability) {
		return installed(ctx, capability)
	}
	if os.Geteuid() != 0 {
		return notebook.Capability{Name: capability, Answer: notebook.Inconclusive, Why: "finding out needs root, to boot a guest", Do: "sudo tare doctor"}
	}
	return d.try(ctx, capability)
}

// installed reports whether QEMU is installed, and the accelerators that it was built with.
func installed(ctx context.Context, name string) notebook.Capability {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := notebook.Capability{Name: name, Answer: notebook.NotSupported, Do: "apt-get install qemu-system-x86"}
	ask := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, qemu, args...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			line, _, _ := strings.Cut(string(out), "\n")
			err = fmt.Errorf("%s %s: %w: %s", qemu, strings.Join(args, " "), err, line)
		}
		return string(out), err
	}
	accels, err := ask("-accel", "help")
	version := ""
	if err == nil {
		version, err = ask("--version")
	}
	version, _, _ = strings.Cut(version, "\n")
	var built []string
	for line := range strings.Lines(accels) {
		if a := strings.TrimSpace(line); a == notebook.KVM || a == notebook.TCG {
			built = append(built, a)
		}
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		c.Why = "it is not installed (not found in PATH)"
	case ctx.Err() != nil:
		c.Answer, c.Why, c.Do = notebook.Inconclusive, err.Error(), ""
	case err != nil:
		c.Why = err.Error()
	case len(built) == 0:
		c.Why = qemu + " -accel help names neither kvm nor tcg"
	default:
		c.Answer, c.Why, c.Do = notebook.Supported, version+", built with "+strings.Join(built, " and "), ""
		c.Versions = engine.Versions(ctx, qemu)
	}
	return c
}

// Advice for hosts whose KVM is not the kind that a guest needs.
const (
	useHardware = "use a host whose KVM uses the CPU's virtualization (where this host is itself a guest, ask for nested virtualization), or allow emulation with --accel tcg"
	useNamed    = "a kernel made for such a KVM may boot: `tare doctor --vm-kernel FILE` tries it, and --accel " + notebook.KVMEmulated + " --vm-kernel FILE uses it, marked as emulated"
)

// try reports whether guests run with an accelerator, by booting one that says hello and powers off. On some hosts /dev/kvm exists
// and makes a machine and a vCPU, but never runs one. On others it runs only some kernels, and not as a VM.
func (d *Driver) try(ctx context.Context, accelerator string) notebook.Capability {
	answer := func(a notebook.Answer, why, do string) notebook.Capability {
		return notebook.Capability{Name: accelerator, Answer: a, Why: why, Do: do}
	}
	if err := checkArchitecture(); err != nil {
		return answer(notebook.NotSupported, err.Error(), "")
	}
	kind := ""
	if accelerator != notebook.TCG {
		what, no := d.tryKVM(accelerator)
		if no != nil {
			return *no
		}
		kind = what + "; "
	}
	if _, err := exec.LookPath(qemu); err != nil {
		return answer(notebook.NotSupported, "there is no "+qemu, "apt-get install qemu-system-x86")
	}
	k, h, token, err := d.greeter(ctx, accelerator)
	if err != nil {
		return answer(notebook.Inconclusive, err.Error(), "")
	}
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, patience[accelerator])
	defer cancel()
	m, err := startMachine(bounded, h)
	if err != nil {
		if ctx.Err() != nil {
			return answer(notebook.Inconclusive, ctx.Err().Error(), "")
		}
		return answer(notebook.NotSupported, err.Error(), "")
	}
	hello := false
	err = m.qmp.run(bounded, "cont", nil)
	if err == nil {
		_, hello = m.console.wait(bounded, token)
	}
	took := time.Since(start)
	why := ""
	if !hello {
		said, stop := context.WithTimeout(ctx, 10*time.Millisecond)
		why = m.diagnose(said)
		stop()
	}
	if err := m.kill(context.WithoutCancel(ctx)); err != nil {
		return answer(notebook.Inconclusive, err.Error(), "")
	}
	switch {
	case hello:
		c := answer(notebook.Supported, fmt.Sprintf("%sa guest with kernel %s said hello after %.1f s", kind, k.Release, took.Seconds()), "")
		c.Versions = engine.Versions(ctx, qemu)
		return c
	case ctx.Err() != nil:
		return answer(notebook.Inconclusive, "a guest had not yet said hello when the probe was stopped: "+ctx.Err().Error(), "")
	case err != nil:
		return answer(notebook.NotSupported, err.Error()+": "+why, "")
	}
	silent := fmt.Sprintf("%sa guest with kernel %s was started and did not say hello within %v: %s", kind, k.Release, patience[accelerator], why)
	switch accelerator {
	case notebook.KVM:
		return answer(notebook.NotSupported, silent, useHardware)
	case notebook.KVMEmulated:
		return answer(notebook.NotSupported, silent, "name a kernel made for such a KVM, or allow emulation with --accel tcg")
	}
	return answer(notebook.Inconclusive, silent, "try again when the host is less busy")
}

// tryKVM finds the kind of this host's KVM. no says why it is not the accelerator's kind.
func (d *Driver) tryKVM(accelerator string) (kind string, no *notebook.Capability) {
	refused := func(why, do string) (string, *notebook.Capability) {
		return "", &notebook.Capability{Name: accelerator, Answer: notebook.NotSupported, Why: why, Do: do}
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	switch {
	case os.IsNotExist(err):
		return refused("there is no /dev/kvm",
			"enable virtualization in the firmware (or nested virtualization, where this host is itself a guest) and run `modprobe kvm_intel` or `modprobe kvm_amd`")
	case os.IsPermission(err):
		return refused(err.Error(), "run as root, or as a member of the group kvm")
	case err != nil:
		return refused(err.Error(), "see `dmesg | grep kvm`; virtualization may be disabled in the firmware, or in use by another hypervisor")
	}
	f.Close()
	words, hardware := kvmKind(proc.Host)
	kind = "KVM here is " + words
	switch named := d.Env.Kernel != ""; {
	case accelerator == notebook.KVM && !hardware:
		return refused(kind+"; ordinary kernels rarely boot with it, and its costs are not those of a VM", useHardware+"; "+useNamed)
	case accelerator == notebook.KVMEmulated && hardware:
		return refused(kind, "--accel "+notebook.KVM)
	case accelerator == notebook.KVMEmulated && !named:
		return refused(kind+"; ordinary kernels rarely boot with it", useNamed)
	}
	return kind, nil
}

// greeter is a machine whose guest, with the given kernel, writes the token on its console and powers off.
func (d *Driver) greeter(ctx context.Context, accelerator string) (k Kernel, h hardware, token string, err error) {
	if k, err = d.chosen(ctx); err != nil {
		return k, h, "", err
	}
	initrd, err := makeInitramfs(d.State, d.Init, k, nil, nil)
	if err != nil {
		return k, h, "", err
	}
	token = "tare-hello-" + rand.Text()
	arg, err := guestinit.Params{Mode: guestinit.ModeProbe, Token: token}.Arg()
	return k, hardware{
		board: q35, accelerator: accelerator, cpus: 1, memory: minMemory, kernel: k.Image,
		initramfs: initrd, cmdline: arg, name: "tare-probe", machine: notebook.UsualMachine, bare: true,
	}, token, err
}
