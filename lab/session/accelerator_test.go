//go:build linux

package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"tare/lab/engine"
	"tare/notebook"
)

// prober is an engine that says which capabilities it was asked for, and can do all but kvm.
type prober struct {
	engine.Driver
	kernel string
	asked  *[]string
	mu     *sync.Mutex // guards asked
}

func (p prober) Probe(_ context.Context, capability string) notebook.Capability {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.asked = append(*p.asked, strings.TrimSpace(capability+" "+p.kernel))
	answer := notebook.Supported
	if capability == notebook.KVM {
		answer = notebook.NotSupported
	}
	return notebook.Capability{Name: capability, Answer: answer, Why: "tried"}
}

// A KVM that emulates a guest's kernel mode is taken only where it is asked for by name, and each kernel is tried once.
func TestAccelerators(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	k := engine.Kind{
		Platform: notebook.VM, Name: "box", Accelerators: []string{notebook.KVM, notebook.KVMEmulated, notebook.TCG},
		New: func(env engine.Env) engine.Driver { return prober{kernel: env.Kernel, asked: &asked, mu: &mu} },
	}
	l := newLab(func(string) {})
	l.UseKernels(map[string]string{"6.1@aa": "/a"})
	for _, c := range []struct {
		kernel, want string
		emulate      bool
		got, says    string
		asked        []string
	}{
		{"", "auto", true, notebook.TCG, "", []string{"kvm", "tcg"}},
		{"", "auto", true, notebook.TCG, "", nil}, // known
		{"", "auto", false, "", "and cause=accelerator-missing accelerator=kvm cause=tried more=emulation-not-allowed", nil},
		{"", notebook.KVM, false, "", "tcg-emulates", nil},
		{"6.1@aa", notebook.KVMEmulated, false, notebook.KVMEmulated, "", []string{"kvm-emulated /a"}},
		{"6.1@aa", "auto", true, notebook.TCG, "", []string{"kvm /a", "tcg /a"}},
	} {
		asked = nil
		got, err := l.Accelerator(t.Context(), k, c.kernel, c.want, c.emulate)
		slices.Sort(asked) // all are asked at the same time
		if got != c.got || (c.says == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), c.says) || !slices.Equal(asked, c.asked) {
			t.Errorf("%+v: %q, %v, asked %q", c, got, err, asked)
		}
	}
}
