package memory

import (
	"math"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
)

// unusedRow is how much less a VM takes than the VM with all devices.
type unusedRow struct {
	of           unusedDevices
	alone, added show.Value
}

// unusedParts are the table of how much less a group's VMs take without some of their devices, next to the paper's values (Table
// 6.5 of "virtualization-overheads"); none if no VM lacks devices that another VM has.
func unusedParts(id, title string, rows []*data.Row, s *data.Summary) []show.Part {
	var lines []unusedRow
	merged := false
	for _, u := range unusedOf(s, rows) {
		merged = weighed(u.Row).KSM != ""
		lines = append(lines, unusedRow{u, show.Halved(u.Alone), show.Halved(u.Added)})
	}
	if lines == nil {
		return nil
	}
	show.Align(lines, func(r *unusedRow) *show.Value { return &r.alone })
	show.Align(lines, func(r *unusedRow) *show.Value { return &r.added })
	t := &show.Table{ID: id + "-devices-name", Caption: unusedCaption + title, Heads: unusedHeads}
	for _, l := range lines {
		row := show.Row{Name: lacks(l.of), Muted: !l.of.Row.Representative || l.of.Row.Doubtful}
		row.Cells = append(show.Cells(l.alone), paperCell(l.of.PublishedAlone))
		row.Cells = append(append(row.Cells, show.Cells(l.added)...), paperCell(l.of.PublishedAdded))
		t.Rows = append(t.Rows, row)
	}
	return []show.Part{{Table: t}, {Note: &show.Note{HTML: underUnused(merged)}}}
}

// paperCell is a number of a paper as printed there.
func paperCell(v float64) show.Cell {
	if math.IsNaN(v) {
		return show.Cell{Class: "n", Text: "–"}
	}
	return show.Cell{Class: "n", Text: words.Printed(v)}
}
