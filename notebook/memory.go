package notebook

import (
	"slices"
	"time"
)

// MemoryAccount says which physical memory guests take, and what of it could be shared (the paper "virtualization-overheads", sections 6.1, 6.3
// and 6.6.1). All sizes are bytes, and memory in use: pages.
type MemoryAccount struct {
	At       time.Time     `json:"at"`
	Seconds  float64       `json:"seconds"`            // duration of the scan
	Guests   []MemoryGuest `json:"guests"`             // the requested guests
	Scanned  int           `json:"processes"`          // processes of the host whose pages were scanned
	Missing  []string      `json:"missing,omitempty"`  // left out: processes of the guests, each with the reason
	Unseen   int           `json:"unseen"`             // other processes: those that may not be read, or ended during the scan
	Contents bool          `json:"contents"`           // whether the scan compared the contents of pages
	Changed  int64         `json:"changed"`            // pages that had changed at the second look: they do not count as duplicates
	Unread   int64         `json:"unread"`             // pages whose content cannot be read
	Spilled  int64         `json:"spilled,omitempty"`  // bytes of the scanner's pages that lay in a file, beyond its memory limit
	Withheld string        `json:"withheld,omitempty"` // why frames are not known; then there are only the kernel's own sums
}

// MemoryWeight is a footprint as the paper's Table 6.1 has it, equal to the kernel's in smaps_rollup.
type MemoryWeight struct {
	RSS  int64 `json:"rss"` // all pages that are mapped, each as often as it is
	PSS  int64 `json:"pss"` // of each page its share, one for each time that it is mapped
	USS  int64 `json:"uss"` // pages that are mapped once
	Swap int64 `json:"swap"`
}

// Add adds another footprint.
func (w *MemoryWeight) Add(o MemoryWeight) {
	w.RSS, w.PSS, w.USS, w.Swap = w.RSS+o.RSS, w.PSS+o.PSS, w.USS+o.USS, w.Swap+o.Swap
}

// MemoryGuest is what a guest takes: a container, a VM, or a process.
type MemoryGuest struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // MemoryContainer, …
	MemoryWeight
	Own        int64             `json:"own"` // pages that no process outside maps: what its end gives back
	Processes  []MemoryProcess   `json:"processes"`
	Kinds      []MemoryPart      `json:"kinds"`
	Files      []MemoryPart      `json:"files"` // the largest PSS first
	Huge       int64             `json:"huge"`  // of RSS: mapped as whole huge pages
	Large      int64             `json:"large"` // of RSS: parts of larger pages, mapped one by one
	SharedWith []MemoryShare     `json:"shared_with"`
	Duplicates *MemoryDuplicates `json:"duplicates,omitempty"` // where contents were compared
	GiveBack   []MemoryGiveBack  `json:"give_back"`
	RAM        *MemoryRAM        `json:"ram,omitempty"` // of a VM that was asked what its memory is to it
}

// Kinds of what MemoryGuest stands for.
const (
	MemoryContainer = "container"
	MemoryVM        = "vm"
	MemoryProcesses = "process"
	MemoryHost      = "host" // all processes that are in no guest
)

// MemoryProcess is one process of a guest.
type MemoryProcess struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	MemoryWeight
}

// MemoryPart is a part of a guest's memory: of one kind, or of one file.
type MemoryPart struct {
	Name   string `json:"name"`
	RSS    int64  `json:"rss"`
	PSS    int64  `json:"pss"`
	Own    int64  `json:"own,omitempty"`    // of a kind: pages that no process outside the guest maps
	Copied int64  `json:"copied,omitempty"` // of a file: anonymous pages that the guest wrote to its private mappings
	Other  int64  `json:"other,omitempty"`  // of a kind that the kernel does not count in RSS: its pages
}

// MemoryRAM is a VM's memory by what it is to its guest (section 6.5).
type MemoryRAM struct {
	Bytes      int64             `json:"bytes"`            // memory that its guest can have
	Mapped     *int64            `json:"mapped,omitempty"` // memory that the hypervisor's tables map (EPT, NPT); nil: unknown
	Kinds      []MemoryFrames    `json:"kinds"`            // all of this memory, by kind
	Emulator   MemoryFrames      `json:"emulator"`         // the other memory of its processes
	Files      []MemoryFrames    `json:"files,omitempty"`  // page cache by file, if the guest was asked; largest Own first
	Unnamed    MemoryFrames      `json:"unnamed"`          // page cache of files that were not found
	Fewer      int               `json:"fewer,omitempty"`  // files that are not listed: they count in Others
	Others     MemoryFrames      `json:"others"`
	Out        *Message          `json:"files_left_out,omitempty"` // which files were not looked for, and why
	AtHand     int64             `json:"at_hand"`                  // part of FramesKernel: free frames that the guest's CPUs keep at hand (/proc/zoneinfo)
	Changed    int64             `json:"changed"`                  // frames whose kind had changed at the second question, after the scan
	Duplicates *MemoryDuplicates `json:"duplicates,omitempty"`     // by the kind that a guest gives its pages; pages of no guest have the host's kind
	Why        *Message          `json:"why,omitempty"`            // why nothing of this is known
}

// What frames of a VM's memory are to its guest's kernel: names of MemoryRAM.Kinds.
const (
	FramesAbsent    = "no memory"
	FramesFree      = "free"
	FramesFile      = "files"
	FramesShared    = "shared memory"
	FramesAnonymous = "anonymous"
	FramesSlab      = "kernel: slabs"
	FramesTables    = "kernel: page tables"
	FramesReserved  = "kernel: reserved at boot" // its image, its list of frames, the firmware's
	FramesKernel    = "kernel: other"            // for what it does not say; and what its CPUs keep at hand of the free
	FramesGiven     = "given back"               // a balloon's
)

// Own is how much of its own the process has for frames of these kinds, in bytes.
func (r *MemoryRAM) Own(kinds ...string) (bytes int64) {
	for _, k := range r.Kinds {
		if slices.Contains(kinds, k.Name) {
			bytes += k.Own
		}
	}
	return bytes
}

// Idle is all that is idle of its own.
func (r *MemoryRAM) Idle() (bytes int64) {
	for _, k := range r.Kinds {
		bytes += k.Idle
	}
	return bytes
}

// Unmapped returns the bytes that the host holds for the guest's memory and that the hypervisor's page tables do not map (section 6.5); known is
// false if that is unknown.
func (r *MemoryRAM) Unmapped() (bytes int64, known bool) {
	if r.Mapped == nil {
		return 0, false
	}
	for _, k := range r.Kinds {
		bytes += k.RSS
	}
	return max(0, bytes-*r.Mapped), true
}

// Unused returns the bytes of its own that are idle by the paper's rule: the guest has no other page with the same content (section 6.6.3).
func (r *MemoryRAM) Unused() (bytes int64) {
	for _, k := range r.Kinds {
		bytes += k.Idle + k.IdleElsewhere
	}
	return bytes
}

// KernelFrames are the kinds that are the guest's kernel's.
var KernelFrames = []string{FramesSlab, FramesTables, FramesReserved, FramesKernel}

// MemoryFrames is frames of a VM's guest that have something in common, and what the host has for them. Sizes are bytes.
type MemoryFrames struct {
	Name  string `json:"name"`
	Guest int64  `json:"guest,omitempty"` // all of them; those that the host has no page for were never touched, or were given back
	RSS   int64  `json:"rss"`             // that the host has pages for
	PSS   int64  `json:"pss"`
	Own   int64  `json:"own"`   // of RSS: no process outside maps them
	Alike int64  `json:"alike"` // of Own: another page has the same content, which would do for both
	Idle  int64  `json:"idle"`  // of Own: no other has, and the guest has not used them of late (section 6.6.3)

	// IdleElsewhere is the part of Alike that the guest has not used recently and that has its duplicates only outside the guest.
	// The paper counts them as idle. A folder of an earlier version has 0.
	IdleElsewhere int64 `json:"idle_elsewhere,omitempty"`
}

// Add adds others.
func (f *MemoryFrames) Add(o MemoryFrames) {
	f.Guest, f.RSS, f.PSS, f.Own, f.Alike, f.Idle = f.Guest+o.Guest, f.RSS+o.RSS, f.PSS+o.PSS, f.Own+o.Own, f.Alike+o.Alike, f.Idle+o.Idle
	f.IdleElsewhere += o.IdleElsewhere
}

// MemoryShare is how much of a guest's memory is another's as well. What several share is listed for each.
type MemoryShare struct {
	With  string `json:"with"`
	Bytes int64  `json:"bytes"`
}

// MemoryDuplicates is what a guest has that is somewhere else, too, in another page. Each page is counted once: as one of the guest's own
// pages again, else as one of the host's, else as one of another guest's (the paper's Table 6.4).
type MemoryDuplicates struct {
	Within MemoryAlike `json:"within"`
	Host   MemoryAlike `json:"host"`
	Guests MemoryAlike `json:"guests"`
	Zero   int64       `json:"zero"` // of all these, and of their originals in the guest: only zeros
}

// MemoryAlike is duplicates by what the two pages are.
type MemoryAlike struct {
	AnonAnon int64 `json:"anonymous_anonymous"`
	FileFile int64 `json:"file_file"` // shared memory counts as a file's
	AnonFile int64 `json:"anonymous_file"`
}

// Sum is all of them.
func (a MemoryAlike) Sum() int64 { return a.AnonAnon + a.FileFile + a.AnonFile }

// MemoryGiveBack is how much of a guest's memory the host would have back by some means.
type MemoryGiveBack struct {
	By    string `json:"by"` // MemoryByEnd, …
	Bytes int64  `json:"bytes"`
}

// Means that give memory back.
const (
	MemoryByEnd      = "end"      // the guest ends
	MemoryByPressure = "pressure" // the kernel runs short of memory: pages of files that no other maps
	MemoryByKSM      = "ksm"      // anonymous pages alike are merged
	MemoryByOneFile  = "one-file" // copies of a file become one
	MemoryByMapping  = "mapping"  // what was copied from a file is mapped
)
