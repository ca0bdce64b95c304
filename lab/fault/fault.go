// Package fault sees every page fault of some processes and classifies it in the order of the kernel's handler (paper
// "characterization", section 5.2.2). It uses the page table's entry before the fault was handled, the mapping, and the entry after
// it.
//
// The kernel's tracepoint exceptions:page_fault_user has an error code, which tells reads from writes, but does not fire on every
// kernel. So two kinds of perf's software events stand in for it. page-faults comes before a fault is handled; minor-faults and
// major-faults come after it. A BPF program on each walks the page table. It sees every fault, without sampling or guessing: a
// fault that it cannot classify is Unknown.
package fault

import (
	"encoding/binary"
	"fmt"

	"tare/lab/pagetable"
)

// Kind is the kind of a fault, as the kernel's handler distinguishes them.
type Kind uint8

// Kinds of faults, in the order of Table 5.1.
const (
	Read         Kind = iota // no entry, not anonymous, a read
	CopyOnWrite              // no entry, not anonymous, a write to a private mapping
	Shared                   // no entry, not anonymous, a write to a shared mapping
	Anonymous                // no entry, an anonymous mapping
	Swap                     // an entry that is not present
	WriteProtect             // a write to an entry that is present and not writable
	Unknown                  // none of these, or undecidable: see classify
	Kinds
)

var names = [Kinds]string{"read", "copy-on-write", "shared", "anonymous", "swap", "write-protect", "unknown"}

// String names the kind.
func (k Kind) String() string { return names[k] }

// Fault is a fault that the kernel has handled.
type Fault struct {
	Guest   int    // the guest of the process, by its number in Watch
	PID     int    // of the process
	Address uint64 // of the page
	Frame   uint64 // number of the frame after the fault; 0: none
	Kind    Kind
	Major   bool // it waited for a disk
	Private bool // the page belongs only to this process now: no other process can share it
}

// Bits of an entry of x86-64's page tables, as the kernel uses them.
const (
	present    = pagetable.Present
	writable   = 1 << 1
	dirty      = 1 << 6
	protNone   = 1 << 8 // with present clear: the page is present, but may not be touched (NUMA balancing)
	savedDirty = 1 << 58
	frameBits  = pagetable.FrameBits

	pageShift = pagetable.PageShift
)

// What the program reports of a fault in addition to the entries.
const (
	found = 1 << iota
	anonymous
	shared
	protectionWrites
	seenBefore
	major
)

// seen is bpf/fault.c's struct fault.
type seen struct {
	Address, Before, After                    uint64
	Guest, TGID, Flags, SizeBefore, SizeAfter uint32
	_                                         uint32
}

// parse parses the program's record of one fault. An impossible record is an error: a guest that is not watched, or an entry that
// maps a number of pages that is not a power of two.
func parse(record []byte) (Fault, error) {
	var s seen
	if _, err := binary.Decode(record, binary.NativeEndian, &s); err != nil {
		return Fault{}, fmt.Errorf("a fault of %d bytes: %w", len(record), err)
	}
	if s.Guest < 1 || s.Guest > MostGuests {
		return Fault{}, fmt.Errorf("a fault of guest %d: must be from 1 to %d", s.Guest, MostGuests)
	}
	if s.SizeAfter&(s.SizeAfter-1) != 0 {
		return Fault{}, fmt.Errorf("an entry that maps %d pages: must be a power of two", s.SizeAfter)
	}
	return s.fault(), nil
}

// fault is the recorded fault.
func (s *seen) fault() Fault {
	f := Fault{Guest: int(s.Guest) - 1, PID: int(s.TGID), Address: s.Address, Kind: s.classify(), Major: s.Flags&major != 0}
	if s.After&present != 0 && s.SizeAfter > 0 {
		inside := s.Address >> pageShift & uint64(s.SizeAfter-1)
		f.Frame = (s.After&frameBits)>>pageShift&^uint64(s.SizeAfter-1) + inside
	}
	f.Private = s.Flags&found != 0 && s.Flags&shared == 0 && s.After&(present|writable) == present|writable
	return f
}

// classify follows the kernel's order: no entry and anonymous; no entry and a file's; an entry that is not present; one that is
// present and not writable.
//
// If there was no entry, the entry after the fault tells a write from a read: after a write the kernel makes it dirty. After a read
// it also makes it dirty if the mapping makes entries writable at once (shared memory) and the page was dirty already. Such a fault
// is Unknown.
func (s *seen) classify() Kind {
	written := s.After&(dirty|savedDirty) != 0
	switch {
	case s.Flags&seenBefore == 0 || s.Flags&found == 0:
		return Unknown
	case s.Before == 0 && s.SizeBefore == 0:
		return Unknown // the page table could not be read
	case s.Before == 0 && s.Flags&anonymous != 0:
		return Anonymous
	case s.Before == 0 && s.After&present == 0:
		return Unknown
	case s.Before == 0 && !written:
		return Read
	case s.Before == 0 && s.Flags&shared == 0:
		return CopyOnWrite
	case s.Before == 0 && s.Flags&protectionWrites != 0:
		return Unknown
	case s.Before == 0:
		return Shared
	case s.Before&present == 0 && s.Before&protNone != 0:
		return Unknown
	case s.Before&present == 0:
		return Swap
	case s.Before&writable == 0 && s.After&(present|writable) == present|writable:
		return WriteProtect
	}
	return Unknown
}
