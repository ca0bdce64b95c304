package memory

import (
	"strings"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
)

// guest is the latest guest of a row, as the tables show it.
type guest struct {
	name  string
	muted bool
	row   *data.Row
	*LastGuest
	weights *Weights
}

// tables are the tables of the devices that a group's VMs lack, and of the parts of its guests (Tables 6.2, 6.4 and 6.5 of
// "virtualization-overheads").
func tables(id, title string, rows []*data.Row, s *data.Summary) []show.Part {
	all := unusedParts(id, title, rows, s)
	var guests []guest
	for _, r := range rows {
		if w := weightsOf(r); w != nil && w.Last != nil && !r.Treatment.AA {
			guests = append(guests, guest{words.Sized(s, r.Treatment), !r.Representative || r.Doubtful, r, w.Last, w})
		}
	}
	if guests == nil {
		return all
	}
	all = append(all, consists(id, title, guests)...)
	all = append(all, twice(id, title, guests)...)
	all = append(all, ofRAM(guests)...)
	return append(all, details(guests))
}

// consists is the table of each guest's processes, and the notes on the guest.
func consists(id, title string, guests []guest) []show.Part {
	t := &show.Table{ID: id + "-guest-name", Caption: guestCaption + title, Heads: guestHeads}
	said := &show.List{}
	for _, g := range guests {
		total := show.Halved(g.PSS)
		t.Rows = append(append(t.Rows, show.Row{Group: true, Name: g.name}), sized(g.Processes, g.muted)...)
		t.Rows = append(t.Rows, show.Row{Strong: true, Muted: g.muted, Name: allOfIt, Cells: []show.Cell{{Class: "n", Strong: true, Text: total.Value}, {Class: "i", Text: total.Interval}, {}, {}}})
		if more := g.said(); len(more) > 0 {
			said.Items = append(said.Items, g.name+". "+strings.Join(more, " "))
		}
	}
	return []show.Part{{Table: t}, {Note: &show.Note{HTML: underGuest}}, {List: said}}
}

// said are the sentences on a guest.
func (g guest) said() (all []string) {
	if a := g.weights.Alone; a != nil {
		all = inside(a)
	}
	all = append(all, contained(g.weights)...)
	if n := merging(g.weights); n != "" {
		all = append(all, n)
	}
	for i, n := range all {
		all[i] = words.Sentence(n)
	}
	return all
}

// twice is the table of each guest's pages whose content another page has too; none if contents were not compared.
func twice(id, title string, guests []guest) []show.Part {
	t := &show.Table{ID: id + "-guest-duplicates", Caption: dupesCaption + title, Heads: dupesHeads}
	for _, g := range guests {
		lines := g.duplicates()
		if lines == nil {
			continue
		}
		t.Rows = append(append(t.Rows, show.Row{Group: true, Name: g.name}), lines...)
	}
	if t.Rows == nil {
		return nil
	}
	return []show.Part{{Table: t}, {Note: &show.Note{HTML: underDupes}}}
}

// duplicates are a guest's lines of Table 6.4.
func (g guest) duplicates() (lines []show.Row) {
	for _, at := range []struct {
		*Duplicates
		said string // which pages, or how they are counted
	}{{g.LastGuest.Duplicates, ""}, {g.Merged, mergedPages}, {g.ByGuest, byGuest}} {
		if at.Duplicates == nil {
			continue
		}
		for _, x := range []struct {
			name string
			Alike
			paper notebook.Metric
		}{{inItself, at.Within, kind.Within}, {withHost, at.Host, kind.WithHost}, {withOthers, at.Guests, kind.WithGuests}} {
			name, sizes := x.name+at.said, x.Alike.values()
			if paper := weighed(g.row).Paper(g.row.Treatment, x.paper); len(paper) == len(sizes) && at.said == "" {
				name += andInThePaper
				for i := range sizes {
					sizes[i].Interval += " (" + words.Printed(paper[i]) + ")"
				}
			}
			lines = append(lines, show.Row{Muted: g.muted, Name: name, Cells: show.Cells(sizes...)})
		}
		lines = append(lines, g.total(at.Total, at.said))
	}
	return lines
}

func (a Alike) values() []show.Value {
	return []show.Value{show.Halved(a.AnonAnon), show.Halved(a.FileFile), show.Halved(a.AnonFile), show.Halved(a.Sum)}
}

// total is the last line of Table 6.4. The paper has three of its numbers, each as a metric of its own.
func (g guest) total(all Alike, said string) show.Row {
	name, sizes := inAll+said, all.values()
	sum, known := 0.0, 0
	for i, m := range []notebook.Metric{kind.AnonAnon, kind.FileFile, kind.AnonFile} {
		if paper := weighed(g.row).Paper(g.row.Treatment, m); len(paper) == 1 && said == "" {
			sizes[i].Interval += " (" + words.Printed(paper[0]) + ")"
			sum, known = sum+paper[0], known+1
		}
	}
	if known == 3 {
		name += andInThePaper
		sizes[3].Interval += " (" + words.Printed(sum) + ")"
	}
	return show.Row{Muted: g.muted, Name: name, Cells: show.Cells(sizes...)}
}

// ofRAM are the tables of how guests use the memory of VMs; none if no VM could tell.
func ofRAM(guests []guest) (all []show.Part) {
	for _, g := range guests {
		if g.weights.Alone == nil || g.weights.Alone.RAM == nil {
			continue
		}
		r := g.weights.Alone.RAM
		row := func(name string, f Frames) show.Row {
			return show.Row{Muted: g.muted, Name: name, Cells: show.Cells(show.Halved(f.Guest), show.Halved(f.RSS), show.Halved(f.Own), show.Halved(f.Alike), show.Halved(f.Idle))}
		}
		table := func(what string) *show.Table {
			return &show.Table{Label: what + ", " + g.name, Caption: what + ": " + g.name, Heads: ramHeads(what)}
		}
		kinds, files := table(ramWhat), table(fileWhat)
		for _, k := range r.Kinds {
			kinds.Rows = append(kinds.Rows, row(words.Plain(k.Name), k))
		}
		kinds.Rows = append(kinds.Rows, row(emulators, r.Emulator))
		for _, f := range r.Files {
			files.Rows = append(files.Rows, row(words.Plain(f.Name), f))
		}
		for _, f := range []struct {
			name string
			Frames
		}{{otherFiles, r.Others}, {noFile, r.Unnamed}} {
			if f.Guest.Value > 0 {
				files.Rows = append(files.Rows, row(f.name, f.Frames))
			}
		}
		all = append(all, show.Part{Table: kinds}, show.Part{Table: files})
	}
	if all != nil {
		all = append(all, show.Part{Note: &show.Note{HTML: underRAM}})
	}
	return all
}

// details are the kinds of pages of each guest and its files, collapsed.
func details(guests []guest) show.Part {
	fold := &show.Fold{Heading: detailsHeading}
	for _, g := range guests {
		for _, d := range []struct {
			what string
			of   []MemoryPart
		}{{kindOfPage, g.Kinds}, {file, g.Files}} {
			if len(d.of) > 0 {
				heads := append([]show.Head{{Text: d.what + ": " + g.name}}, sizeHeads...)
				fold.Parts = append(fold.Parts, show.Part{Table: &show.Table{Label: d.what + ", " + g.name, Heads: heads, Rows: sized(d.of, g.muted)}})
			}
		}
	}
	return show.Part{Fold: fold}
}

// sized are the rows of the parts of a guest.
func sized(of []MemoryPart, muted bool) (rows []show.Row) {
	var values [][2]show.Value
	for _, p := range of {
		values = append(values, [2]show.Value{show.Halved(p.PSS), show.Halved(p.RSS)})
	}
	for i := range 2 {
		show.Align(values, func(v *[2]show.Value) *show.Value { return &v[i] })
	}
	for i, p := range of {
		rows = append(rows, show.Row{Muted: muted, Name: partName(p), Cells: show.Cells(values[i][:]...)})
	}
	return rows
}
