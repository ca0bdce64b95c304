package engine

import (
	"context"
	"os/exec"

	"tare/notebook"
)

// QuickProber is an engine that answers its kind's Capabilities without a guest, and for any user, as far as it can.
type QuickProber interface {
	// QuickProbe answers a capability. Inconclusive: the answer needs a guest, or root.
	QuickProbe(ctx context.Context, capability string) notebook.Capability
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
