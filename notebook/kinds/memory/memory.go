// Package memory holds the configuration and the records of a study of the kind "memory": how much of the host's memory guests take
// (paper "virtualization-overheads", sections 6.3 to 6.6.1).
package memory

import (
	"slices"

	"tare/notebook"
)

// Name is the name of the kind.
const Name = "memory"

// Seen is what a trial recorded.
type Seen struct {
	Weights []Weight `json:"weights,omitempty"` // in the order in which they were taken
}

// Config is how a study weighs guests. It makes guests of a treatment one after another and reads the memory that they take from
// the host (paper "virtualization-overheads", sections 6.3 to 6.6.1).
type Config struct {
	Guests []int  `json:"guests"`           // numbers of guests at which they are weighed, rising
	KSM    string `json:"ksm,omitempty"`    // one of KSMSettings: guests are weighed a second time with their pages merged; empty: they are not
	Frames bool   `json:"frames,omitempty"` // VMs are asked how they use each frame of their memory (section 6.5)

	// Further are greater numbers of guests, rising, at which they are weighed too as far as there is room for them: their sizes alone. No
	// metric has them, because trials may get to different numbers; the report's curve has them.
	Further []int `json:"further,omitempty"`

	// PageCache: pages are also compared with those of the host's page cache that no process maps, as in the paper (section 6.2).
	// Folders of earlier versions lack this comparison.
	PageCache bool `json:"page_cache,omitempty"`

	HugePages string `json:"huge_pages,omitempty"` // HugePagesOff: the host makes no huge pages during the run (section 6.6.1); empty: the host's setting

	// Published are the paper's figures for VMs, in MiB, by the keys of the metrics below. The report shows them next to the
	// measured ones. For duplicates they are the four numbers of a line of Table 6.4.
	Published   map[string][]float64 `json:"published,omitempty"`
	PublishedOf string               `json:"published_of,omitempty"` // the workload whose VMs the paper measured; empty: every workload
}

// PublishedLines are the entries of Published that have four numbers: one for each kind, and all.
var PublishedLines = []string{Within.Name, WithHost.Name, WithGuests.Name}

// Paper is the paper's value of the metric for guests like the treatment's: one number, or four for duplicates; nil: none.
func (m *Config) Paper(t notebook.Treatment, of notebook.Metric) []float64 {
	if t.Platform != notebook.VM || m.PublishedOf != "" && m.PublishedOf != t.Workload {
		return nil
	}
	for name, numbers := range m.Published { // folders of format 1 have names of that format
		if notebook.MetricKey(Name, name) == of.Name {
			return numbers
		}
	}
	return nil
}

// HugePagesOff is the only setting of Config.HugePages.
const HugePagesOff = "off"

// Weight is the memory that a number of guests of one treatment take together. Sizes are bytes.
type Weight struct {
	Guests int `json:"guests"`
	notebook.MemoryWeight
	Own       int64                 `json:"own"`               // pages that no process outside the guest maps, summed over guests
	Tables    int64                 `json:"page_tables"`       // of their processes: kernel memory, not in RSS
	Kernel    *int64                `json:"kernel,omitempty"`  // kernel memory charged to the guests' cgroups, including page tables; nil: the host does not report it
	Charged   *Charged              `json:"charged,omitempty"` // what the guests' cgroups are charged in all; nil: the host does not report it
	Anonymous int64                 `json:"anonymous"`         // part of PSS, including merged pages
	File      int64                 `json:"file"`              // part of PSS, including shared memory
	Engine    notebook.MemoryWeight `json:"engine"`            // part of the total: the engine's own process for each container
	Ruler     notebook.MemoryWeight `json:"ruler"`             // not in the total: the rulers in guests whose processes the host sees

	// KernelCopy is not in the total: the copies of guests' kernels that emulators keep because Tare makes them boot a kernel file.
	// A VM that boots from its disk has none.
	KernelCopy int64 `json:"kernel_copy,omitempty"`

	// PageCache is the size of the host's page cache that no process maps, with which pages were compared; nil: they
	// were not, because only the last guests are, or because this kernel does not let Tare read frames.
	PageCache *int64 `json:"page_cache,omitempty"`

	Last     *notebook.MemoryGuest `json:"last,omitempty"` // the account of the latest guest, without its ruler; only the largest of its files
	Changed  int64                 `json:"changed"`        // pages that had changed at the second look
	KSM      *notebook.KSM         `json:"ksm,omitempty"`  // nil: no pages were merged
	SettledS float64               `json:"settled_s"`      // seconds until the memory had settled
	ScanS    float64               `json:"scan_s"`         // seconds that reading the pages took
}

// Charged is what cgroups are charged for memory, as operators see it (memory.current). Sizes are bytes.
type Charged struct {
	All   int64 `json:"all"`   // with the page cache that the guests filled, and the kernel's memory for them
	Files int64 `json:"files"` // part: page cache and shared memory
}

// Metrics of a study of guests' memory. Each is per guest and in MiB; the first is the main metric. A trial's figures leave out
// what is not known.
var (
	PSS          = notebook.Metric{Name: "guest_pss", Unit: "MiB"}           // mean: sum over all guests divided by their number, at Config.Most (equation 6.1)
	RSS          = notebook.Metric{Name: "guest_rss", Unit: "MiB"}           // mean: as for PSS
	USS          = notebook.Metric{Name: "guest_uss", Unit: "MiB"}           // mean: as for PSS
	Alone        = notebook.Metric{Name: "guest_pss_alone", Unit: "MiB"}     // PSS of a single guest
	AloneRSS     = notebook.Metric{Name: "guest_rss_alone", Unit: "MiB"}     // RSS of a single guest
	Merged       = notebook.Metric{Name: "guest_pss_ksm", Unit: "MiB"}       // merged: mean PSS of all guests
	AloneKSM     = notebook.Metric{Name: "guest_pss_alone_ksm", Unit: "MiB"} // merged: PSS of a single guest
	Added        = notebook.Metric{Name: "guest_pss_added", Unit: "MiB"}     // increase: PSS of all guests minus PSS at the previous measurement, divided by the number of added guests
	AddedKSM     = notebook.Metric{Name: "guest_pss_added_ksm", Unit: "MiB"} // merged: the same increase
	Asymptote    = notebook.Metric{Name: "guest_pss_asymptote", Unit: "MiB"} // limit of the mean for ever more guests, fitted as a + b/n
	LimitKSM     = notebook.Metric{Name: "guest_pss_asymptote_ksm", Unit: "MiB"}
	Tables       = notebook.Metric{Name: "guest_page_tables", Unit: "MiB"}
	Kernel       = notebook.Metric{Name: "guest_kernel_memory", Unit: "MiB"}  // what the guests' cgroups are charged for page tables, slabs, stacks, cgroup structures and sockets
	ChargedAll   = notebook.Metric{Name: "guest_charged", Unit: "MiB"}        // what the guests' cgroups are charged in all (memory.current), with the page cache that they filled
	ChargedFiles = notebook.Metric{Name: "guest_charged_files", Unit: "MiB"}  // part of it: page cache and shared memory
	Copy         = notebook.Metric{Name: "emulator_kernel_copy", Unit: "MiB"} // Weight.KernelCopy, which no other metric includes
	Anonymous    = notebook.Metric{Name: "guest_pss_anonymous", Unit: "MiB"}
	File         = notebook.Metric{Name: "guest_pss_files", Unit: "MiB"}
	Within       = notebook.Metric{Name: "duplicates_within", Unit: "MiB"} // of the latest guest, like the next two (Table 6.4)
	WithHost     = notebook.Metric{Name: "duplicates_host", Unit: "MiB"}
	WithGuests   = notebook.Metric{Name: "duplicates_guests", Unit: "MiB"}

	// Of the latest guest: pages that only it has, after merging if the study merges pages (sections 6.5 and 6.6.3). Pages of its
	// RAM are divided by how the guest uses them.
	Own       = notebook.Metric{Name: "own_pages", Unit: "MiB"}
	Emulator  = notebook.Metric{Name: "own_pages_emulator", Unit: "MiB"}
	RAM       = notebook.Metric{Name: "own_pages_ram", Unit: "MiB"}
	GuestFile = notebook.Metric{Name: "own_pages_guest_files", Unit: "MiB"}
	GuestAnon = notebook.Metric{Name: "own_pages_guest_processes", Unit: "MiB"}
	GuestCore = notebook.Metric{Name: "own_pages_guest_kernel", Unit: "MiB"}
	GuestFree = notebook.Metric{Name: "own_pages_guest_free", Unit: "MiB"}
	Left      = notebook.Metric{Name: "duplicates_left", Unit: "MiB"}  // own pages whose content another page has too: after merging, what KSM leaves
	Idle      = notebook.Metric{Name: "idle_pages", Unit: "MiB"}       // idle: own pages that the guest has not used recently, without duplicates (section 6.6.3)
	IdleAlone = notebook.Metric{Name: "idle_pages_alone", Unit: "MiB"} // idle pages of a single guest, not merged; also those whose content only somebody else has
	Best      = notebook.Metric{Name: "own_pages_best", Unit: "MiB"}   // own pages without Left and Idle (section 6.8)

	// Unmapped is the memory that the host holds for a single guest, pages not merged, and that the hypervisor's page tables do not map (section 6.5).
	Unmapped = notebook.Metric{Name: "ram_not_mapped", Unit: "MiB"}

	// The columns of Table 6.4, as the host sees pages: all three kinds of place together.
	AnonAnon = notebook.Metric{Name: "duplicates_anonymous", Unit: "MiB"}
	FileFile = notebook.Metric{Name: "duplicates_file", Unit: "MiB"}
	AnonFile = notebook.Metric{Name: "duplicates_mixed", Unit: "MiB"}
)

// OfGuestMemory are the metrics of guests' use of the memory of VMs, and of their equal pages. They are the same under
// KVM and an emulator; the memory of the emulator itself is not.
var OfGuestMemory = []notebook.Metric{
	Within, WithHost, WithGuests, AnonAnon, FileFile, AnonFile,
	RAM, GuestFile, GuestAnon, GuestCore, GuestFree, Left, Idle, IdleAlone,
}

// Most is the greatest number of guests that every trial reaches, which is that of the metrics.
func (m Config) Most() int { return slices.Max(m.Guests) }

// Numbers are all numbers of guests, rising: those that every trial reaches, and the further ones.
func (m Config) Numbers() []int { return slices.Concat(m.Guests, m.Further) }

// Increment says whether the study tells what one more guest adds in the paper's sense (sections 6.5, 6.6 and 6.8): its frames, with their
// duplicates merged.
func (m Config) Increment() bool { return m.Frames && m.KSM != "" }

// Figures are the secondary metrics of a study with this configuration.
func (m Config) Figures() (all []notebook.Metric) {
	first, several, fitted := m.Guests[0] == 1, len(m.Guests) > 1, len(m.Guests) > 2
	merged, increment := m.KSM != "", m.Increment()
	for _, f := range []struct {
		notebook.Metric
		is bool
	}{
		{RSS, true}, {USS, true}, {Merged, merged},
		{Alone, first && several}, {AloneRSS, first && several}, {AloneKSM, first && several && merged},
		{Added, several}, {AddedKSM, several && merged},
		{Asymptote, fitted}, {LimitKSM, fitted && merged},
		{Tables, true}, {Kernel, true}, {ChargedAll, true}, {ChargedFiles, true}, {Copy, true}, {Anonymous, true}, {File, true},
		{Within, true}, {WithHost, true}, {WithGuests, m.Most() > 1},
		{AnonAnon, m.Frames}, {FileFile, m.Frames}, {AnonFile, m.Frames},
		{Own, increment}, {Emulator, increment}, {RAM, increment}, {GuestFile, increment}, {GuestAnon, increment},
		{GuestCore, increment}, {GuestFree, increment}, {Left, increment}, {Idle, m.Frames}, {IdleAlone, m.Frames && first && several}, {Unmapped, m.Frames && first && several}, {Best, increment},
	} {
		if f.is {
			all = append(all, f.Metric)
		}
	}
	return all
}
