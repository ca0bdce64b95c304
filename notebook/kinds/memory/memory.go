// Package memory is what a study of the kind "memory" configures and records: how much of the host's memory guests take (paper "virtualization-overheads", sections 6.3 to 6.6.1).
package memory

import "tare/notebook"

// Name is the kind's.
const Name = "memory"

// Of is how the study does that; nil where it is of another kind, or a folder says it in no way that can be read.
func Of(s notebook.Study) *Config {
	c, err := notebook.ConfigOf[Config](s, Name)
	if err != nil {
		return nil
	}
	return c
}

// Seen is what a trial recorded.
type Seen struct {
	Weights []Weight `json:"weights,omitempty"` // in the order in which they were taken
}

// SeenBy is what the trial recorded; nothing where it recorded something else.
func SeenBy(t *notebook.Trial) Seen {
	s, err := notebook.SeenOf[Seen](t)
	if err != nil {
		return Seen{}
	}
	return s
}

// Config is how a study weighs guests: so many of a treatment are made, one beside the other, and what they take of the host's memory is read
// (paper "virtualization-overheads", sections 6.3 to 6.6.1).
type Config struct {
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
var PublishedLines = []string{Within.Name, WithHost.Name, WithGuests.Name}

// Paper is what the paper has of the metric for guests such as the treatment's: one number or, of duplicates, four; nil: nothing.
func (m *Config) Paper(t notebook.Treatment, of notebook.Metric) []float64 {
	if t.Platform != notebook.VM || m.PublishedOf != "" && m.PublishedOf != t.Workload {
		return nil
	}
	return m.Published[of.Name]
}

// HugePagesOff is the one setting of Memory.HugePages.
const HugePagesOff = "off"

// Weight is what a number of guests of one treatment weigh together. Sizes are bytes.
type Weight struct {
	Guests int `json:"guests"`
	notebook.MemoryWeight
	Own       int64                 `json:"own"`              // pages that no process outside a guest maps, summed over guests
	Tables    int64                 `json:"page_tables"`      // of their processes: the kernel's, and not in RSS
	Kernel    *int64                `json:"kernel,omitempty"` // the kernel's own on account of the guests' cgroups, page tables too; nil: the host does not tell
	Anonymous int64                 `json:"anonymous"`        // of PSS, merged pages too
	File      int64                 `json:"file"`             // of PSS, shared memory too
	Engine    notebook.MemoryWeight `json:"engine"`           // of all: the engine's own process for each container
	Ruler     notebook.MemoryWeight `json:"ruler"`            // not in it: the rulers in guests whose processes the host sees

	// KernelCopy is not in it: the copies of guests' kernels that emulators keep because Tare has them boot a file. A machine that boots from its disk has none.
	KernelCopy int64 `json:"kernel_copy,omitempty"`

	Last     *notebook.MemoryGuest `json:"last,omitempty"` // the account of the guest that came last, without its ruler; of its files the largest
	Changed  int64                 `json:"changed"`        // pages that were others when they were looked at again
	KSM      *notebook.KSM         `json:"ksm,omitempty"`  // nil: no pages were merged
	SettledS float64               `json:"settled_s"`      // seconds until they took no more
	ScanS    float64               `json:"scan_s"`         // seconds that reading their pages took
}

// Metrics of a study that weighs. All are of a guest, and MiB; the first is the metric, what is not known of a trial is not in its figures.
var (
	PSS        = notebook.Metric{Name: "memory (PSS)", Unit: "MiB"}           // of all guests over their number, at the most of them (equation 6.1)
	RSS        = notebook.Metric{Name: "RSS", Unit: "MiB"}                    // the same
	USS        = notebook.Metric{Name: "USS", Unit: "MiB"}                    // the same
	Alone      = notebook.Metric{Name: "PSS alone", Unit: "MiB"}              // of a single guest
	AloneRSS   = notebook.Metric{Name: "RSS alone", Unit: "MiB"}              // of a single guest
	Merged     = notebook.Metric{Name: "PSS with KSM", Unit: "MiB"}           // of all guests over their number, merged
	AloneKSM   = notebook.Metric{Name: "PSS alone with KSM", Unit: "MiB"}     // of a single guest, merged
	Added      = notebook.Metric{Name: "one more adds", Unit: "MiB"}          // PSS of all guests less that of those of the weighing before, over how many came between
	AddedKSM   = notebook.Metric{Name: "one more adds with KSM", Unit: "MiB"} // the same, merged
	Asymptote  = notebook.Metric{Name: "asymptote of PSS", Unit: "MiB"}       // of the mean over ever more guests, fitted as a + b/n
	LimitKSM   = notebook.Metric{Name: "asymptote of PSS with KSM", Unit: "MiB"}
	Tables     = notebook.Metric{Name: "page tables", Unit: "MiB"}
	Kernel     = notebook.Metric{Name: "kernel memory", Unit: "MiB"}               // page tables, slabs, stacks, cgroup structures, sockets: what the guests' cgroups are charged with
	Copy       = notebook.Metric{Name: "kernel copy of the emulator", Unit: "MiB"} // Weight.KernelCopy, which all others are without
	Anonymous  = notebook.Metric{Name: "anonymous (PSS)", Unit: "MiB"}
	File       = notebook.Metric{Name: "files (PSS)", Unit: "MiB"}
	Within     = notebook.Metric{Name: "duplicates within", Unit: "MiB"} // of the guest that came last, as the next two (Table 6.4)
	WithHost   = notebook.Metric{Name: "duplicates with the host", Unit: "MiB"}
	WithGuests = notebook.Metric{Name: "duplicates with other guests", Unit: "MiB"}

	// Of the guest that came last, with pages merged where the study has them merged, and pages that it alone has (sections 6.5 and 6.6.3). What is of
	// its RAM is by what it is to the guest.
	Own       = notebook.Metric{Name: "own pages", Unit: "MiB"}
	Emulator  = notebook.Metric{Name: "own pages of the emulator", Unit: "MiB"}
	RAM       = notebook.Metric{Name: "own pages of RAM", Unit: "MiB"}
	GuestFile = notebook.Metric{Name: "own pages of the guest's files", Unit: "MiB"}
	GuestAnon = notebook.Metric{Name: "own pages of the guest's processes", Unit: "MiB"}
	GuestCore = notebook.Metric{Name: "own pages of the guest's kernel", Unit: "MiB"}
	GuestFree = notebook.Metric{Name: "own pages free to the guest", Unit: "MiB"}
	Left      = notebook.Metric{Name: "duplicates left", Unit: "MiB"}   // own pages that another has the content of, too: with pages merged, what KSM leaves
	Idle      = notebook.Metric{Name: "idle pages", Unit: "MiB"}        // own pages that the guest has not used of late, and no duplicates (section 6.6.3)
	IdleAlone = notebook.Metric{Name: "idle pages alone", Unit: "MiB"}  // the same of a single guest, not merged
	Best      = notebook.Metric{Name: "own pages at best", Unit: "MiB"} // without these two (section 6.8)

	// Table 6.4 by columns, as the host sees pages: all three kinds of place together.
	AnonAnon = notebook.Metric{Name: "anonymous duplicates", Unit: "MiB"}
	FileFile = notebook.Metric{Name: "file duplicates", Unit: "MiB"}
	AnonFile = notebook.Metric{Name: "mixed duplicates", Unit: "MiB"}
)

// OfGuestMemory are the metrics of what a VM's memory is to its guest, and of which of its pages are alike. They are the same whether KVM or an emulator runs
// the guest; what the emulator itself takes is not.
var OfGuestMemory = []notebook.Metric{
	Within, WithHost, WithGuests, AnonAnon, FileFile, AnonFile,
	RAM, GuestFile, GuestAnon, GuestCore, GuestFree, Left, Idle, IdleAlone,
}

// Figures are the metrics of a study that weighs so, after WeightPSS.
func (m Config) Figures() (all []notebook.Metric) {
	first, several, fitted := m.Guests[0] == 1, len(m.Guests) > 1, len(m.Guests) > 2
	merged := m.KSM != ""
	for _, f := range []struct {
		notebook.Metric
		is bool
	}{
		{RSS, true}, {USS, true}, {Merged, merged},
		{Alone, first && several}, {AloneRSS, first && several}, {AloneKSM, first && several && merged},
		{Added, several}, {AddedKSM, several && merged},
		{Asymptote, fitted}, {LimitKSM, fitted && merged},
		{Tables, true}, {Kernel, true}, {Copy, true}, {Anonymous, true}, {File, true},
		{Within, true}, {WithHost, true}, {WithGuests, m.Guests[len(m.Guests)-1] > 1},
		{AnonAnon, m.Frames}, {FileFile, m.Frames}, {AnonFile, m.Frames},
		{Own, m.Frames}, {Emulator, m.Frames}, {RAM, m.Frames}, {GuestFile, m.Frames}, {GuestAnon, m.Frames},
		{GuestCore, m.Frames}, {GuestFree, m.Frames}, {Left, m.Frames}, {Idle, m.Frames}, {IdleAlone, m.Frames && first && several}, {Best, m.Frames},
	} {
		if f.is {
			all = append(all, f.Metric)
		}
	}
	return all
}
