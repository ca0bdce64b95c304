//go:build linux

package qemu

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"tare/lab/engine"
	"tare/lab/ruler/frames"
)

var _ engine.Machine = (*Guest)(nil)

// RAM implements engine.Machine. QEMU translates a guest's address to its own (the monitor's command gpa2hva).
func (g *Guest) RAM(ctx context.Context) ([]frames.Piece, error) {
	ctx, cancel := context.WithTimeout(ctx, limitsWait)
	defer cancel()
	all, err := pieces(uint64(g.Spec.Instance.Memory), func(guest uint64) (uint64, error) {
		var said string
		command := fmt.Sprintf("gpa2hva %#x", guest)
		err := g.machine.qmp.with(ctx, "human-monitor-command", map[string]string{"command-line": command}, &said)
		if err != nil {
			return 0, err
		}
		return placed(said)
	})
	if err != nil {
		return nil, fmt.Errorf("where QEMU has its guest's memory: %w", err)
	}
	return all, nil
}

// KernelFile implements engine.Machine.
func (g *Guest) KernelFile() string { return g.hardware.kernel }

// placed parses the answer to gpa2hva: "Host virtual address for 0x0 (pc.ram) is 0x7f0000000000". 0: no memory is at that address.
func placed(said string) (uint64, error) {
	said = strings.TrimSpace(said)
	if strings.HasPrefix(said, "No memory is mapped") || strings.Contains(said, "is not RAM") {
		return 0, nil
	}
	_, at, ok := strings.Cut(said, ") is 0x")
	host, err := strconv.ParseUint(at, 16, 64)
	if !ok || err != nil || host == 0 || host%frames.Size != 0 {
		return 0, fmt.Errorf("gpa2hva: %.100q is not the address of a page", said)
	}
	return host, nil
}

const (
	grain  = 1 << 20 // pieces begin and end at whole MiB
	behind = 1 << 32 // in a PC, memory that does not fit below the devices' addresses begins here
)

// pieces finds where the given number of bytes of a guest's memory are, by asking for single addresses. Below the first MiB some
// addresses belong to firmware and devices. The memory continues beneath them, so they count as a part of it.
func pieces(memory uint64, ask func(guest uint64) (host uint64, err error)) (all []frames.Piece, err error) {
	for guest, left := uint64(0), memory; left > 0; {
		host, err := ask(guest)
		if err != nil {
			return nil, err
		}
		if host == 0 && guest < behind && len(all) > 0 {
			guest = behind
			continue
		}
		if host == 0 {
			return nil, fmt.Errorf("QEMU has no memory at %#[3]x, although %[1]d of %[2]d bytes must be there", left, memory, guest)
		}
		// Find the longest contiguous piece: the memory at low belongs to it, and the memory at high does not.
		low, high := uint64(grain), left+grain
		for high-low > grain {
			mid := (low + high) / 2 / grain * grain
			at, err := ask(guest + mid - frames.Size)
			if err != nil {
				return nil, err
			}
			if at == host+mid-frames.Size {
				low = mid
			} else {
				high = mid
			}
		}
		low = min(low, left)
		all = append(all, frames.Piece{Range: frames.Range{First: guest / frames.Size, N: low / frames.Size}, Address: host})
		guest, left = guest+low, left-low
	}
	return all, nil
}
