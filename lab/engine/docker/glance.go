package docker

import (
	"context"
	"os"

	"tare/notebook"
)

// Glance implements engine.Glancer: asking the engine makes no container.
func (d *Driver) Glance(ctx context.Context, capability string) notebook.Capability {
	c := d.Probe(ctx, capability)
	if c.Answer == notebook.NotSupported && os.Geteuid() != 0 { // maybe only the permission is missing
		c.Answer, c.Do = notebook.Inconclusive, "sudo tare doctor"
	}
	return c
}
