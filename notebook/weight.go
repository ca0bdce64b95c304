package notebook

// Memory is how a study weighs guests: so many of a treatment are made, one beside the other, and what they take of the host's memory is read
// (paper "virtualization-overheads", sections 6.3 to 6.6.1).
type Memory struct {
	Guests []int  `json:"guests"`           // how many there are at once when they are weighed, from few to many
	KSM    string `json:"ksm,omitempty"`    // one of KSMSettings: then they are weighed again with their pages merged; empty: not
	Frames bool   `json:"frames,omitempty"` // virtual machines are asked what each frame of their memory is to them (section 6.5)

	HugePages string `json:"huge_pages,omitempty"` // HugePagesOff: the host makes none meanwhile (section 6.6.1); empty: as it has them

	// Published is what the paper has of VMs, in MiB, by the names of the metrics below, for the report to set beside what was measured. Of duplicates they are
	// the four of a line of Table 6.4.
	Published   map[string][]float64 `json:"published,omitempty"`
	PublishedOf string               `json:"published_of,omitempty"` // the workload whose VMs are the paper's; empty: each
}

// PublishedLines are those of Published that have four numbers: of each kind, and all.
var PublishedLines = []string{WeightWithin.Name, WeightWithHost.Name, WeightWithGuests.Name}

// Paper is what the paper has of the metric for guests such as the treatment's: one number or, of duplicates, four; nil: nothing.
func (m *Memory) Paper(t Treatment, of Metric) []float64 {
	if t.Platform != VM || m.PublishedOf != "" && m.PublishedOf != t.Workload {
		return nil
	}
	return m.Published[of.Name]
}

// ParamRoot is the parameter of a treatment that says whose its guests' root is: one of Roots (paper "virtualization-overheads", section 6.4).
const ParamRoot = "root"

// Whose a guest's root is.
const (
	RootShared = "shared" // the image's, which all guests read, below what each writes
	RootCopied = "copied" // a copy of it for each guest, so that no two guests read one file
)

// Roots are all of these.
var Roots = []string{RootShared, RootCopied}

// HugePagesOff is the one setting of Memory.HugePages.
const HugePagesOff = "off"

// How the kernel merges pages that are alike (KSM).
const (
	KSMPaper  = "paper"  // 500 pages at a time and 10 ms between (paper "virtualization-overheads", section 4.1)
	KSMKernel = "kernel" // as many as the host's kernel is set to
)

// KSMSettings are all of these.
var KSMSettings = []string{KSMPaper, KSMKernel}

// MiB is the unit of a weight, which the paper calls MB.
const MiB = 1 << 20

// Weight is what a number of guests of one treatment weigh together. Sizes are bytes.
type Weight struct {
	Guests int `json:"guests"`
	MemoryWeight
	Own       int64        `json:"own"`              // pages that no process outside a guest maps, summed over guests
	Tables    int64        `json:"page_tables"`      // of their processes: the kernel's, and not in RSS
	Kernel    *int64       `json:"kernel,omitempty"` // the kernel's own on account of the guests' cgroups, page tables too; nil: the host does not tell
	Anonymous int64        `json:"anonymous"`        // of PSS, merged pages too
	File      int64        `json:"file"`             // of PSS, shared memory too
	Engine    MemoryWeight `json:"engine"`           // of all: the engine's own process for each container
	Ruler     MemoryWeight `json:"ruler"`            // not in it: the rulers in guests whose processes the host sees

	// KernelCopy is not in it: the copies of guests' kernels that emulators keep because Tare has them boot a file. A machine that boots from its disk has none.
	KernelCopy int64 `json:"kernel_copy,omitempty"`

	Last     *MemoryGuest `json:"last,omitempty"` // the account of the guest that came last, without its ruler; of its files the largest
	Changed  int64        `json:"changed"`        // pages that were others when they were looked at again
	KSM      *KSM         `json:"ksm,omitempty"`  // nil: no pages were merged
	SettledS float64      `json:"settled_s"`      // seconds until they took no more
	ScanS    float64      `json:"scan_s"`         // seconds that reading their pages took
}

// KSM is what the kernel's merging had come to, over the whole host (Documentation/admin-guide/mm/ksm.rst).
type KSM struct {
	PagesToScan      int64   `json:"pages_to_scan"`
	SleepMS          int64   `json:"sleep_ms"`
	UseZeroPages     int64   `json:"use_zero_pages,omitempty"`     // 1: pages of zeros become the kernel's own, and are in no PSS
	MergeAcrossNodes int64   `json:"merge_across_nodes,omitempty"` // 1: pages of different NUMA nodes are merged too
	MaxPageSharing   int64   `json:"max_page_sharing,omitempty"`   // how many mappings a merged page may have
	Advisor          string  `json:"advisor,omitempty"`            // which of the kernel's sets pages_to_scan anew after each scan; "": none
	Shared           int64   `json:"pages_shared"`                 // pages that stand for several
	Sharing          int64   `json:"pages_sharing"`                // mappings that they saved
	Scans            int64   `json:"scans"`                        // of all memory that may be merged, until nothing changed any more
	SettledS         float64 `json:"settled_s"`
	CPUS             float64 `json:"cpu_s"`               // CPU time of ksmd meanwhile
	Unsettled        bool    `json:"unsettled,omitempty"` // it still merged when its time was over
}

// Metrics of a study that weighs. All are of a guest, and MiB; the first is the metric, what is not known of a trial is not in its figures.
var (
	WeightPSS        = Metric{Name: "memory (PSS)", Unit: "MiB"}           // of all guests over their number, at the most of them (equation 6.1)
	WeightRSS        = Metric{Name: "RSS", Unit: "MiB"}                    // the same
	WeightUSS        = Metric{Name: "USS", Unit: "MiB"}                    // the same
	WeightAlone      = Metric{Name: "PSS alone", Unit: "MiB"}              // of a single guest
	WeightAloneRSS   = Metric{Name: "RSS alone", Unit: "MiB"}              // of a single guest
	WeightMerged     = Metric{Name: "PSS with KSM", Unit: "MiB"}           // of all guests over their number, merged
	WeightAloneKSM   = Metric{Name: "PSS alone with KSM", Unit: "MiB"}     // of a single guest, merged
	WeightAdded      = Metric{Name: "one more adds", Unit: "MiB"}          // PSS of all guests less that of those of the weighing before, over how many came between
	WeightAddedKSM   = Metric{Name: "one more adds with KSM", Unit: "MiB"} // the same, merged
	WeightAsymptote  = Metric{Name: "asymptote of PSS", Unit: "MiB"}       // of the mean over ever more guests, fitted as a + b/n
	WeightLimitKSM   = Metric{Name: "asymptote of PSS with KSM", Unit: "MiB"}
	WeightTables     = Metric{Name: "page tables", Unit: "MiB"}
	WeightKernel     = Metric{Name: "kernel memory", Unit: "MiB"}               // page tables, slabs, stacks, cgroup structures, sockets: what the guests' cgroups are charged with
	WeightCopy       = Metric{Name: "kernel copy of the emulator", Unit: "MiB"} // Weight.KernelCopy, which all others are without
	WeightAnonymous  = Metric{Name: "anonymous (PSS)", Unit: "MiB"}
	WeightFile       = Metric{Name: "files (PSS)", Unit: "MiB"}
	WeightWithin     = Metric{Name: "duplicates within", Unit: "MiB"} // of the guest that came last, as the next two (Table 6.4)
	WeightWithHost   = Metric{Name: "duplicates with the host", Unit: "MiB"}
	WeightWithGuests = Metric{Name: "duplicates with other guests", Unit: "MiB"}

	// Of the guest that came last, with pages merged where the study has them merged, and pages that it alone has (sections 6.5 and 6.6.3). What is of
	// its RAM is by what it is to the guest.
	WeightOwn       = Metric{Name: "own pages", Unit: "MiB"}
	WeightEmulator  = Metric{Name: "own pages of the emulator", Unit: "MiB"}
	WeightRAM       = Metric{Name: "own pages of RAM", Unit: "MiB"}
	WeightGuestFile = Metric{Name: "own pages of the guest's files", Unit: "MiB"}
	WeightGuestAnon = Metric{Name: "own pages of the guest's processes", Unit: "MiB"}
	WeightGuestCore = Metric{Name: "own pages of the guest's kernel", Unit: "MiB"}
	WeightGuestFree = Metric{Name: "own pages free to the guest", Unit: "MiB"}
	WeightLeft      = Metric{Name: "duplicates left", Unit: "MiB"}   // own pages that another has the content of, too: with pages merged, what KSM leaves
	WeightIdle      = Metric{Name: "idle pages", Unit: "MiB"}        // own pages that the guest has not used of late, and no duplicates (section 6.6.3)
	WeightIdleAlone = Metric{Name: "idle pages alone", Unit: "MiB"}  // the same of a single guest, not merged
	WeightBest      = Metric{Name: "own pages at best", Unit: "MiB"} // without these two (section 6.8)

	// Table 6.4 by columns, as the host sees pages: all three kinds of place together.
	WeightAnonAnon = Metric{Name: "anonymous duplicates", Unit: "MiB"}
	WeightFileFile = Metric{Name: "file duplicates", Unit: "MiB"}
	WeightAnonFile = Metric{Name: "mixed duplicates", Unit: "MiB"}
)

// OfGuestMemory are the metrics of what a VM's memory is to its guest, and of which of its pages are alike. They are the same whether KVM or an emulator runs
// the guest; what the emulator itself takes is not.
var OfGuestMemory = []Metric{
	WeightWithin, WeightWithHost, WeightWithGuests, WeightAnonAnon, WeightFileFile, WeightAnonFile,
	WeightRAM, WeightGuestFile, WeightGuestAnon, WeightGuestCore, WeightGuestFree, WeightLeft, WeightIdle, WeightIdleAlone,
}

// Figures are the metrics of a study that weighs so, after WeightPSS.
func (m Memory) Figures() (all []Metric) {
	first, several, fitted := m.Guests[0] == 1, len(m.Guests) > 1, len(m.Guests) > 2
	merged := m.KSM != ""
	for _, f := range []struct {
		Metric
		is bool
	}{
		{WeightRSS, true}, {WeightUSS, true}, {WeightMerged, merged},
		{WeightAlone, first && several}, {WeightAloneRSS, first && several}, {WeightAloneKSM, first && several && merged},
		{WeightAdded, several}, {WeightAddedKSM, several && merged},
		{WeightAsymptote, fitted}, {WeightLimitKSM, fitted && merged},
		{WeightTables, true}, {WeightKernel, true}, {WeightCopy, true}, {WeightAnonymous, true}, {WeightFile, true},
		{WeightWithin, true}, {WeightWithHost, true}, {WeightWithGuests, m.Guests[len(m.Guests)-1] > 1},
		{WeightAnonAnon, m.Frames}, {WeightFileFile, m.Frames}, {WeightAnonFile, m.Frames},
		{WeightOwn, m.Frames}, {WeightEmulator, m.Frames}, {WeightRAM, m.Frames}, {WeightGuestFile, m.Frames}, {WeightGuestAnon, m.Frames},
		{WeightGuestCore, m.Frames}, {WeightGuestFree, m.Frames}, {WeightLeft, m.Frames}, {WeightIdle, m.Frames}, {WeightIdleAlone, m.Frames && first && several}, {WeightBest, m.Frames},
	} {
		if f.is {
			all = append(all, f.Metric)
		}
	}
	return all
}
