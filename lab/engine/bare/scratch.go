//go:build linux

package bare

import (
	"path/filepath"

	"tare/lab/ruler"
)

// Scratch is the folder on the host that the guest has at ruler.ScratchDir: what it left there can be taken from
// the host as long as the guest lives.
func (g *guest) Scratch() string { return filepath.Join(g.root, ruler.ScratchDir) }
