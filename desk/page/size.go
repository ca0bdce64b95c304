package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/desk/model"
	"tare/notebook"
)

// sizePart is what the model says: the platform's own overhead, and that of being small beside the host.
type sizePart struct {
	Tolerance string
	Works     []sizeWork
}

// sizeWork is one workload with its parameters.
type sizeWork struct {
	ID, Title string
	Separated bool   // some fit has told κ and δ apart
	At        string // where PSO is, of the first fit
	Fits      []sizeFit
	Said      []sizeSaid // of what was fitted
	Cannot    []sizeSaid // of what was not
	Suitable  []suitableRow
	Paper     string // the paper's suitable range; empty where it has none
}

type sizeFit struct {
	Name                    string
	PTO, PerCPU, Fixed, PSO estimate
	At                      string // where PSO is
	Size, P                 string
	Left, Most              string // root mean square, and the largest
	Points                  []pointRow
}

type estimate struct{ Value, Interval string }

type pointRow struct{ Size, Measured, Fitted, Left string }

type sizeSaid struct {
	Names []string
	Text  []string
}

type suitableRow struct{ Name, Measured, Fitted string }

// sizes fits the model; nil where nothing beside bare metal was measured.
func sizes(s *data.Summary, o model.Options) *sizePart {
	m := model.Fit(s, o)
	if m == nil || len(m.Overheads) == 0 {
		return nil
	}
	p := &sizePart{Tolerance: percent(m.Tolerance)}
	works := map[string]int{}
	for _, v := range m.Overheads {
		title := plain(v.Group.Workload)
		if w := paramWords(v.Group.Params); w != "" {
			title += " (" + w + ")"
		}
		i, known := works[title]
		if !known {
			i = len(p.Works)
			works[title] = i
			p.Works = append(p.Works, sizeWork{ID: fmt.Sprintf("size-%d", i+1), Title: title})
		}
		p.Works[i].add(v, s)
	}
	return p
}

func (w *sizeWork) add(v *model.Overhead, s *data.Summary) {
	g := v.Group
	name := treatmentName(notebook.Treatment{Platform: g.Platform, Engine: g.Engine, Accelerator: g.Accelerator, Provisioning: g.Provisioning, Network: g.Network}, s.Networks(g.Workload))
	text := []string{sentence(v.Cannot)}
	if v.Cannot == "" {
		text = nil
		for _, t := range v.Sentences() {
			text = append(text, sentence(t))
		}
	}
	for _, n := range v.Notes {
		text = append(text, sentence(n))
	}
	// What is the same for several is said once.
	list := &w.Cannot
	if v.Cannot == "" {
		list = &w.Said
	}
	if i := slices.IndexFunc(*list, func(o sizeSaid) bool { return slices.Equal(o.Text, text) }); i >= 0 {
		(*list)[i].Names = append((*list)[i].Names, name)
	} else {
		*list = append(*list, sizeSaid{[]string{name}, text})
	}
	if v.Paper != nil {
		w.Paper = short(v.Paper.Low) + " to " + short(v.Paper.High)
	}
	if v.Measured.Verdict != model.NoAnswer || v.Cannot == "" && v.Predicted.Verdict != model.NoAnswer {
		row := suitableRow{name, suitable(v.Measured), suitable(v.Predicted)}
		if i := slices.IndexFunc(w.Suitable, func(o suitableRow) bool { return o.Measured == row.Measured && o.Fitted == row.Fitted }); i >= 0 {
			w.Suitable[i].Name += "; " + name
		} else {
			w.Suitable = append(w.Suitable, row)
		}
	}
	if v.Cannot != "" {
		return
	}
	w.Separated = w.Separated || v.Separated
	f := sizeFit{
		Name: name, PTO: estimated(v.PTO), PerCPU: estimated(v.PerCPU), Fixed: estimated(v.Fixed), PSO: estimated(v.PSO),
		At: "at " + coresWords(v.Smallest.Cores, v.Smallest.HostCores), Size: plain(string(v.Size)), Left: "–",
	}
	w.At = cmp.Or(w.At, f.At)
	if !math.IsNaN(v.SizeP) {
		f.P = "p " + pWords(v.SizeP)
	}
	if !math.IsNaN(v.LeftRMS) {
		f.Left = percent(v.LeftRMS)
		if !math.IsNaN(v.LeftMost) {
			f.Most = "at most " + percent(math.Abs(v.LeftMost))
		}
	}
	for _, x := range v.Points {
		d := decimals(x.Ratio, x.Low, x.High)
		row := pointRow{Size: coresWords(x.Cores, x.HostCores), Measured: valueWords(x.Ratio, x.Low, x.High, ""), Fitted: number(x.Fitted, d), Left: "–"}
		for _, l := range v.Left {
			if l.Cores == x.Cores && l.HostCores == x.HostCores {
				row.Left = number(l.Predicted, d)
			}
		}
		f.Points = append(f.Points, row)
	}
	w.Fits = append(w.Fits, f)
}

func coresWords(cores float64, host int) string {
	return fmt.Sprintf("%s of %d CPUs", strconv.FormatFloat(cores, 'g', 3, 64), host)
}

func estimated(p model.Param) estimate {
	if math.IsNaN(p.Value) {
		return estimate{"–", "–"}
	}
	d := decimals(p.Value, p.Low, p.High)
	return estimate{number(p.Value, d), intervalWords(p.Low, p.High, d)}
}

func suitable(v model.Suitable) string {
	if v.Verdict == "" || v.Verdict == model.NoAnswer {
		return "–"
	}
	return plain(v.String())
}

func percent(share float64) string {
	return tight(strings.TrimSuffix(number(100*share, 1), ".0") + " %")
}

// pWords write a probability; a small one as a bound.
func pWords(p float64) string {
	if p < 0.001 {
		return "below 0.001"
	}
	return "= " + digits(p, 2)
}
