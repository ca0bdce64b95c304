// Package paging holds the configuration and the records of a study of the kind "paging": the page-table entries and the page
// faults of guests of one image (paper "characterization", section 5.2).
package paging

import (
	"strings"

	"tare/notebook"
)

// Name is the name of the kind.
const Name = "paging"

// Seen is what a trial recorded.
type Seen struct {
	PageTables []notebook.PageTables `json:"page_tables,omitempty"` // in the order in which they were read
	PageFaults *notebook.PageFaults  `json:"page_faults,omitempty"` // nil: none were counted
	Later      *notebook.PageFaults  `json:"later,omitempty"`       // after Config.LaterS under load; nil: none were counted
	BringUp    *notebook.PageFaults  `json:"bring_up,omitempty"`    // of the processes that made the guests, all but the first; nil: none were counted
}

// Config is how a study reads the page tables and counts the page faults of guests of one image (paper "characterization", section
// 5.2). The guests work at the same time on the same cores.
type Config struct {
	Guests   int     `json:"guests"`
	Tables   bool    `json:"tables,omitempty"`   // whether page tables are read
	InitialS float64 `json:"initial_s"`          // seconds until the initial state of the tables: from when the last guest's work has begun, or its service answers
	SteadyS  float64 `json:"steady_s,omitempty"` // for work that does not end by itself: seconds under load until the tables are in the steady state; 0: that state is not read
	FaultsS  float64 `json:"faults_s,omitempty"` // seconds under load in which faults are counted, or for work that ends by itself from its beginning to its end; 0: faults are not counted
	LaterS   float64 `json:"later_s,omitempty"`  // for work that does not end by itself: seconds under load, after FaultsS, until faults are counted for FaultsS once more; 0: they are not
}

// States of page tables.
const (
	Initial = "initial"
	Steady  = "steady"
)

// Metric is the metric of a state of page tables: "entries_groupable_steady".
func Metric(what, state string) notebook.Metric {
	return notebook.Metric{Name: what + "_" + state, Unit: "%"}
}

// What is read of page tables in a state. The first is a number per guest; all others are shares of the entries.
const (
	Entries         = "entries"
	Exclusive       = "entries_exclusive"
	Groupable       = "entries_groupable"
	Within          = "entries_within"
	Elsewhere       = "entries_elsewhere"
	Active          = "entries_active"
	ActiveGroupable = "entries_active_groupable"
	Reused          = "entries_reused" // in each half of the time before the state
	ReusedGroupable = "entries_reused_groupable"
	Accessed        = "memory_accessed"
	Huge            = "entries_active_huge"    // of the active ones
	GroupableHuge   = "entries_groupable_huge" // of the groupable ones
	Large           = "entries_large"
	Code            = "entries_code"
	Data            = "entries_data"
	ActiveCode      = "entries_active_code"      // of the active ones
	ActiveData      = "entries_active_data"      // of the active ones
	Engine          = "entries_engine"           // of the engine's processes for a guest, in addition to Entries; a number per guest
	EngineGroupable = "entries_engine_groupable" // of these
)

// Metrics of page faults.
var (
	FaultsPerCPU   = notebook.Metric{Name: "page_faults_per_cpu_second", Unit: "1/s"}
	FaultsRepeated = notebook.Metric{Name: "page_faults_repeated", Unit: "%"} // of all
	FaultsCommon   = notebook.Metric{Name: "page_faults_common", Unit: "%"}   // of all
	FaultsMajor    = notebook.Metric{Name: "page_faults_major", Unit: "%"}    // of all
	FaultsPerGuest = notebook.Metric{Name: "page_faults_per_guest", Unit: ""}
	FaultsCPU      = notebook.Metric{Name: "guest_cpu", Unit: "s"} // during which the faults were counted
	// FaultsPerInstructions is known only where the CPU counts instructions.
	FaultsPerInstructions = notebook.Metric{Name: "page_faults_per_million_instructions", Unit: ""}
	FaultsRepeatable      = notebook.Metric{Name: "page_faults_file_repeated", Unit: "%"} // of faults that are neither anonymous nor make a private copy
)

// FaultsBringUp is the number of page faults of the engine's processes that make a guest, such as a runtime.
var FaultsBringUp = notebook.Metric{Name: "page_faults_bring_up", Unit: ""}

// Whole is a metric of page faults for those of work that ends by itself "from bring-up to finish" (section 5.2.2): of FaultsBringUp and of the
// work's own together.
func Whole(m notebook.Metric) notebook.Metric { return of("whole", m) }

// Later is a metric of page faults for those that are counted once more, after Config.LaterS.
func Later(m notebook.Metric) notebook.Metric { return of("later", m) }

// of is a metric of page faults for a part of them.
func of(part string, m notebook.Metric) notebook.Metric {
	const faults = "page_faults_"
	m.Name = faults + part + "_" + strings.TrimPrefix(m.Name, faults)
	return m
}

// Wholly and Lately are the metrics that Whole and Later have, of all page faults.
var (
	Wholly = append([]notebook.Metric{FaultsRepeated}, shares()...)
	Lately = append([]notebook.Metric{FaultsPerCPU, FaultsPerInstructions, FaultsRepeated, FaultsCommon}, shares()...)
)

// shares are the metrics of all kinds of page faults.
func shares() (all []notebook.Metric) {
	for _, k := range notebook.FaultKinds {
		all = append(all, FaultShare(k))
	}
	return all
}

// FaultShare is the metric of a kind of page faults: its share of the faults whose kind is known. For unknown faults it is the
// share of all.
func FaultShare(kind string) notebook.Metric {
	return notebook.Metric{Name: "page_faults_" + strings.ReplaceAll(kind, "-", "_"), Unit: "%"}
}

// states are the states in which page tables are read. ends: the workload ends by itself.
func (p Config) states(ends bool) []string {
	if p.SteadyS > 0 && !ends {
		return []string{Initial, Steady}
	}
	return []string{Initial}
}

// Metrics returns the metric of a workload's trials and the secondary metrics. ends: the workload ends by itself.
func (p Config) Metrics(ends bool) (first notebook.Metric, also []notebook.Metric) {
	if p.Tables {
		states := p.states(ends)
		for _, state := range states {
			also = append(also, notebook.Metric{Name: Entries + "_" + state, Unit: ""}, notebook.Metric{Name: Engine + "_" + state, Unit: ""}, Metric(EngineGroupable, state))
			for _, what := range []string{
				Groupable, Within, Elsewhere, Active, ActiveGroupable, Reused, ReusedGroupable, Accessed, Huge, GroupableHuge, Large, Code, Data, ActiveCode, ActiveData,
			} {
				also = append(also, Metric(what, state))
			}
		}
		first = Metric(Exclusive, states[len(states)-1])
	}
	if p.FaultsS > 0 {
		also = append(also, FaultsPerCPU, FaultsPerInstructions, FaultsPerGuest, FaultsCPU, FaultsRepeated, FaultsCommon, FaultsRepeatable)
		also = append(append(also, shares()...), FaultsMajor)
		if p.LaterS > 0 && !ends {
			for _, m := range Lately {
				also = append(also, Later(m))
			}
		}
		if ends {
			also = append(also, FaultsBringUp)
			for _, m := range Wholly {
				also = append(also, Whole(m))
			}
		}
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

// Figures are the values of all these metrics, as far as they are known.
func (p Config) Figures(seen Seen) map[string]float64 {
	f := map[string]float64{}
	whole(f, seen.BringUp, seen.PageFaults)
	if seen.Later != nil {
		of := p.Figures(Seen{PageFaults: seen.Later})
		for _, m := range Lately {
			if v, known := of[m.Name]; known {
				f[Later(m).Name] = v
			}
		}
	}
	tables, faults := seen.PageTables, seen.PageFaults
	share := func(m notebook.Metric, part, of int64) {
		if of > 0 {
			f[m.Name] = 100 * float64(part) / float64(of)
		}
	}
	for _, t := range tables {
		if t.Guests > 0 {
			f[Entries+"_"+t.State] = float64(t.Entries) / float64(t.Guests)
		}
		for what, part := range map[string]int64{
			Exclusive: t.Entries - t.Groupable, Groupable: t.Groupable, Within: t.Within, Elsewhere: t.Elsewhere, Active: t.Active,
			ActiveGroupable: t.ActiveGroupable, Large: t.Large,
		} {
			share(Metric(what, t.State), part, t.Entries)
		}
		if t.Code != (notebook.TablePart{}) || t.Own != (notebook.TablePart{}) { // older records do not have them
			share(Metric(Code, t.State), t.Code.Entries, t.Entries)
			share(Metric(Data, t.State), t.Data.Entries, t.Entries)
			share(Metric(ActiveCode, t.State), t.Code.Active, t.Active)
			share(Metric(ActiveData, t.State), t.Data.Active, t.Active)
		}
		if t.Engine.Entries > 0 && t.Guests > 0 {
			f[Engine+"_"+t.State] = float64(t.Engine.Entries) / float64(t.Guests)
			share(Metric(EngineGroupable, t.State), t.Engine.Groupable, t.Engine.Entries)
		}
		if t.HalvesS > 0 {
			share(Metric(Reused, t.State), t.Reused, t.Entries)
			share(Metric(ReusedGroupable, t.State), t.ReusedGroupable, t.Entries)
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
	if faults.Common > 0 || faults.Repeats() == 0 { // older records have no count of them
		share(FaultsCommon, faults.Common, all)
	}
	share(FaultsRepeatable, faults.Repeated["read"]+faults.Repeated["shared"], faults.Kinds["read"]+faults.Kinds["shared"])
	share(FaultsMajor, faults.Major, all)
	if faults.CPUS > 0 {
		f[FaultsPerCPU.Name] = float64(all) / faults.CPUS
	}
	if faults.Instructions > 0 {
		f[FaultsPerInstructions.Name] = 1e6 * float64(all) / faults.Instructions
	}
	if faults.Guests > 0 {
		f[FaultsPerGuest.Name] = float64(all) / float64(faults.Guests)
		f[FaultsCPU.Name] = faults.CPUS / float64(faults.Guests)
	}
	return f
}

// whole adds the figures of the faults from bring-up to finish. Each part is of its own number of guests.
func whole(f map[string]float64, parts ...*notebook.PageFaults) {
	all, known, repeated := 0.0, 0.0, 0.0
	kinds := map[string]float64{}
	for _, p := range parts {
		if p == nil || p.Guests == 0 {
			return
		}
		each := func(n int64) float64 { return float64(n) / float64(p.Guests) }
		all, repeated = all+each(p.Faults()), repeated+each(p.Repeats())
		if p == parts[0] {
			// The first of these guests has no other to repeat. Of all guests, one more than these, all but one can repeat another.
			n := float64(p.Guests)
			repeated = float64(p.Repeats()) / (n - 1) * n / (n + 1)
		}
		known += each(p.Faults() - p.Kinds["unknown"])
		for k, n := range p.Kinds {
			kinds[k] += each(n)
		}
	}
	f[FaultsBringUp.Name] = float64(parts[0].Faults()) / float64(parts[0].Guests)
	if all > 0 && parts[0].Guests > 1 {
		f[Whole(FaultsRepeated).Name] = 100 * repeated / all
	}
	if all > 0 {
		f[Whole(FaultShare("unknown")).Name] = 100 * kinds["unknown"] / all
	}
	for _, k := range notebook.FaultKinds {
		if k != "unknown" && known > 0 {
			f[Whole(FaultShare(k)).Name] = 100 * kinds[k] / known
		}
	}
}
