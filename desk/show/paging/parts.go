package paging

import (
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// counted is a row's faults by kind.
type counted struct {
	show.Row
	values []show.Value
}

// parts is the table of a group's page faults by kind, with those of the paper (Table 5.1 of "characterization"); none if no faults
// were counted.
func parts(id, title string, rows []*data.Row, s *data.Summary) []show.Part {
	var lines []counted
	for _, r := range rows {
		of := faults(r)
		if of == nil || r.Treatment.AA {
			continue
		}
		add := func(name string, kinds []stats.Estimate) {
			line := counted{Row: show.Row{Name: name, Muted: !r.Representative || r.Doubtful}}
			for _, k := range kinds {
				line.values = append(line.values, show.Halved(k))
			}
			lines = append(lines, line)
		}
		name := words.Sized(s, r.Treatment)
		add(name, of.Kinds)
		if of.Whole != nil {
			add(withBringUp(name), of.Whole)
		}
	}
	if lines == nil {
		return nil
	}
	t := &show.Table{ID: id + "-faults-name", Caption: caption + title, Heads: []show.Head{{Text: guests}}}
	for i, k := range notebook.FaultKinds {
		t.Heads = append(t.Heads, show.Head{Text: faultKind(k), Span: 2})
		show.Align(lines, func(c *counted) *show.Value { return &c.values[i] })
	}
	for _, line := range lines {
		line.Cells = show.Cells(line.values...)
		t.Rows = append(t.Rows, line.Row)
	}
	for _, p := range publishedFaults {
		row := show.Row{Muted: true, Name: fromPaper(p.Name)}
		for _, k := range p.Kinds {
			row.Cells = append(row.Cells, show.Cell{Class: "n", Text: words.Number(k, 3)}, show.Cell{})
		}
		row.Cells = append(row.Cells, show.Cell{}, show.Cell{}) // faults of unknown kind
		t.Rows = append(t.Rows, row)
	}
	return []show.Part{{Table: t}}
}
