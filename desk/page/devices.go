package page

import (
	"math"
	"strconv"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
)

// unusedTable is what a group's VMs take less without some of their devices, beside what the paper has (Table 6.5 of
// "virtualization-overheads").
type unusedTable struct {
	ID     string
	Merged bool // pages are merged by KSM
	Rows   []unusedRow
}

type unusedRow struct {
	Without                       string
	Alone, Added                  show.Value
	PublishedAlone, PublishedMore string
	Muted                         bool
}

// unused makes the table; nil where no VM lacks devices that another one has.
func unused(id string, rows []*data.Row, s *data.Summary) *unusedTable {
	t := &unusedTable{ID: id}
	for _, u := range s.UnusedDevices(rows) {
		t.Merged = u.Row.Memory.KSM != ""
		t.Rows = append(t.Rows, unusedRow{
			words.Unused(u), show.Halved(u.Alone), show.Halved(u.Added), published(u.PublishedAlone), published(u.PublishedAdded),
			!u.Row.Representative || u.Row.Doubtful,
		})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	show.Align(t.Rows, func(r *unusedRow) *show.Value { return &r.Alone })
	show.Align(t.Rows, func(r *unusedRow) *show.Value { return &r.Added })
	return t
}

// published writes a number of a paper as it is printed there.
func published(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
