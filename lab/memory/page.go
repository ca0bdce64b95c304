//go:build linux

// Package memory reads which physical pages processes use: every mapped page with its frame, flags, kind, size, number of mappings
// and, on request, a hash of its content. It implements Algorithms 1 and 2 of "virtualization-overheads" (section 6.2) with the
// interfaces of today's kernels. It changes only the pages' accessed bits. A page has 4 KiB; parts of larger ones are listed
// one by one.
package memory

import "os"

// PageSize is the size of a page, in bytes.
var PageSize = int64(os.Getpagesize())

// Kind is what a page contains.
type Kind uint8

// Kinds of pages. The kernel counts the first five in RSS, and not the others (smaps).
const (
	Anonymous Kind = iota // the process's own, including what it wrote to a private mapping of a file
	Merged                // anonymous, one copy of several identical pages: KSM
	File                  // of a file, in the page cache
	Shared                // shared memory: tmpfs, memfd, a shared mapping of no file
	Kernel                // the kernel's own, such as [vdso]
	Zero                  // the page, or huge page, of zeros that processes share if they read before they write
	Hugetlb               // of the pool of huge pages
	Device                // not the host's memory, or not accounted for
	Swapped               // not in memory
	kinds
)

var kindNames = [kinds]string{"anonymous", "merged by KSM", "file", "shared memory", "kernel", "zero page", "hugetlb", "device", "swap"}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// resident reports whether the kernel counts pages of this kind in RSS.
func (k Kind) resident() bool { return k <= Kernel }

// Size is the size of the page that this page is, or is a part of.
type Size uint8

// Sizes of pages.
const (
	Small Size = iota // 4 KiB
	Large             // part of a larger one that is mapped in pieces of 4 KiB
	Huge              // part of one that is mapped as a whole: 2 MiB, or 1 GiB of hugetlb
)

// Page is a page that a process maps, in 32 bytes.
type Page struct {
	Frame  uint64 // its number in physical memory; 0 if it is not in memory
	hash   uint64
	at     uint32 // its offset in the mapping, in pages
	region uint32
	Count  uint32 // how often all processes together map it; 0 where the kernel does not count
	flags  uint32
}

// Flags of /proc/kpageflags (Documentation/admin-guide/mm/pagemap.rst), at the same bits.
const (
	kpfSlab         = 1 << 7
	kpfBuddy        = 1 << 10
	kpfAnon         = 1 << 12
	kpfSwapBacked   = 1 << 14
	kpfCompoundHead = 1 << 15
	kpfCompoundTail = 1 << 16
	kpfHuge         = 1 << 17
	kpfKSM          = 1 << 21
	kpfHWPoison     = 1 << 19
	kpfNoPage       = 1 << 20
	kpfOffline      = 1 << 23
	kpfZeroPage     = 1 << 24
	kpfBits         = 1<<26 - 1 // the next is of pages of page tables, which no process maps
)

// Facts from elsewhere are in the bits above them.
const (
	flagFile    = 1 << (26 + iota) // pagemap: of a file, or shared anonymous
	flagMapped                     // PAGEMAP_SCAN: mapped as a whole huge page
	flagSwapped                    // pagemap: in swap
	flagInFile                     // the mapping is of a file
	flagAlike                      // another frame has the same content, and stays
	flagTwin                       // the same guest has another frame with this content
)

// An entry of /proc/PID/pagemap.
const (
	entryFrame   = 1<<55 - 1
	entryOnce    = 1 << 56 // mapped once
	entryGuard   = 1 << 58 // a guard page: no memory
	entryFile    = 1 << 61
	entrySwapped = 1 << 62
	entryPresent = 1 << 63

	entrySwapType = 31
)

// swapTypes is the least number of types of swap entries that stand for swap areas. The other types of the 32 are the kernel's own
// marks, for pages that are being moved (include/linux/swap.h).
const swapTypes = 23

// Flags are the documented flags of /proc/kpageflags.
func (p *Page) Flags() uint32 { return p.flags & kpfBits }

// Kind is what the page contains.
func (p *Page) Kind() Kind {
	switch f := p.flags; {
	case f&flagSwapped != 0:
		return Swapped
	case f&kpfZeroPage != 0:
		return Zero
	case f&kpfHuge != 0:
		return Hugetlb
	case f&kpfKSM != 0:
		return Merged
	case f&kpfAnon != 0:
		return Anonymous
	case f&flagFile == 0:
		return Device
	case f&kpfSwapBacked != 0:
		return Shared
	case f&flagInFile != 0:
		return File
	}
	return Kernel
}

// Size is the size of the page that this page is, or is a part of.
func (p *Page) Size() Size {
	switch {
	case p.flags&flagMapped != 0:
		return Huge
	case p.flags&(kpfCompoundHead|kpfCompoundTail) != 0:
		return Large
	}
	return Small
}

// filed reports whether the page is a file's, not anonymous, for the count of duplicates.
func (p *Page) filed() bool { return p.Kind() != Anonymous && p.Kind() != Merged }

// Hash is a hash of the content, equal for equal contents in one snapshot; known is false where it was not read, or changed.
func (p *Page) Hash() (hash uint64, known bool) { return p.hash, p.hash != 0 }
