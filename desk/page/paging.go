package page

import (
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
)

// faultsPart is the table of a group's page faults by kind, with those of the paper (Table 5.1 of "characterization").
type faultsPart struct {
	ID        string
	Kinds     []string
	Rows      []faultsRow
	Published []publishedRow
}

type faultsRow struct {
	Name  string
	Muted bool
	Cells []show.Value
}

type publishedRow struct {
	Name  string
	Cells []string
}

// faulted makes it; nil where no faults were counted.
func faulted(id string, rows []*data.Row, s *data.Summary) *faultsPart {
	t := &faultsPart{ID: id}
	for _, r := range rows {
		of := r.Faults()
		if of == nil || r.Treatment.AA {
			continue
		}
		row := faultsRow{Name: words.Sized(s, r.Treatment), Muted: !r.Representative || r.Doubtful}
		for _, k := range of.Kinds {
			row.Cells = append(row.Cells, show.Halved(k))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	for i, k := range notebook.FaultKinds {
		t.Kinds = append(t.Kinds, words.FaultKind(k))
		show.Align(t.Rows, func(r *faultsRow) *show.Value { return &r.Cells[i] })
	}
	for _, p := range words.PublishedFaults {
		row := publishedRow{Name: p.Name}
		for _, k := range p.Kinds {
			row.Cells = append(row.Cells, words.Number(k, 3))
		}
		t.Published = append(t.Published, row)
	}
	return t
}
