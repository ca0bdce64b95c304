package page

import (
	"math"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// weightsPart is what the guests of a table's rows consist of (Tables 6.2 and 6.4 of "virtualization-overheads").
type weightsPart struct {
	ID         string
	Of         []weightsOf
	Duplicates bool // some row has them
}

// weightsOf is a row's guest that came last.
type weightsOf struct {
	Name       string
	Muted      bool
	Total      value
	Processes  []sizedPart
	Details    []sizedParts
	Duplicates []alikeRow
	Said       []string
}

// sizedParts are parts of one kind: of pages, or the files.
type sizedParts struct {
	What  string
	Parts []sizedPart
}

type sizedPart struct {
	Name     string
	PSS, RSS value
	Muted    bool
}

type alikeRow struct {
	Name  string
	Sizes []value
}

// weighed makes the tables of what a group's guests consist of; nil where none was weighed.
func weighed(id string, rows []*data.Row, s *data.Summary) *weightsPart {
	t := &weightsPart{ID: id}
	for _, r := range rows {
		if r.Weights == nil || r.Weights.Last == nil || r.Treatment.AA {
			continue
		}
		last, muted := r.Weights.Last, !r.Representative || r.Doubtful
		of := weightsOf{Name: words.Sized(s, r.Treatment), Muted: muted, Total: halved(last.PSS), Processes: sizedOf(last.Processes, muted)}
		for _, d := range []sizedParts{{"Kind of page", sizedOf(last.Kinds, muted)}, {"File", sizedOf(last.Files, muted)}} {
			if len(d.Parts) > 0 {
				of.Details = append(of.Details, d)
			}
		}
		if d := last.Duplicates; d != nil {
			t.Duplicates = true
			for _, x := range []struct {
				name string
				data.Alike
			}{{"in the guest itself", d.Within}, {"with the host", d.Host}, {"with other guests", d.Guests}} {
				of.Duplicates = append(of.Duplicates, alikeRow{x.name, []value{halved(x.AnonAnon), halved(x.FileFile), halved(x.AnonFile), halved(x.Sum)}})
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

func sizedOf(parts []data.MemoryPart, muted bool) (all []sizedPart) {
	for _, p := range parts {
		all = append(all, sizedPart{words.MemoryPart(p), halved(p.PSS), halved(p.RSS), muted})
	}
	align(all, func(p *sizedPart) *value { return &p.PSS })
	align(all, func(p *sizedPart) *value { return &p.RSS })
	return all
}

// halved writes a size with half of its interval.
func halved(e stats.Estimate) (v value) {
	var half string
	if v.Value, half = words.Half(e.Value, e.Low, e.High, 3); half != "" {
		v.Interval = "± " + half
	} else if !math.IsNaN(e.Value) {
		v.Interval = "no interval"
	}
	return v
}
