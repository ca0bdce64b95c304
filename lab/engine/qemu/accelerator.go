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

	"tare/lab/engine/qemu/guestinit"
	"tare/notebook"
)

// How long the probe's guest has for its hello. On hardware it takes well under a second; emulated on a busy host,
// some.
const (
	probeKVM = 4 * time.Second
	probeTCG = 60 * time.Second
)

// Probe implements engine.Prober: it says whether QEMU is there, or whether guests run under an accelerator.
func (d *Driver) Probe(ctx context.Context, capability string) notebook.Capability {
	if !slices.Contains(d.kind.Accelerators, capability) {
		return installed(ctx, capability)
	}
	if os.Geteuid() != 0 {
		return notebook.Capability{Name: capability, Answer: notebook.Inconclusive, Why: "only root boots a guest to find out", Do: "sudo tare doctor"}
	}
	return Accelerator(ctx, d.State, d.Init, capability)
}

// installed says whether QEMU is, and which accelerators it was built with.
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
	}
	return c
}

// Accelerator says whether guests run under an accelerator, notebook.KVM or notebook.TCG, by booting one that says
// hello and powers off. There are hosts where /dev/kvm is there, makes a machine and a vCPU, and never runs one.
// program is the path of the program init; the kernel is FindKernel's.
func Accelerator(ctx context.Context, stateDir, program, accelerator string) notebook.Capability {
	answer := func(a notebook.Answer, why, do string) notebook.Capability {
		return notebook.Capability{Name: accelerator, Answer: a, Why: why, Do: do}
	}
	if err := checkArchitecture(); err != nil {
		return answer(notebook.NotSupported, err.Error(), "")
	}
	patience := probeTCG
	if accelerator == notebook.KVM {
		patience = probeKVM
		f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
		switch {
		case os.IsNotExist(err):
			return answer(notebook.NotSupported, "there is no /dev/kvm",
				"switch virtualization on in the firmware (or nested virtualization, where this host is itself a guest) and run `modprobe kvm_intel` or `modprobe kvm_amd`")
		case os.IsPermission(err):
			return answer(notebook.NotSupported, err.Error(), "run as root, or as a member of the group kvm")
		case err != nil:
			return answer(notebook.NotSupported, err.Error(), "see `dmesg | grep kvm`; virtualization may be switched off in the firmware, or in use by another hypervisor")
		}
		f.Close()
	}
	if _, err := exec.LookPath(qemu); err != nil {
		return answer(notebook.NotSupported, "there is no "+qemu, "apt-get install qemu-system-x86")
	}
	k, err := FindKernel(ctx, stateDir)
	if err != nil {
		return answer(notebook.Inconclusive, err.Error(), "")
	}
	initrd, err := makeInitramfs(stateDir, program, k, nil, nil)
	if err != nil {
		return answer(notebook.Inconclusive, err.Error(), "")
	}
	token := "tare-hello-" + rand.Text()
	arg, err := guestinit.Params{Mode: guestinit.ModeProbe, Token: token}.Arg()
	if err != nil {
		return answer(notebook.Inconclusive, err.Error(), "")
	}
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := startMachine(bounded, hardware{
		accelerator: accelerator, cpus: 1, memory: minMemory, kernel: k.Image,
		initramfs: initrd, cmdline: arg, name: "tare-probe", bare: true,
	})
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
		return answer(notebook.Supported, fmt.Sprintf("a guest said hello after %.1f s", took.Seconds()), "")
	case ctx.Err() != nil:
		return answer(notebook.Inconclusive, "a guest had not said hello when the probe was stopped: "+ctx.Err().Error(), "")
	case err != nil:
		return answer(notebook.NotSupported, err.Error()+": "+why, "")
	case accelerator == notebook.KVM:
		return answer(notebook.NotSupported, fmt.Sprintf("a guest was started and did not say hello within %v: %s", patience, why),
			"use a host whose KVM runs guests (where this host is itself a guest, ask for nested virtualization), or allow emulation with --accel tcg")
	default:
		return answer(notebook.Inconclusive, fmt.Sprintf("a guest was started and did not say hello within %v: %s", patience, why),
			"try again when the host is less busy")
	}
}
