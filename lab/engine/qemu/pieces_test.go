//go:build linux

package qemu

import (
	"errors"
	"slices"
	"testing"

	"tare/lab/ruler/frames"
)

func TestWhereAGuestsMemoryIs(t *testing.T) {
	const gib = uint64(1) << 30
	piece := func(guest, bytes, host uint64) frames.Piece {
		return frames.Piece{Range: frames.Range{First: guest / frames.Size, N: bytes / frames.Size}, Address: host}
	}
	for name, want := range map[string][]frames.Piece{
		"a small guest":                 {piece(0, gib, 0x7f00_0000_0000)},
		"a guest of odd size":           {piece(0, 333<<20, 0x7f00_0000_1000)},
		"one that goes on behind 4 GiB": {piece(0, 2*gib, 0x7f00_0000_0000), piece(4*gib, 6*gib, 0x7f00_8000_0000)},
		"one of two nodes":              {piece(0, gib, 0x7f00_0000_0000), piece(gib, gib, 0x7e00_0000_0000)},
		"two nodes behind 4 GiB": {piece(0, 3*gib, 0x7f00_0000_0000), piece(4*gib, gib, 0x7f00_c000_0000),
			piece(5*gib, 4*gib, 0x7e00_0000_0000)},
	} {
		asked, memory := 0, uint64(0)
		for _, p := range want {
			memory += p.N * frames.Size
		}
		got, err := pieces(memory, func(guest uint64) (uint64, error) {
			asked++
			for _, p := range want {
				if at := guest - p.First*frames.Size; guest >= p.First*frames.Size && at < p.N*frames.Size {
					return p.Address + at, nil
				}
			}
			return 0, nil
		})
		if err != nil || !slices.Equal(got, want) || asked > 100 {
			t.Errorf("%s: %+v, %v, %d times asked; want %+v", name, got, err, asked, want)
		}
	}
	gone := errors.New("QEMU ended")
	if _, err := pieces(gib, func(uint64) (uint64, error) { return 0, gone }); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	if _, err := pieces(gib, func(uint64) (uint64, error) { return 0, nil }); err == nil {
		t.Error("memory that is nowhere was found")
	}
}

func TestWhatQEMUSaysOfAnAddress(t *testing.T) {
	for said, want := range map[string]uint64{
		"Host virtual address for 0x0 (pc.ram) is 0x7f57abe00000\r\n": 0x7f57abe00000,
		"No memory is mapped at address 0x80000000\r\n":               0,
		"Memory at address 0xfee00000 is not RAM\r\n":                 0,
	} {
		if got, err := placed(said); got != want || err != nil {
			t.Errorf("%q: %#x, %v; want %#x", said, got, err, want)
		}
	}
	for _, said := range []string{"", "unknown command: 'gpa2hva'", "Host virtual address for 0x0 (pc.ram) is 0x7f5", "Host virtual address for 0x0 (pc.ram) is 0xzz"} {
		if got, err := placed(said); err == nil {
			t.Errorf("%q: %#x", said, got)
		}
	}
}
