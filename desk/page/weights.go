package page

import (
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
)

// weightsPart is what the guests of a table's rows consist of (Tables 6.2 and 6.4 of "virtualization-overheads").
type weightsPart struct {
	ID         string
	Of         []weightsOf
	Duplicates bool // some row has them
	RAM        bool // some row's guest said what its memory is to it
}

// weightsOf is a row's guest that came last.
type weightsOf struct {
	Name       string
	Muted      bool
	Total      show.Value
	Processes  []sizedPart
	Details    []sizedParts
	Duplicates []alikeRow
	RAM        []framesPart
	Said       []string
}

// framesPart is a table of a VM's memory: by what it is to its guest, or by file.
type framesPart struct {
	What string
	Rows []framesRow
}

type framesRow struct {
	Name  string
	Sizes []show.Value // the guest's, the host's, its own, and of these duplicates and idle
}

// sizedParts are parts of one kind: of pages, or the files.
type sizedParts struct {
	What  string
	Parts []sizedPart
}

type sizedPart struct {
	Name     string
	PSS, RSS show.Value
	Muted    bool
}

type alikeRow struct {
	Name  string
	Sizes []show.Value
}

// weighed makes the tables of what a group's guests consist of; nil where none was weighed.
func weighed(id string, rows []*data.Row, s *data.Summary) *weightsPart {
	t := &weightsPart{ID: id}
	for _, r := range rows {
		if r.Weights == nil || r.Weights.Last == nil || r.Treatment.AA {
			continue
		}
		last, muted := r.Weights.Last, !r.Representative || r.Doubtful
		of := weightsOf{Name: words.Sized(s, r.Treatment), Muted: muted, Total: show.Halved(last.PSS), Processes: sizedOf(last.Processes, muted)}
		for _, d := range []sizedParts{{"Kind of page", sizedOf(last.Kinds, muted)}, {"File", sizedOf(last.Files, muted)}} {
			if len(d.Parts) > 0 {
				of.Details = append(of.Details, d)
			}
		}
		for _, at := range []struct {
			*data.Duplicates
			said string // of which pages, or how they are counted
		}{{last.Duplicates, ""}, {last.Merged, ", with KSM"}, {last.ByGuest, ", by what pages are to the guest"}} {
			if at.Duplicates == nil {
				continue
			}
			t.Duplicates = true
			for _, x := range []struct {
				name string
				data.Alike
				paper notebook.Metric
			}{{"in the guest itself", at.Within, memorykind.Within}, {"with the host", at.Host, memorykind.WithHost}, {"with other guests", at.Guests, memorykind.WithGuests}} {
				row := alikeRow{x.name + at.said, []show.Value{show.Halved(x.AnonAnon), show.Halved(x.FileFile), show.Halved(x.AnonFile), show.Halved(x.Sum)}}
				if paper := r.Memory.Paper(r.Treatment, x.paper); len(paper) == len(row.Sizes) && at.said == "" {
					row.Name += ", and in the paper"
					for i := range row.Sizes {
						row.Sizes[i].Interval += " (" + words.Printed(paper[i]) + ")"
					}
				}
				of.Duplicates = append(of.Duplicates, row)
			}
			of.Duplicates = append(of.Duplicates, total(r, at.Total, at.said))
		}
		if a := r.Weights.Alone; a != nil {
			of.RAM = framesParts(a)
			t.RAM = t.RAM || len(of.RAM) > 0
			for _, n := range words.Inside(a) {
				of.Said = append(of.Said, words.Sentence(n))
			}
		}
		for _, n := range words.Contained(r.Weights) {
			of.Said = append(of.Said, words.Sentence(n))
		}
		if n := words.Merging(r.Weights); n != "" {
			of.Said = append(of.Said, words.Sentence(n))
		}
		t.Of = append(t.Of, of)
	}
	if len(t.Of) == 0 {
		return nil
	}
	return t
}

// total is the last line of Table 6.4. The paper's has three of its numbers, each a metric of its own.
func total(r *data.Row, all data.Alike, said string) alikeRow {
	row := alikeRow{"in all" + said, []show.Value{show.Halved(all.AnonAnon), show.Halved(all.FileFile), show.Halved(all.AnonFile), show.Halved(all.Sum)}}
	if said != "" {
		return row
	}
	sum, known := 0.0, 0
	for i, m := range []notebook.Metric{memorykind.AnonAnon, memorykind.FileFile, memorykind.AnonFile} {
		if paper := r.Memory.Paper(r.Treatment, m); len(paper) == 1 {
			row.Sizes[i].Interval += " (" + words.Printed(paper[0]) + ")"
			sum, known = sum+paper[0], known+1
		}
	}
	if known == 3 {
		row.Name += ", and in the paper"
		row.Sizes[3].Interval += " (" + words.Printed(sum) + ")"
	}
	return row
}

// framesParts are the tables of what a VM's memory is to its guest; none where it did not say.
func framesParts(a *data.Alone) (all []framesPart) {
	r := a.RAM
	if r == nil {
		return nil
	}
	row := func(name string, f data.Frames) framesRow {
		return framesRow{name, []show.Value{show.Halved(f.Guest), show.Halved(f.RSS), show.Halved(f.Own), show.Halved(f.Alike), show.Halved(f.Idle)}}
	}
	kinds := framesPart{What: "What the RAM is to the guest"}
	for _, k := range r.Kinds {
		kinds.Rows = append(kinds.Rows, row(words.Plain(k.Name), k))
	}
	kinds.Rows = append(kinds.Rows, row("none of it: the emulator’s", r.Emulator))
	files := framesPart{What: "File in the guest’s page cache"}
	for _, f := range r.Files {
		files.Rows = append(files.Rows, row(words.Plain(f.Name), f))
	}
	for _, f := range []struct {
		name string
		data.Frames
	}{{"other files", r.Others}, {"no file that was found", r.Unnamed}} {
		if f.Guest.Value > 0 {
			files.Rows = append(files.Rows, row(f.name, f.Frames))
		}
	}
	return []framesPart{kinds, files}
}

func sizedOf(parts []data.MemoryPart, muted bool) (all []sizedPart) {
	for _, p := range parts {
		all = append(all, sizedPart{words.MemoryPart(p), show.Halved(p.PSS), show.Halved(p.RSS), muted})
	}
	show.Align(all, func(p *sizedPart) *show.Value { return &p.PSS })
	show.Align(all, func(p *sizedPart) *show.Value { return &p.RSS })
	return all
}
