// Package frames is a guest kernel's description of the frames of its memory: a byte for each, and which of them belong to which
// files. The ruler reads it in a guest. On the host it says how the guest uses the pages of a virtual machine's process (paper
// "virtualization-overheads", section 6.5). What comes from a guest is not trusted.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"

	"tare/notebook"
)

// Size is the size of a frame, in bytes.
const Size = 4096

// Kind is how the guest's kernel uses a frame.
type Kind uint8

// Kinds of frames.
const (
	Absent    Kind = iota // no memory exists at this address
	Free                  // unused
	File                  // of the page cache
	Shared                // of the page cache without a disk: tmpfs, shared memory
	Anonymous             // a process's own
	Slab                  // the kernel's small objects
	Tables                // page tables
	Reserved              // reserved since the start: the kernel's image and its list of frames, and the firmware's
	Kernel                // another use of the kernel, which it does not disclose, or free frames that its CPUs keep in reserve
	Given                 // a balloon has given it back to the host
	Kinds                 // number of kinds
)

var names = [Kinds]string{
	notebook.FramesAbsent, notebook.FramesFree, notebook.FramesFile, notebook.FramesShared, notebook.FramesAnonymous,
	notebook.FramesSlab, notebook.FramesTables, notebook.FramesReserved, notebook.FramesKernel, notebook.FramesGiven,
}

// String names the kind.
func (k Kind) String() string { return names[min(k, Kinds-1)] }

// Cache reports whether the guest has the frame in its page cache.
func (k Kind) Cache() bool { return k == File || k == Shared }

// Code describes a frame: its kind in the low four bits, and its state.
type Code uint8

// The state of a frame.
const (
	Listed     Code = 1 << (4 + iota) // on one of the lists that the kernel reclaims from (LRU)
	Active                            // on the list of frames in use
	Referenced                        // used since the kernel looked last
	unknown                           // no code has this bit
)

// Kind is the kind of the frame.
func (c Code) Kind() Kind { return Kind(c & 15) }

// Idle reports whether the guest has not used the frame recently: it is reclaimable, not active and not referenced (section 6.6.3).
func (c Code) Idle() bool { return c&(Listed|Active|Referenced) == Listed }

// Flags of /proc/kpageflags (Documentation/admin-guide/mm/pagemap.rst), by their bits.
const (
	kpfReferenced = 1 << 2
	kpfUptodate   = 1 << 3
	kpfDirty      = 1 << 4
	kpfLRU        = 1 << 5
	kpfActive     = 1 << 6
	kpfSlab       = 1 << 7
	kpfWriteback  = 1 << 8
	kpfBuddy      = 1 << 10
	kpfAnon       = 1 << 12
	kpfSwapBacked = 1 << 14
	kpfTail       = 1 << 16
	kpfHuge       = 1 << 17
	kpfNoPage     = 1 << 20
	kpfKSM        = 1 << 21
	kpfOffline    = 1 << 23
	kpfPgtable    = 1 << 26
	kpfReserved   = 1 << 32
)

// Append appends the codes of consecutive frames, by their flags in /proc/kpageflags. head is the code of the frame before the
// first: parts of a larger page have the code of its first part, because some kernels set flags only there.
func Append(codes []Code, flags []uint64, head Code) []Code {
	for _, f := range flags {
		if f&kpfTail == 0 || head.Kind() == Absent {
			head = of(f)
		}
		codes = append(codes, head)
	}
	return codes
}

func of(f uint64) Code {
	kind := Kernel
	switch {
	case f&kpfNoPage != 0:
		kind = Absent
	case f&kpfBuddy != 0:
		kind = Free
	case f&kpfOffline != 0:
		kind = Given
	case f&kpfPgtable != 0:
		kind = Tables
	case f&kpfSlab != 0:
		kind = Slab
	case f&kpfReserved != 0:
		kind = Reserved
	case f&(kpfAnon|kpfKSM) != 0:
		kind = Anonymous
	case f&(kpfLRU|kpfUptodate|kpfDirty|kpfWriteback|kpfHuge) == 0: // pages that have just been read are not on a list yet
	case f&(kpfSwapBacked|kpfHuge) != 0:
		kind = Shared
	default:
		kind = File
	}
	c := Code(kind)
	for _, s := range []struct {
		flag uint64
		code Code
	}{{kpfLRU, Listed}, {kpfActive, Active}, {kpfReferenced, Referenced}} {
		if f&s.flag != 0 {
			c |= s.code
		}
	}
	return c
}

// Pack appends codes in the form in which a guest sends them: runs of one code, each with its length.
func Pack(b []byte, codes []Code) []byte {
	for len(codes) > 0 {
		n := 1
		for n < len(codes) && codes[n] == codes[0] {
			n++
		}
		b = binary.AppendUvarint(append(b, byte(codes[0])), uint64(n))
		codes = codes[n:]
	}
	return b
}

// Unpack appends codes from Pack to codes, which may have at most most codes in the end.
func Unpack(codes []Code, b []byte, most int) ([]Code, error) {
	for len(b) > 0 {
		c := Code(b[0])
		n, used := binary.Uvarint(b[1:])
		switch {
		case c.Kind() >= Kinds || c&unknown != 0:
			return nil, fmt.Errorf("%#02x is not the code of a frame", b[0])
		case used <= 0 || n == 0:
			return nil, errors.New("a run of frames without a length")
		case n > uint64(most-len(codes)):
			return nil, fmt.Errorf("more than the requested %d frames", most)
		}
		for range n {
			codes = append(codes, c)
		}
		b = b[1+used:]
	}
	return codes, nil
}

// Range is N frames from First on.
type Range struct {
	First uint64 `json:"first"`
	N     uint64 `json:"n"`
}

// Piece is frames of a guest and their place in its process on the host.
type Piece struct {
	Range
	Address uint64 // in the process
}

// Named is a file of the guest, with its frames in the page cache.
type Named struct {
	Name   string  `json:"name"`
	Frames []Range `json:"frames"`
}

// Limits on what a guest may say.
const (
	Most      = 1 << 28 // frames: 1 TiB
	MostFiles = 1 << 17 // files that have frames
	MostName  = 4096    // bytes of a file's name
)

// Check checks a guest's description of a file; n is the number of its frames.
func (f *Named) Check() (n uint64, err error) {
	if len(f.Name) > MostName {
		return 0, fmt.Errorf("a file's name of %d bytes", len(f.Name))
	}
	for _, r := range f.Frames {
		if r.N == 0 || r.N > Most || r.First > 1<<40 {
			return 0, fmt.Errorf("%d frames from %d on", r.N, r.First)
		}
		if n += r.N; n > Most {
			return 0, fmt.Errorf("a file of more than %d frames", Most)
		}
	}
	return n, nil
}
