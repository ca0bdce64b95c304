package notebook

// MiB is the unit of a weight, which the paper calls MB.
const MiB = 1 << 20

// How the kernel merges pages that are alike (KSM).
const (
	KSMPaper  = "paper"  // 500 pages at a time and 10 ms between (paper "virtualization-overheads", section 4.1)
	KSMKernel = "kernel" // as many as the host's kernel is set to
)

// KSMSettings are all of these.
var KSMSettings = []string{KSMPaper, KSMKernel}

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
	CPUS             float64 `json:"cpu_s"`               // CPU time of ksmd in that time
	Unsettled        bool    `json:"unsettled,omitempty"` // it still merged when its time was over
}

// PageTables are the page-table entries of several guests' processes that are present, each of 4 KiB: one that maps a huge page is as many.
type PageTables struct {
	State     string `json:"state"` // Initial or Steady
	Guests    int    `json:"guests"`
	Processes int    `json:"processes"`
	Entries   int64  `json:"entries"`

	Groupable int64 `json:"groupable"` // a process of another guest has the same frame at the same address; the others are exclusive
	Within    int64 `json:"within"`    // exclusive, and another process of the same guest has it so
	Elsewhere int64 `json:"elsewhere"` // exclusive, and another guest has the frame, at another address
	Zero      int64 `json:"zero"`      // groupable, of the page of zeros

	Active          int64 `json:"active"` // the page is on the kernel's active list (KPF_ACTIVE; paper, section 2.4)
	ActiveGroupable int64 `json:"active_groupable"`
	Reused          int64 `json:"reused,omitempty"` // the processor used the entry in each half of HalvesS (paper, section 5.2.1: "accessed at least multiple times")
	ReusedGroupable int64 `json:"reused_groupable,omitempty"`
	Unlisted        int64 `json:"unlisted"` // the page is on no list, so that it is never active: the kernel's own, or just allocated
	Accessed        int64 `json:"accessed"` // by the processor since it was mapped, by its accessed bits; bytes of the processes' resident sets
	Resident        int64 `json:"resident"` // bytes

	Huge          int64 `json:"huge"` // mapped as a whole huge page
	ActiveHuge    int64 `json:"active_huge"`
	GroupableHuge int64 `json:"groupable_huge"`
	Large         int64 `json:"large"` // of a larger folio that is mapped in pieces of 4 KiB

	// The entries by what maps them; all zero in older records (paper, section 5.2.1: code, infrastructure and data).
	Code TablePart `json:"code,omitzero"` // files of which the process has a part as code: its program and libraries
	Data TablePart `json:"data,omitzero"` // other files, and memory that processes share
	Own  TablePart `json:"own,omitzero"`  // no file: heap and stacks, and what the kernel gives each process, such as [vdso]

	// Engine has the entries of the engine's own processes for the guests, such as a shim or conmon: the paper's "container infrastructure"
	// (section 5.2.1). They are in no other number here. Zero where the engine has no such process, and in older records.
	Engine TablePart `json:"engine,omitzero"`

	Changed int64   `json:"changed,omitempty"`  // pages that were moving while they were read
	HalvesS float64 `json:"halves_s,omitempty"` // seconds of the two halves of the time before, of which Reused is; 0: Reused is not known
	AtS     float64 `json:"at_s"`               // seconds after the last guest began, or its service answered, when reading began
	ScanS   float64 `json:"scan_s"`             // that it took
}

// TablePart counts page-table entries of one kind of mapping.
type TablePart struct {
	Entries   int64 `json:"entries"`
	Active    int64 `json:"active,omitempty"`
	Groupable int64 `json:"groupable,omitempty"`
}

// FaultKinds are those of Table 5.1 of the paper, in its order, and those that could not be told.
var FaultKinds = []string{"read", "copy-on-write", "shared", "anonymous", "swap", "write-protect", "unknown"}

// PageFaults are those of several guests' processes, together.
type PageFaults struct {
	Guests   int              `json:"guests"`
	OfS      float64          `json:"of_s"`             // seconds in which they were counted
	CPUS     float64          `json:"cpu_s"`            // CPU time that the guests used in that time
	Kinds    map[string]int64 `json:"kinds"`            // by FaultKinds
	Repeated map[string]int64 `json:"repeated"`         // of them: another guest had made the same translation before
	Common   int64            `json:"common,omitempty"` // of all: several guests had made the same translation by the end, whichever was first; 0 with repeats: not counted
	Major    int64            `json:"major,omitempty"`  // that waited for a disk
	Lost     int64            `json:"lost,omitempty"`   // that found no room where they are passed on, or in what is remembered; not in Kinds
	Unended  int64            `json:"unended,omitempty"`
	Untold   int64            `json:"untold,omitempty"` // that may or may not repeat another: there were too many translations

	Instructions float64 `json:"instructions,omitempty"` // that the guests executed in that time, in their programs and in the kernel; 0: the CPU does not count them
}

// Faults is how many there were.
func (f *PageFaults) Faults() (n int64) {
	for _, k := range f.Kinds {
		n += k
	}
	return n
}

// Repeats is how many of them repeated a translation.
func (f *PageFaults) Repeats() (n int64) {
	for _, k := range f.Repeated {
		n += k
	}
	return n
}

// Cached says how much of what a start reads was in the host's page cache just before it, as the kernel counts it.
type Cached struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`    // of these files
	Resident int64 `json:"resident"` // of them, in the cache
}
