package page

import (
	"slices"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// startsPart is the table of a group's starts by moment, with those of the paper (Table 5.1 of "virtualization-overheads").
type startsPart struct {
	ID        string
	Rows      []startsRow
	Published []publishedStart
	Said      []string
}

type startsRow struct {
	Name, Moment string
	Muted        bool
	Starts       int
	Cells        []value
}

type publishedStart struct{ Name, Moment, Seconds string }

// started makes it; nil where no start was timed.
func started(id string, rows []*data.Row, s *data.Summary) *startsPart {
	t := &startsPart{ID: id}
	for _, r := range rows {
		if r.Treatment.AA {
			continue
		}
		for i, m := range r.Starts() {
			row := startsRow{Moment: m.Moment, Muted: !r.Representative || r.Doubtful, Starts: m.Starts}
			if i == 0 {
				row.Name = words.Sized(s, r.Treatment)
			}
			for _, e := range []stats.Estimate{m.Median, m.Mean, m.P95, m.P99} {
				row.Cells = append(row.Cells, valued(e.Value, max(e.Low, 0), e.High))
			}
			t.Rows = append(t.Rows, row)
		}
		if r.Starting == nil {
			continue
		}
		for _, n := range words.Saving(r) {
			if n = words.Sentence(n); !slices.Contains(t.Said, n) {
				t.Said = append(t.Said, n)
			}
		}
		for _, p := range r.Starting.Published {
			if len(t.Published) >= 2*len(r.Starting.Published) {
				break
			}
			t.Published = append(t.Published, publishedStart{p.Name, p.Moment, words.Printed(p.StartS)})
			if p.RestoreS > 0 {
				t.Published = append(t.Published, publishedStart{p.Name, notebook.MomentRestored, words.Printed(p.RestoreS)})
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	for i := range t.Rows[0].Cells {
		align(t.Rows, func(r *startsRow) *value { return &r.Cells[i] })
	}
	return t
}
