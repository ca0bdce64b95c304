package docker

import (
	"context"

	"tare/lab/engine"
	"tare/notebook"
)

// QuickProbe implements engine.QuickProber: asking the engine makes no container.
func (d *Driver) QuickProbe(ctx context.Context, capability string) notebook.Capability {
	return engine.Unprivileged(d.Probe(ctx, capability))
}
