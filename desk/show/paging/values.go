package paging

import (
	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/paging"
	"tare/stats"
)

// pageState is what the page tables of a row's guests hold in a state (Figures 5.5 to 5.8 of "characterization"). All but Entries
// are shares of the entries, in percent.
type pageState struct {
	State           string // kind.Initial or kind.Steady
	Entries         stats.Estimate
	Groupable       stats.Estimate
	ActiveGroupable stats.Estimate
	Active          stats.Estimate
	Elsewhere       stats.Estimate // the same frame at another address
}

// pageStates are the states in which a row's page tables were read.
func pageStates(r *data.Row) (all []pageState) {
	for _, state := range []string{kind.Initial, kind.Steady} {
		of := func(what string) stats.Estimate { return r.Known(kind.Metric(what, state).Name) }
		p := pageState{
			State: state, Entries: of(kind.Entries), Groupable: of(kind.Groupable), ActiveGroupable: of(kind.ActiveGroupable),
			Active: of(kind.Active), Elsewhere: of(kind.Elsewhere),
		}
		if stats.Finite(p.Groupable.Value) && stats.Finite(p.ActiveGroupable.Value) {
			all = append(all, p)
		}
	}
	return all
}

// faultShares are the page faults of a row's guests, in percent (Figures 5.9 to 5.11, Table 5.1); never without counted faults.
type faultShares struct {
	Kinds    []stats.Estimate // in the order of notebook.FaultKinds
	Whole    []stats.Estimate // the same from bring-up to finish; nil: that is not known
	Repeated stats.Estimate
	PerCPU   stats.Estimate // page faults per CPU second
}

// faults are the page faults of the row; nil if none was counted.
func faults(r *data.Row) *faultShares {
	f := &faultShares{Repeated: r.Known(kind.FaultsRepeated.Name), PerCPU: r.Known(kind.FaultsPerCPU.Name)}
	for _, k := range notebook.FaultKinds {
		f.Kinds = append(f.Kinds, r.Known(kind.FaultShare(k).Name))
	}
	if !stats.Finite(f.Repeated.Value) {
		return nil
	}
	if stats.Finite(r.Known(kind.FaultsBringUp.Name).Value) {
		for _, k := range notebook.FaultKinds {
			f.Whole = append(f.Whole, r.Known(kind.Whole(kind.FaultShare(k)).Name))
		}
	}
	return f
}
