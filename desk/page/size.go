package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/words"
)

// sizePart is what the model says: the platform's own overhead, and the one of being small compared with the host.
type sizePart struct {
	Tolerance string
	Works     []sizeWork
}

// sizeWork is one workload with its parameters.
type sizeWork struct {
	ID, Title string
	Separated bool   // some fit has separated κ and δ
	At        string // where PSO is, of the first fit
	Fits      []sizeFit
	Said      []sizeSaid  // of what was fitted
	Cannot    []sizeSaid  // of what was not
	Across    []acrossRow // sizes on hosts of several core counts
	Notes     []string    // how to read Across
	Suitable  []suitableRow
	Paper     string // the paper's suitable range; empty where it has none
}

type sizeFit struct {
	*model.Overhead
	Name, P       string
	At            string // where PSO is
	LeftOut, Most string // root mean square, and the largest
	Sizes         []pointRow
}

type pointRow struct{ Size, Measured, Fitted, Left string }

type sizeSaid struct {
	Names []string
	Text  []string
}

// acrossRow is a size on the host with the fewest cores and on the one with the most.
type acrossRow struct{ Name, Few, FewRatio, Many, ManyRatio, Times, Shows string }

type suitableRow struct{ Name, Measured, Fitted string }

// sizes fits the model; nil where only bare metal or only one size was measured, because then nothing separates the two.
func sizes(s *data.Summary, o model.Options) *sizePart {
	type size struct {
		data.Size
		host int
	}
	if len(data.Distinct(s.Rows, func(r *data.Row) size { return size{data.SizeOf(r.Treatment.Instance), r.HostCores} })) < 2 {
		return nil
	}
	m := model.Fit(s, o)
	if m == nil || len(m.Overheads) == 0 {
		return nil
	}
	p := &sizePart{Tolerance: words.Tight(words.Percent(m.Tolerance, 1))}
	title := func(v *model.Overhead) string { return words.Work(v.Group.Treatment) }
	for i, of := range data.Together(m.Overheads, func(v, o *model.Overhead) bool { return title(v) == title(o) }) {
		w := sizeWork{ID: fmt.Sprintf("size-%d", i+1), Title: title(of[0])}
		for _, v := range of {
			w.add(v, s)
		}
		p.Works = append(p.Works, w)
	}
	return p
}

func (w *sizeWork) add(v *model.Overhead, s *data.Summary) {
	g := v.Group
	name := words.Environment(g.Treatment, s.Networks(g.Workload))
	var text []string
	if v.Cannot != nil {
		text = []string{words.Sentence(words.Doubt(v.Cannot))}
	} else {
		for _, t := range words.Overhead(v) {
			text = append(text, words.Sentence(t))
		}
	}
	for _, n := range words.Doubts(v.Doubts) {
		text = append(text, words.Sentence(n))
	}
	// Several sizes share one sentence where it is the same.
	list := &w.Cannot
	if v.Cannot == nil {
		list = &w.Said
	}
	if i := slices.IndexFunc(*list, func(o sizeSaid) bool { return slices.Equal(o.Text, text) }); i >= 0 {
		(*list)[i].Names = append((*list)[i].Names, name)
	} else {
		*list = append(*list, sizeSaid{[]string{name}, text})
	}
	w.across(v, s, name)
	if v.Paper != nil {
		w.Paper = fmt.Sprintf("%g to %g", v.Paper.Low, v.Paper.High)
	}
	if v.Measured.Verdict != model.NoAnswer || v.Cannot == nil && v.Predicted.Verdict != model.NoAnswer {
		row := suitableRow{name, suitable(v.Measured), suitable(v.Predicted)}
		if i := slices.IndexFunc(w.Suitable, func(o suitableRow) bool { return o.Measured == row.Measured && o.Fitted == row.Fitted }); i >= 0 {
			w.Suitable[i].Name += "; " + name
		} else {
			w.Suitable = append(w.Suitable, row)
		}
	}
	if v.Cannot != nil {
		return
	}
	w.Separated = w.Separated || v.Separated
	f := sizeFit{Overhead: v, Name: name, At: "at " + words.Cores(v.Smallest.Cores, v.Smallest.HostCores), LeftOut: "–"}
	w.At = cmp.Or(w.At, f.At)
	if !math.IsNaN(v.SizeP) {
		f.P = words.P(v.SizeP)
	}
	if !math.IsNaN(v.LeftRMS) {
		f.LeftOut = words.Tight(words.Percent(v.LeftRMS, 1))
		if !math.IsNaN(v.LeftMost) {
			f.Most = words.Tight("at most " + words.Percent(math.Abs(v.LeftMost), 1))
		}
	}
	for _, x := range v.Points {
		d := words.Places(x.Ratio, x.Low, x.High)
		row := pointRow{Size: words.Cores(x.Cores, x.HostCores), Measured: words.Measured(x.Ratio, x.Low, x.High, ""), Fitted: words.Number(x.Fitted, d), Left: "–"}
		for _, l := range v.Left {
			if l.Cores == x.Cores && l.HostCores == x.HostCores {
				row.Left = words.Number(l.Predicted, d)
			}
		}
		f.Sizes = append(f.Sizes, row)
	}
	w.Fits = append(w.Fits, f)
}

// across adds a platform's sizes on hosts of several core counts.
func (w *sizeWork) across(v *model.Overhead, s *data.Summary, name string) {
	sizes := data.Distinct(v.Points, func(p model.Point) float64 { return p.Cores })
	ratio := func(p model.Point) string { return words.Interval(p.Ratio, p.Low, p.High) }
	for _, a := range v.Across {
		row := acrossRow{
			Name: name, Few: words.OnHost(s, a.Few, a.FewHost), FewRatio: ratio(a.Few), Many: words.OnHost(s, a.Many, a.ManyHost), ManyRatio: ratio(a.Many),
			Times: words.Interval(a.Times.Value, a.Times.Low, a.Times.High), Shows: words.AcrossShows(a),
		}
		if len(sizes) > 1 {
			row.Name += ", " + words.Count(int(a.Few.Cores), "core")
		}
		w.Across = append(w.Across, row)
	}
	for _, n := range words.AcrossNotes(v.Across) {
		if !slices.Contains(w.Notes, n) {
			w.Notes = append(w.Notes, n)
		}
	}
}

func suitable(v model.Suitable) string {
	if v.Verdict == "" || v.Verdict == model.NoAnswer {
		return "–"
	}
	return words.Plain(words.Suitable(v))
}
