package notebook

// Paging is how a study reads what guests of one image have in their page tables, and which page faults they take (paper "characterization",
// section 5.2): so many of a treatment are made, one beside the other on the same cores, each at its work.
type Paging struct {
	Guests   int     `json:"guests"`
	Tables   bool    `json:"tables,omitempty"`   // read their page tables
	InitialS float64 `json:"initial_s"`          // seconds after the last has begun, or its service answers, in which their tables are in the initial state
	SteadyS  float64 `json:"steady_s,omitempty"` // of what does not end by itself: seconds under its load until they are in the steady one; 0: they are not read then
	FaultsS  float64 `json:"faults_s,omitempty"` // seconds under load in which faults are counted, of what ends by itself from its beginning to its end; 0: they are not
}

// Parameters of a treatment that are not its workload's own: how its processes' pages are placed. ParamNeighbours is another.
const (
	ParamAddresses = "addresses"
	ParamHugePages = "huge_pages"
)

// ParamDevices is the parameter of a treatment that names the host's devices which its guests have, as CDI does, separated by commas.
const ParamDevices = "devices"

// Placing are those of a treatment's parameters that are of any workload's; nil: none is.
func Placing(params map[string]string) (some map[string]string) {
	for _, k := range []string{ParamAddresses, ParamHugePages, ParamNeighbours, ParamCache, ParamRoot, ParamDevices} {
		if v, ok := params[k]; ok {
			if some == nil {
				some = map[string]string{}
			}
			some[k] = v
		}
	}
	return some
}

// Where a process's mappings are.
const (
	AddressesRandom = "random" // as the kernel places them: at random, if the host's kernel.randomize_va_space says so
	AddressesFixed  = "fixed"  // the same in each process of a program: personality(2), ADDR_NO_RANDOMIZE
)

// Which pages a process has.
const (
	HugePagesHost   = "host"   // as the host has it
	HugePagesNever  = "never"  // no transparent huge pages: prctl(2), PR_SET_THP_DISABLE
	HugePagesAlways = "always" // transparent huge pages without being asked: a setting of the host
	HugePagesLarge  = "large"  // anonymous memory in folios of 64 KiB without being asked, and no transparent huge pages: settings of the host
)

// Addresses and HugePages are all of these.
var (
	Addresses = []string{AddressesRandom, AddressesFixed}
	HugePages = []string{HugePagesHost, HugePagesNever, HugePagesAlways, HugePagesLarge}
)

// States of page tables.
const (
	Initial = "initial"
	Steady  = "steady"
)

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
	Unlisted        int64 `json:"unlisted"` // the page is on no list, so that it is never active: the kernel's own, or just allocated
	Accessed        int64 `json:"accessed"` // by the processor since it was mapped, as smaps says; bytes of the processes' resident sets
	Resident        int64 `json:"resident"` // bytes

	Huge          int64 `json:"huge"` // mapped as a whole huge page
	ActiveHuge    int64 `json:"active_huge"`
	GroupableHuge int64 `json:"groupable_huge"`
	Large         int64 `json:"large"` // of a larger folio that is mapped in pieces of 4 KiB

	Changed int64   `json:"changed,omitempty"` // pages that were moving while they were read
	AtS     float64 `json:"at_s"`              // seconds after the last guest began, or its service answered, when reading began
	ScanS   float64 `json:"scan_s"`            // that it took
}

// FaultKinds are those of Table 5.1 of the paper, in its order, and those that could not be told.
var FaultKinds = []string{"read", "copy-on-write", "shared", "anonymous", "swap", "write-protect", "unknown"}

// PageFaults are those of several guests' processes, together.
type PageFaults struct {
	Guests   int              `json:"guests"`
	OfS      float64          `json:"of_s"`            // seconds in which they were counted
	CPUS     float64          `json:"cpu_s"`           // CPU time that the guests used meanwhile
	Kinds    map[string]int64 `json:"kinds"`           // by FaultKinds
	Repeated map[string]int64 `json:"repeated"`        // of them: another guest had made the same translation before
	Major    int64            `json:"major,omitempty"` // that waited for a disk
	Lost     int64            `json:"lost,omitempty"`  // that found no room where they are passed on, or in what is remembered; not in Kinds
	Unended  int64            `json:"unended,omitempty"`
	Untold   int64            `json:"untold,omitempty"` // of which it is not known whether they repeat one: there were too many translations
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

// PagingMetric names the metric of a state of page tables: "groupable entries, steady".
func PagingMetric(what, state string) Metric { return Metric{Name: what + ", " + state, Unit: "%"} }

// What is read of page tables in a state. All are shares of the entries but the first, which is of a guest.
const (
	PagingEntries         = "page-table entries"
	PagingExclusive       = "exclusive entries"
	PagingGroupable       = "groupable entries"
	PagingWithin          = "entries shared within guests"
	PagingElsewhere       = "same frame, other address"
	PagingActive          = "active entries"
	PagingActiveGroupable = "active and groupable entries"
	PagingAccessed        = "accessed memory"
	PagingHuge            = "active entries of huge pages"    // of the active ones
	PagingGroupableHuge   = "groupable entries of huge pages" // of the groupable ones
	PagingLarge           = "entries of large folios"
)

// Metrics of page faults.
var (
	FaultsPerCPU     = Metric{Name: "page faults per CPU second", Unit: "1/s"}
	FaultsRepeated   = Metric{Name: "repeated page faults", Unit: "%"} // of all
	FaultsMajor      = Metric{Name: "major page faults", Unit: "%"}    // of all
	FaultsPerGuest   = Metric{Name: "page faults of a guest", Unit: ""}
	FaultsCPU        = Metric{Name: "CPU time of a guest", Unit: "s"}  // in which they came
	FaultsRepeatable = Metric{Name: "repeated file faults", Unit: "%"} // of those that are neither anonymous nor make a private copy
)

// FaultShare is the metric of a kind of page faults: its share of those whose kind could be told, and for the unknown of all.
func FaultShare(kind string) Metric { return Metric{Name: kind + " faults", Unit: "%"} }

// states are those in which the page tables of a workload that ends by itself, or not, are read.
func (p Paging) states(ends bool) []string {
	if p.SteadyS > 0 && !ends {
		return []string{Initial, Steady}
	}
	return []string{Initial}
}

// Metrics are those of a workload that ends by itself, or not: the metric of its trials, and the secondary ones.
func (p Paging) Metrics(ends bool) (first Metric, also []Metric) {
	if p.Tables {
		states := p.states(ends)
		for _, state := range states {
			also = append(also, Metric{Name: PagingEntries + ", " + state, Unit: ""})
			for _, what := range []string{
				PagingGroupable, PagingWithin, PagingElsewhere, PagingActive, PagingActiveGroupable, PagingAccessed, PagingHuge, PagingGroupableHuge, PagingLarge,
			} {
				also = append(also, PagingMetric(what, state))
			}
		}
		first = PagingMetric(PagingExclusive, states[len(states)-1])
	}
	if p.FaultsS > 0 {
		also = append(also, FaultsPerCPU, FaultsPerGuest, FaultsCPU, FaultsRepeated, FaultsRepeatable)
		for _, k := range FaultKinds {
			also = append(also, FaultShare(k))
		}
		also = append(also, FaultsMajor)
		if !p.Tables {
			first = FaultsPerCPU
		}
	}
	for i, m := range also {
		if m == first {
			return first, append(also[:i:i], also[i+1:]...)
		}
	}
	return first, also
}

// Figures are the values of these metrics, first's too, as far as they are known.
func (p Paging) Figures(tables []PageTables, faults *PageFaults) map[string]float64 {
	f := map[string]float64{}
	share := func(m Metric, part, of int64) {
		if of > 0 {
			f[m.Name] = 100 * float64(part) / float64(of)
		}
	}
	for _, t := range tables {
		if t.Guests > 0 {
			f[PagingEntries+", "+t.State] = float64(t.Entries) / float64(t.Guests)
		}
		for what, part := range map[string]int64{
			PagingExclusive: t.Entries - t.Groupable, PagingGroupable: t.Groupable, PagingWithin: t.Within, PagingElsewhere: t.Elsewhere, PagingActive: t.Active,
			PagingActiveGroupable: t.ActiveGroupable, PagingLarge: t.Large,
		} {
			share(PagingMetric(what, t.State), part, t.Entries)
		}
		share(PagingMetric(PagingHuge, t.State), t.ActiveHuge, t.Active)
		share(PagingMetric(PagingGroupableHuge, t.State), t.GroupableHuge, t.Groupable)
		share(PagingMetric(PagingAccessed, t.State), t.Accessed, t.Resident)
	}
	if faults == nil {
		return f
	}
	all, unknown := faults.Faults(), faults.Kinds["unknown"]
	for _, k := range FaultKinds {
		of := all - unknown
		if k == "unknown" {
			of = all
		}
		share(FaultShare(k), faults.Kinds[k], of)
	}
	share(FaultsRepeated, faults.Repeats(), all)
	share(FaultsRepeatable, faults.Repeated["read"]+faults.Repeated["shared"], faults.Kinds["read"]+faults.Kinds["shared"])
	share(FaultsMajor, faults.Major, all)
	if faults.CPUS > 0 {
		f[FaultsPerCPU.Name] = float64(all) / faults.CPUS
	}
	if faults.Guests > 0 {
		f[FaultsPerGuest.Name] = float64(all) / float64(faults.Guests)
		f[FaultsCPU.Name] = faults.CPUS / float64(faults.Guests)
	}
	return f
}
