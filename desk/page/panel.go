package page

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
	"tare/notebook"
)

// panel is what is drawn together: rows that are compared along one axis. It becomes up to three figures.
type panel struct {
	name     string // "Figure 3"; empty where the study declares none
	heading  string // what the study says it shows
	where    string // what all of its rows share, in words
	workload string
	axis     string // "instance", "host_cores", "network" or a parameter's name
	about    string // the axis in words, for the caption; empty: needs none
	note     string // what is not in it, and why
	rows     []*data.Row
	places   []string          // of each row on the axis
	stairs   *ladder.Staircase // by isolation: what is drawn
}

// title is that of the panel's first figure.
func (p *panel) title(plain string) string {
	switch {
	case p.name == "":
		return plain + ": " + p.where
	case paperFigure(p.name):
		return p.name + " of the paper, redrawn from these trials: " + p.heading + " – " + p.where
	}
	return p.name + ": " + p.heading + " – " + p.where
}

// beside is that of the figures that stand beside it.
func (p *panel) beside(what string) string {
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

// panels are the figures that the studies declare, and after them the rows that none of those shows; where none is
// declared, all rows.
func panels(s *data.Summary) []*panel {
	var list []*panel
	shown := map[*data.Row]bool{}
	for _, d := range declared(s) {
		for _, p := range d.panels {
			list = append(list, p)
			for _, r := range p.rows {
				shown[r] = true
			}
		}
	}
	// A ladder is drawn as one, whether or not its study says so.
	for _, c := range ladder.Of(s) {
		if p := stairPanel(s, c); !slices.ContainsFunc(p.rows, func(r *data.Row) bool { return shown[r] && r.Treatment.Isolation != "" }) {
			list = append(list, p)
			for _, r := range p.rows {
				shown[r] = true
			}
		}
	}
	rest := slices.DeleteFunc(allRows(s), func(r *data.Row) bool { return shown[r] })
	for _, g := range groups(s, rest) {
		if len(shown) > 0 && !slices.ContainsFunc(g.rows, measured) {
			continue // said in the notes under the figures
		}
		p := &panel{where: g.title(), workload: g.workload, axis: "instance", rows: g.rows}
		p.arrange()
		list = append(list, p)
	}
	return list
}

func measured(r *data.Row) bool { return r.Trials > 0 }

// declaredFigure is a figure that a study declares, with what there is of it.
type declaredFigure struct {
	notebook.Figure
	panels []*panel
	note   string // what of it was not measured
}

// title says which figure it is.
func (d *declaredFigure) title() string {
	t := plain(d.Name)
	if h := plain(d.Title); h != "" {
		t += " (" + h + ")"
	}
	return t
}

// declared are the figures that the studies declare, each once.
func declared(s *data.Summary) []*declaredFigure {
	var list []*declaredFigure
	for _, f := range s.Folders {
		for _, fig := range f.Study.Figures {
			if slices.ContainsFunc(list, func(d *declaredFigure) bool { return sameFigure(d.Figure, fig) }) {
				continue
			}
			d := &declaredFigure{Figure: fig, note: missingNote(s, fig)}
			if d.panels = split(s, fig); len(d.panels) > 0 && d.panels[0].stairs == nil {
				d.panels[0].note = d.note
			}
			list = append(list, d)
		}
	}
	return list
}

func sameFigure(a, b notebook.Figure) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Workload == b.Workload && a.By == b.By && maps.Equal(a.Params, b.Params)
}

// shows says whether a treatment belongs in a figure.
func shows(f notebook.Figure, t notebook.Treatment) bool {
	if t.Workload != f.Workload {
		return false
	}
	for k, v := range f.Params {
		if t.Params[k] != v {
			return false
		}
	}
	if f.By == byIsolation {
		return ladder.Has(t)
	}
	if axisOf(f) == "instance" || f.By == "host_cores" || f.By == "network" {
		return true
	}
	_, has := t.Params[f.By]
	return has
}

func axisOf(f notebook.Figure) string { return cmp.Or(f.By, "instance") }

// split takes the measured rows of a figure, from the folders whose studies declare it, apart into panels: all that
// differs beside the axis and the treatment itself.
func split(s *data.Summary, f notebook.Figure) []*panel {
	axis := axisOf(f)
	if axis == byIsolation {
		return staircases(s, f)
	}
	var list []*panel
	byKey := map[string]*panel{}
	for _, r := range allRows(s) {
		if !measured(r) || !shows(f, r.Treatment) || !ofStudy(s, r, f) {
			continue
		}
		params := maps.Clone(r.Treatment.Params)
		delete(params, axis)
		where := plain(r.Treatment.Workload)
		if w := paramWords(params); w != "" {
			where += " (" + w + ")"
		}
		key := where
		if axis != "instance" {
			where += " at " + plain(r.Treatment.Instance.Name)
			key += fmt.Sprintf(" %g %d", r.Treatment.Instance.Cores, r.Treatment.Instance.Memory)
		}
		if axis != "host_cores" {
			key += fmt.Sprintf(" %q %d", r.HostID, r.HostCores)
			if len(s.Hosts) > 1 {
				where += " on " + plain(r.Host)
			}
			if on := s.Online(r.HostID, r.Treatment.Workload, r.HostCores); on != "" {
				where += " " + on
			}
		}
		p := byKey[key]
		if p == nil {
			p = &panel{name: plain(f.Name), heading: plain(f.Title), where: where, workload: plain(f.Workload), axis: axis}
			byKey[key] = p
			list = append(list, p)
		}
		p.rows = append(p.rows, r)
	}
	for _, p := range list {
		p.arrange()
	}
	return list
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
func (p *panel) arrange() {
	type place struct {
		label string
		order [2]float64
	}
	at := func(r *data.Row) place {
		t := r.Treatment
		switch p.axis {
		case "instance":
			return place{plain(t.Instance.Name), [2]float64{t.Instance.Cores, float64(t.Instance.Memory)}}
		case "host_cores":
			return place{hostCoresWords(r), [2]float64{float64(r.HostCores)}}
		case "network":
			order := slices.Index([]string{"", notebook.NetBridge, notebook.NetHost, notebook.NetNone}, t.Network)
			switch {
			case t.Network != "":
				return place{"network " + plain(t.Network), [2]float64{float64(order)}}
			case t.Platform == notebook.BM:
				return place{"host’s own", [2]float64{-2}}
			}
			return place{"engine’s own", [2]float64{-1}}
		}
		v := t.Params[p.axis]
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) {
			n = math.Inf(1)
		}
		return place{plain(p.axis + " " + v), [2]float64{n}}
	}
	if p.name != "" || p.axis != "instance" {
		slices.SortStableFunc(p.rows, func(a, b *data.Row) int {
			x, y := at(a), at(b)
			return cmp.Or(cmp.Compare(x.order[0], y.order[0]), cmp.Compare(x.order[1], y.order[1]), cmp.Compare(x.label, y.label))
		})
	}
	hosts := map[string]bool{}
	for _, r := range p.rows {
		p.places = append(p.places, at(r).label)
		hosts[r.HostID] = true
	}
	switch p.axis {
	case "host_cores":
		p.about = " Along the axis: how many CPUs the host had online, and CHR, the instance’s cores over them."
		if len(hosts) > 1 {
			p.about += " The hosts are several machines: their times compare only as far as the machines are alike, their ratios are each to its own bare metal."
		}
	case "network":
		p.about = " Along the axis: how the guest is connected."
	}
}

// hostCoresWords say how large the host was beside the instance: "112 CPUs, CHR 0.14".
func hostCoresWords(r *data.Row) string {
	w := count(r.HostCores, "CPU", "CPUs")
	if c := chrWords(r.CHR); c != "" {
		w += ", CHR " + c
	}
	return w
}

// chrWords write a container-to-host core ratio; empty where it is not known.
func chrWords(chr float64) string {
	if math.IsNaN(chr) || math.IsInf(chr, 0) || chr <= 0 {
		return ""
	}
	return strconv.FormatFloat(chr, 'g', 2, 64)
}

// apart says of each row on which host it was, where another of the same name stands at the same place.
func (p *panel) apart(network bool) []string {
	type key struct{ place, label string }
	n := map[key]int{}
	at := func(i int) key { return key{p.places[i], treatmentName(p.rows[i].Treatment, network)} }
	for i := range p.rows {
		n[at(i)]++
	}
	hosts := make([]string, len(p.rows))
	for i, r := range p.rows {
		if n[at(i)] > 1 {
			hosts[i] = ", on " + plain(r.Host)
		}
	}
	return hosts
}

// missingNote says which treatments of a figure were not measured, and why; empty where all were.
func missingNote(s *data.Summary, f notebook.Figure) string {
	type reason struct {
		why  string
		what []string
		at   []string // instance types
	}
	var reasons []*reason
	add := func(t notebook.Treatment, host, why string) {
		why = strings.TrimSuffix(plain(why), ".")
		i := slices.IndexFunc(reasons, func(r *reason) bool { return r.why == why })
		if i < 0 {
			i = len(reasons)
			reasons = append(reasons, &reason{why: why})
		}
		r := reasons[i]
		what := treatmentName(t, s.Networks(t.Workload)) + ", " + plain(t.Instance.Name)
		if t.HostCores > 0 {
			what += ", host with " + count(t.HostCores, "CPU", "CPUs")
		}
		if len(s.Hosts) > 1 {
			what += ", on " + plain(host)
		}
		if !slices.Contains(r.what, what) {
			r.what = append(r.what, what)
		}
		if inst := plain(t.Instance.Name); !slices.Contains(r.at, inst) {
			r.at = append(r.at, inst)
		}
	}
	for _, l := range s.LeftOut {
		if shows(f, l.Treatment) {
			add(l.Treatment, l.Host, l.Reason)
		}
	}
	for _, r := range allRows(s) {
		if shows(f, r.Treatment) && !measured(r) {
			add(r.Treatment, r.Host, "not measured yet")
		}
	}
	var parts []string
	for _, r := range reasons {
		const most = 3 // names; more are counted
		what := strings.Join(r.what, "; ")
		if len(r.what) > most {
			what = count(len(r.what), "treatment", "treatments") + " at " + strings.Join(r.at, ", ")
		}
		const long = 100 // below a figure; the list of what was left out has all of it
		if len(r.why) > long {
			r.why = "the reason is under “What was left out”"
		}
		parts = append(parts, what+" ("+r.why+")")
	}
	if parts == nil {
		return ""
	}
	return "Not measured: " + strings.Join(parts, "; ") + "."
}
