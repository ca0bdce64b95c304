package data

import (
	"tare/notebook"
	pagingkind "tare/notebook/kinds/paging"
	"tare/stats"
)

// PageState is what the guests of a row have in their page tables in a state (Figures 5.5 to 5.8 of "characterization"). All are shares in percent of the
// entries, but Entries.
type PageState struct {
	State           string // pagingkind.Initial or pagingkind.Steady
	Entries         stats.Estimate
	Groupable       stats.Estimate
	ActiveGroupable stats.Estimate
	Active          stats.Estimate
	Elsewhere       stats.Estimate // the same frame at another address
}

// PageStates are those in which a row's page tables were read.
func (r *Row) PageStates() (all []PageState) {
	for _, state := range []string{pagingkind.Initial, pagingkind.Steady} {
		of := func(what string) stats.Estimate { return r.Known(pagingkind.Metric(what, state).Name) }
		p := PageState{
			State: state, Entries: of(pagingkind.Entries), Groupable: of(pagingkind.Groupable), ActiveGroupable: of(pagingkind.ActiveGroupable),
			Active: of(pagingkind.Active), Elsewhere: of(pagingkind.Elsewhere),
		}
		if stats.Finite(p.Groupable.Value) && stats.Finite(p.ActiveGroupable.Value) {
			all = append(all, p)
		}
	}
	return all
}

// FaultShares are the page faults of a row's guests (Figures 5.9 to 5.11, Table 5.1), in percent; none where no fault was counted.
type FaultShares struct {
	Kinds    []stats.Estimate // as notebook.FaultKinds are
	Repeated stats.Estimate
	PerCPU   stats.Estimate // a CPU second
}

// Faults are those of the row; nil where none was counted.
func (r *Row) Faults() *FaultShares {
	f := &FaultShares{Repeated: r.Known(pagingkind.FaultsRepeated.Name), PerCPU: r.Known(pagingkind.FaultsPerCPU.Name)}
	for _, k := range notebook.FaultKinds {
		f.Kinds = append(f.Kinds, r.Known(pagingkind.FaultShare(k).Name))
	}
	if !stats.Finite(f.Repeated.Value) {
		return nil
	}
	return f
}
