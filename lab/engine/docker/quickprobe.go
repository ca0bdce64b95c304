package docker

import (
	"context"
	"os"

	"tare/notebook"
)

// QuickProbe implements engine.QuickProber: asking the engine makes no container.
func (d *Driver) QuickProbe(ctx context.Context, capability string) notebook.Capability {
	c := d.Probe(ctx, capability)
	if c.Answer == notebook.NotSupported && os.Geteuid() != 0 { // maybe only the permission is missing
		c.Answer, c.Do = notebook.Inconclusive, "sudo tare doctor"
	}
	return c
}
