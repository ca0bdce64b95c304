//go:build linux

package qemu

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// mappedSizes are the sizes of the pages that KVM counts by these names (the kernel's Documentation/virt/kvm/api.rst, KVM_GET_STATS_FD).
var mappedSizes = map[string]int64{"pages_4k": 4 << 10, "pages_2m": 2 << 20, "pages_1g": 1 << 30}

// Mapped implements engine.Machine: KVM counts the pages that its tables map. QEMU before 7.1 does not report them, and an emulator has none.
func (g *Guest) Mapped(ctx context.Context) (bytes int64, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limitsWait)
	defer cancel()
	var said []statistics
	err = g.machine.qmp.with(ctx, "query-stats", map[string]string{"target": "vm"}, &said)
	if err != nil && strings.Contains(err.Error(), "CommandNotFound") {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("reading KVM's counts of pages: %w", err)
	}
	return mapped(said)
}

// statistics are what QEMU says of one provider, a part of the answer to query-stats.
type statistics struct {
	Provider string `json:"provider"`
	Stats    []struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"` // a number, or a list for a histogram
	} `json:"stats"`
}

// mapped adds up the pages that KVM's tables map; known is false if KVM reports none of these counts.
func mapped(said []statistics) (bytes int64, known bool, err error) {
	for _, s := range said {
		for _, one := range s.Stats {
			size, is := mappedSizes[one.Name]
			if s.Provider != "kvm" || !is {
				continue
			}
			var n int64
			if err := json.Unmarshal(one.Value, &n); err != nil || n < 0 || n > 1<<40/size {
				return 0, false, fmt.Errorf("QEMU says %s is %.60q; must be a number of pages", one.Name, one.Value)
			}
			bytes, known = bytes+n*size, true
		}
	}
	return bytes, known, nil
}
