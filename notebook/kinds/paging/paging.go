// Package paging is what a study of the kind "paging" configures and records: what guests of one image have in their page tables, and which page faults they take (paper "characterization", section 5.2).
package paging

import "tare/notebook"

// Name is the kind's.
const Name = "paging"

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
	PageTables []notebook.PageTables `json:"page_tables,omitempty"` // in the order in which they were read
	PageFaults *notebook.PageFaults  `json:"page_faults,omitempty"` // nil: none were counted
}

// SeenBy is what the trial recorded; nothing where it recorded something else.
func SeenBy(t *notebook.Trial) Seen {
	s, err := notebook.SeenOf[Seen](t)
	if err != nil {
		return Seen{}
	}
	return s
}

// Config is how a study reads what guests of one image have in their page tables, and which page faults they take (paper "characterization",
// section 5.2): so many of a treatment are made, one beside the other on the same cores, each at its work.
type Config struct {
	Guests   int     `json:"guests"`
	Tables   bool    `json:"tables,omitempty"`   // read their page tables
	InitialS float64 `json:"initial_s"`          // seconds after the last has begun, or its service answers, in which their tables are in the initial state
	SteadyS  float64 `json:"steady_s,omitempty"` // of what does not end by itself: seconds under its load until they are in the steady one; 0: they are not read then
	FaultsS  float64 `json:"faults_s,omitempty"` // seconds under load in which faults are counted, of what ends by itself from its beginning to its end; 0: they are not
}

// States of page tables.
const (
	Initial = "initial"
	Steady  = "steady"
)

// Metric names the metric of a state of page tables: "groupable entries, steady".
func Metric(what, state string) notebook.Metric {
	return notebook.Metric{Name: what + ", " + state, Unit: "%"}
}

// What is read of page tables in a state. All are shares of the entries but the first, which is of a guest.
const (
	Entries         = "page-table entries"
	Exclusive       = "exclusive entries"
	Groupable       = "groupable entries"
	Within          = "entries shared within guests"
	Elsewhere       = "same frame, other address"
	Active          = "active entries"
	ActiveGroupable = "active and groupable entries"
	Accessed        = "accessed memory"
	Huge            = "active entries of huge pages"    // of the active ones
	GroupableHuge   = "groupable entries of huge pages" // of the groupable ones
	Large           = "entries of large folios"
)

// Metrics of page faults.
var (
	FaultsPerCPU     = notebook.Metric{Name: "page faults per CPU second", Unit: "1/s"}
	FaultsRepeated   = notebook.Metric{Name: "repeated page faults", Unit: "%"} // of all
	FaultsMajor      = notebook.Metric{Name: "major page faults", Unit: "%"}    // of all
	FaultsPerGuest   = notebook.Metric{Name: "page faults of a guest", Unit: ""}
	FaultsCPU        = notebook.Metric{Name: "CPU time of a guest", Unit: "s"}  // in which they came
	FaultsRepeatable = notebook.Metric{Name: "repeated file faults", Unit: "%"} // of those that are neither anonymous nor make a private copy
)

// FaultShare is the metric of a kind of page faults: its share of those whose kind could be told, and for the unknown of all.
func FaultShare(kind string) notebook.Metric {
	return notebook.Metric{Name: kind + " faults", Unit: "%"}
}

// states are those in which the page tables of a workload that ends by itself, or not, are read.
func (p Config) states(ends bool) []string {
	if p.SteadyS > 0 && !ends {
		return []string{Initial, Steady}
	}
	return []string{Initial}
}

// Metrics are those of a workload that ends by itself, or not: the metric of its trials, and the secondary ones.
func (p Config) Metrics(ends bool) (first notebook.Metric, also []notebook.Metric) {
	if p.Tables {
		states := p.states(ends)
		for _, state := range states {
			also = append(also, notebook.Metric{Name: Entries + ", " + state, Unit: ""})
			for _, what := range []string{
				Groupable, Within, Elsewhere, Active, ActiveGroupable, Accessed, Huge, GroupableHuge, Large,
			} {
				also = append(also, Metric(what, state))
			}
		}
		first = Metric(Exclusive, states[len(states)-1])
	}
	if p.FaultsS > 0 {
		also = append(also, FaultsPerCPU, FaultsPerGuest, FaultsCPU, FaultsRepeated, FaultsRepeatable)
		for _, k := range notebook.FaultKinds {
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
func (p Config) Figures(tables []notebook.PageTables, faults *notebook.PageFaults) map[string]float64 {
	f := map[string]float64{}
	share := func(m notebook.Metric, part, of int64) {
		if of > 0 {
			f[m.Name] = 100 * float64(part) / float64(of)
		}
	}
	for _, t := range tables {
		if t.Guests > 0 {
			f[Entries+", "+t.State] = float64(t.Entries) / float64(t.Guests)
		}
		for what, part := range map[string]int64{
			Exclusive: t.Entries - t.Groupable, Groupable: t.Groupable, Within: t.Within, Elsewhere: t.Elsewhere, Active: t.Active,
			ActiveGroupable: t.ActiveGroupable, Large: t.Large,
		} {
			share(Metric(what, t.State), part, t.Entries)
		}
		share(Metric(Huge, t.State), t.ActiveHuge, t.Active)
		share(Metric(GroupableHuge, t.State), t.GroupableHuge, t.Groupable)
		share(Metric(Accessed, t.State), t.Accessed, t.Resident)
	}
	if faults == nil {
		return f
	}
	all, unknown := faults.Faults(), faults.Kinds["unknown"]
	for _, k := range notebook.FaultKinds {
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
