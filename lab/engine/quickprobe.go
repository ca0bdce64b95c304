package engine

import (
	"context"
	"os"
	"os/exec"

	"tare/notebook"
)

// QuickProber is an engine that answers its kind's Capabilities without a guest, and for any user, as far as it can.
type QuickProber interface {
	// QuickProbe answers a capability. Inconclusive: the answer needs a guest, or root.
	QuickProbe(ctx context.Context, capability string) notebook.Capability
}

// Unprivileged is a probe's answer without the verdict of a user who may only lack the permission to ask.
func Unprivileged(c notebook.Capability) notebook.Capability {
	if c.Answer == notebook.NotSupported && os.Geteuid() != 0 {
		c.Answer, c.Do = notebook.Inconclusive, "sudo tare doctor"
	}
	return c
}

// QuickProbe answers one of the kind's capabilities for the engine d without a guest, as far as possible. Inconclusive: the answer
// needs a guest, or root.
func (k Kind) QuickProbe(ctx context.Context, d Driver, capability string) notebook.Capability {
	if g, ok := d.(QuickProber); ok {
		return g.QuickProbe(ctx, capability)
	}
	c := notebook.Capability{Name: capability, Answer: notebook.Inconclusive, Why: "only a running guest can tell", Do: "sudo tare doctor"}
	if k.Program == "" {
		return c
	}
	if _, err := exec.LookPath(k.Program); err != nil {
		c.Answer, c.Why, c.Do = notebook.NotSupported, k.Program+" is not installed", k.Install
	}
	return c
}
