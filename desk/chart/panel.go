package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Panel is what is drawn together: rows that are compared along one axis.
type Panel struct {
	// Note says what is not in it, and why; empty: nothing.
	Note string

	// Rows, in the order of their places.
	Rows []*data.Row

	// Places are the rows' names on the axis: instance types, sizes of hosts, networks, values of a parameter, rungs.
	Places []string

	// Staircase is the ladder whose rungs the rows are; nil: they are of none.
	Staircase *ladder.Staircase

	name     string // "Figure 3"; empty where the study declares none
	heading  string // what the study says it shows
	where    string // what all of its rows share, in words
	workload string
	axis     string // "instance", "host_cores", "network", a parameter's name, or notebook.ByWorkload
	about    string // the axis in words, for the caption; empty: needs none

	named bool // the networks differ and are told

	summary *data.Summary // that the rows are of; nil for a staircase
}

// stem is what the names of its n-th panel's files begin with.
func (p *Panel) stem(n int) string {
	return fmt.Sprintf("%d-%s", n, Slug(strings.TrimSpace(p.name+" "+p.workload)))
}

// metric is what was measured, and unit the same with its unit.
func (p *Panel) metric() string { return words.Plain(words.Caption(p.Rows[0].Metric.Name)) }

func (p *Panel) unit() string {
	return words.Metric(p.Rows[0].Metric)
}

// OfWorkloads says whether the panel shows workloads side by side.
func (p *Panel) OfWorkloads() bool { return p.axis == notebook.ByWorkload }

// title is that of the panel's first figure.
func (p *Panel) title(plain string) string {
	switch {
	case p.name == "":
		return plain + ": " + p.where
	case paperFigure(p.name):
		return words.Redrawn(p.name, p.heading, p.where)
	}
	return p.name + ": " + p.heading + " – " + p.where
}

// Beside is the title of a figure that stands next to the panel.
func (p *Panel) Beside(what string) string {
	if p.name == "" {
		return what + ": " + p.where
	}
	return p.name + ", " + strings.ToLower(what[:1]) + what[1:] + " – " + p.where
}

// paperFigure says whether a name is that of a part of a paper, and not one that a user gave.
func paperFigure(name string) bool {
	n, found := strings.CutPrefix(name, "Figure ")
	_, err := strconv.Atoi(n)
	return found && err == nil || strings.HasPrefix(name, "Section ")
}

// Panels are the figures that the studies declare, and after them the rows that none of those shows; where none is
// declared, all rows.
func Panels(s *data.Summary) []*Panel {
	var list []*Panel
	shown := map[*data.Row]bool{}
	for _, d := range DeclaredIn(s) {
		for _, p := range d.Panels {
			list = append(list, p)
			for _, r := range p.Rows {
				shown[r] = true
			}
		}
	}
	// A ladder is drawn as one, whether or not its study says so.
	for _, c := range ladder.Of(s) {
		if p := stairPanel(s, c); !slices.ContainsFunc(p.Rows, func(r *data.Row) bool { return shown[r] && r.Treatment.Isolation != "" }) {
			list = append(list, p)
			for _, r := range p.Rows {
				shown[r] = true
			}
		}
	}
	for _, rows := range s.Tables() {
		table := words.Table(s, rows)
		add := func(rows []*data.Row) {
			p := &Panel{where: table, workload: words.Plain(rows[0].Treatment.Workload), axis: "instance", Rows: rows}
			p.arrange(s)
			list = append(list, p)
		}
		figures := data.InFigures(rows)
		rows = slices.DeleteFunc(rows, func(r *data.Row) bool { return shown[r] })
		if len(rows) > 0 && (len(shown) == 0 || slices.ContainsFunc(rows, measured)) { // otherwise the notes under the figures say it
			add(rows)
		}
		for _, of := range figures {
			of = slices.DeleteFunc(of, func(r *data.Row) bool { return shown[r] })
			if slices.ContainsFunc(of, measured) {
				add(of)
			}
		}
	}
	return list
}

func measured(r *data.Row) bool { return r.Trials > 0 }

// Declared is a figure that a study declares, with what there is of it.
type Declared struct {
	notebook.Figure
	Panels []*Panel
	Note   string // what of it was not measured
}

// DeclaredIn are the figures that the studies declare, each once.
func DeclaredIn(s *data.Summary) []*Declared {
	var list []*Declared
	for _, f := range s.Folders {
		for _, fig := range f.Study.Figures {
			if len(fig.Axes) > 0 || slices.ContainsFunc(list, func(d *Declared) bool { return sameFigure(d.Figure, fig) }) {
				continue
			}
			d := &Declared{Figure: fig, Note: missing(s, fig)}
			if d.Panels = split(s, fig); len(d.Panels) > 0 && d.Panels[0].Staircase == nil {
				d.Panels[0].Note = d.Note
			}
			list = append(list, d)
		}
	}
	return list
}

func sameFigure(a, b notebook.Figure) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Workload == b.Workload && a.Metric == b.Metric && a.By == b.By && maps.Equal(a.Params, b.Params)
}

// shows says whether a treatment belongs in a figure.
func shows(f notebook.Figure, t notebook.Treatment) bool {
	if f.OfWorkloads() {
		assigned := t.Assigned()
		for k, v := range f.Params {
			if own, has := assigned[k]; has && own != v {
				return false
			}
		}
		return true
	}
	if t.Workload != f.Workload || !contains(t.Assigned(), f.Params) {
		return false
	}
	if f.By == byIsolation {
		return ladder.Has(t)
	}
	_, has := t.Value(axisOf(f))
	return has
}

func axisOf(f notebook.Figure) string { return cmp.Or(f.By, notebook.FactorInstance.Name) }

// split divides the measured rows of a figure, from the folders whose studies declare it, into panels. Rows of one panel
// differ only in the axis and the treatment itself.
func split(s *data.Summary, f notebook.Figure) []*Panel {
	axis := axisOf(f)
	if axis == byIsolation {
		return staircases(s, f)
	}
	var list []*Panel
	type key struct {
		where     string
		size      data.Size
		hostID    string
		hostCores int
		metric    notebook.Metric // of a figure of workloads: those measured in another metric are in another panel
	}
	byKey := map[key]*Panel{}
	for _, r := range s.Rows {
		if r = inMetric(r, f.Metric); r == nil || !measured(r) || !shows(f, r.Treatment) || !ofStudy(s, r, f) {
			continue
		}
		at := *r // what its panel has in common
		switch at.Treatment = r.Treatment.Without(axis); {
		case f.OfWorkloads():
			at.Treatment = r.Treatment
			at.Treatment.Workload, at.Treatment.Params = words.AllWorkloads, nil
		case axis == notebook.FactorHostCores.Name:
			at.Host, at.HostID, at.HostCores = "", "", 0
		}
		where := words.Where(s, &at)
		k := key{where: where, size: data.SizeOf(at.Treatment.Instance), hostID: at.HostID, hostCores: at.HostCores}
		if f.OfWorkloads() {
			k.metric = r.Metric
		}
		p := byKey[k]
		if p == nil {
			p = &Panel{name: words.Plain(f.Name), heading: words.Plain(f.Title), where: where, workload: words.Plain(f.Workload), axis: axis}
			byKey[k] = p
			list = append(list, p)
		}
		p.Rows = append(p.Rows, r)
	}
	at := map[string]int{}
	for _, p := range list {
		at[p.where]++
	}
	for _, p := range list {
		if f.OfWorkloads() && at[p.where] > 1 {
			p.where += ", " + words.Called(p.Rows[0].Metric)
		}
		p.arrange(s)
	}
	return list
}

// inMetric is a row in the metric of that name; empty: its own. nil where it has none of the name.
func inMetric(r *data.Row, name string) *data.Row {
	if name == "" || name == r.Metric.Name {
		return r
	}
	if i := slices.IndexFunc(r.Figures, func(f *data.Row) bool { return f.Metric.Name == name }); i >= 0 {
		return r.Figures[i]
	}
	return nil
}

// ofStudy says whether some of a row's rounds are of a study that declares the figure.
func ofStudy(s *data.Summary, r *data.Row, f notebook.Figure) bool {
	declares := func(i int) bool {
		return i < len(s.Folders) && slices.ContainsFunc(s.Folders[i].Study.Figures, func(o notebook.Figure) bool { return sameFigure(o, f) })
	}
	for _, v := range r.Values {
		if declares(v.Folder) {
			return true
		}
	}
	if len(r.Values) > 0 {
		return false
	}
	// Nothing of it succeeded: it is of the folders whose studies have it.
	for i, folder := range s.Folders {
		if folder.Host == r.HostID && declares(i) && slices.ContainsFunc(folder.Study.Treatments, func(t notebook.Treatment) bool { return t.ID == r.Treatment.ID }) {
			return true
		}
	}
	return false
}

// arrange sorts the panel's rows along its axis and names their places on it. Rows at one place stay in their order.
func (p *Panel) arrange(s *data.Summary) {
	p.summary = s
	p.named = p.axis != notebook.FactorNetwork.Name && slices.ContainsFunc(p.Rows, func(r *data.Row) bool { return s.Networks(r.Treatment.Workload) })
	if p.axis == notebook.ByWorkload {
		p.Rows = slices.Concat(data.Together(p.Rows, func(a, b *data.Row) bool { return a.Treatment.SameWork(b.Treatment) })...) // in the study's order
	} else if p.name != "" || p.axis != notebook.FactorInstance.Name {
		slices.SortStableFunc(p.Rows, func(a, b *data.Row) int {
			x, y := orderOn(p.axis, a), orderOn(p.axis, b)
			return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(words.On(p.axis, a), words.On(p.axis, b)))
		})
	}
	for _, r := range p.Rows {
		place := words.On(p.axis, r)
		if p.axis == notebook.ByWorkload {
			place = words.Among(r, p.Rows)
		}
		p.Places = append(p.Places, place)
	}
	p.about = words.Along(p.axis, s, p.Rows)
}

// orderOn orders rows on an axis, by the first number and then by the second.
func orderOn(axis string, r *data.Row) [2]float64 {
	t := r.Treatment
	switch axis {
	case notebook.FactorInstance.Name:
		return [2]float64{t.Instance.Cores, float64(t.Instance.Memory)}
	case notebook.FactorHostCores.Name:
		return [2]float64{float64(r.HostCores)}
	case notebook.FactorNeighbours.Name:
		n := notebook.NeighboursOf(t)
		if n.None() {
			return [2]float64{}
		}
		return [2]float64{1 + float64(n.PerCore), float64(n.CPU + n.IO + n.Work)}
	case notebook.FactorPull.Name: // first what is not pulled, which has no compression
		of := notebook.PullOf(t)
		return [2]float64{float64(slices.Index(notebook.Compressions, of.Compression)), float64(of.Layers)}
	}
	v, _ := t.Value(axis)
	f, _ := notebook.FactorNamed(axis)
	switch i := slices.Index(f.Values, v); {
	case i >= 0:
		return [2]float64{float64(i)}
	case v == "" && t.Platform == notebook.BM:
		return [2]float64{-2}
	case v == "":
		return [2]float64{-1}
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil && !math.IsNaN(n) {
		return [2]float64{n}
	}
	return [2]float64{math.Inf(1)}
}

// Mark is a row's mean as a mark.
func (p *Panel) Mark(i int) Mark {
	row, host := p.Rows[i], p.hosts()[i]
	low := data.Floor(row.Metric, row.MeanLow)
	m := Mark{
		Group: p.Places[i],
		Names: []string{words.Environment(row.Treatment, p.named) + host, words.Short(row.Treatment, p.named) + host},
		under: words.Brief(row.Treatment),
		style: newStyles(p.Rows, p.named).of(row.Treatment, p.named),
		Value: row.Mean, Low: low, High: row.MeanHigh,
		Words: words.Measured(row.Mean, low, row.MeanHigh, row.Metric.Unit),
	}
	for _, d := range row.Dots {
		if stats.Finite(d.Value) {
			m.Dots, m.titles = append(m.Dots, d.Value), append(m.titles, words.ARun(d, row.Metric.Unit))
		}
	}
	switch {
	case !math.IsNaN(row.Mean):
	case row.Failed > 0 && row.Failed == row.Trials:
		m.Missing = "all failed"
	default:
		m.Missing = "no value"
	}
	return m
}

// bars are the marks of the means: of what was emulated, or of the others except the A/A rows.
func (p *Panel) bars(emulated bool) (marks []Mark) {
	if p.Staircase != nil {
		return nil
	}
	for i, row := range p.Rows {
		if row.Representative == emulated || !emulated && row.Treatment.AA {
			continue
		}
		m := p.Mark(i)
		if emulated { // all of them are
			m.Names[0] = words.Unmarked(row.Treatment, p.named) + p.hosts()[i]
		}
		marks = append(marks, m)
	}
	return marks
}

// hosts says of each row on which host it was, where another of the same name stands at the same place.
func (p *Panel) hosts() []string {
	type key struct{ place, label string }
	n := map[key]int{}
	at := func(i int) key { return key{p.Places[i], words.Environment(p.Rows[i].Treatment, p.named)} }
	for i := range p.Rows {
		n[at(i)]++
	}
	hosts := make([]string, len(p.Rows))
	for i, r := range p.Rows {
		if n[at(i)] > 1 {
			hosts[i] = ", on " + words.Plain(r.Host)
		}
	}
	return hosts
}

// missing says which treatments of a figure were not measured, and why; empty where all were.
func missing(s *data.Summary, f notebook.Figure) string {
	gaps := slices.DeleteFunc(slices.Clone(s.LeftOut), func(l data.LeftOut) bool { return !shows(f, l.Treatment) })
	for _, r := range s.Rows {
		if shows(f, r.Treatment) && !measured(r) {
			gaps = append(gaps, data.LeftOut{Host: r.Host, Treatment: r.Treatment, Reason: notebook.Say("not-measured-yet")})
		}
	}
	return words.NotMeasured(s, gaps)
}
