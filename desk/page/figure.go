package page

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot/vg"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/notebook"
)

// kind of a figure.
type kind int

const (
	means     kind = iota // bars of the mean by instance type and platform, every trial a dot
	ratios                // dot and whisker: ratio to the baseline
	emulated              // bars of what ran under software emulation, apart from the others
	stairs                // a staircase of the isolation ladder
	waterfall             // from the baseline's time to the treatment's, part by part
	spreads               // small histograms
)

// dotsPerMark bounds how many trials a figure shows for each treatment. More can no longer be told apart, and
// would make the page heavy.
const dotsPerMark = 100

// figure is one figure of the report, before it is drawn.
type figure struct {
	kind    kind
	file    string // stem of its files' names, unique in the report
	title   string
	how     string // how to read it: said at the first figure of its kind
	caption string // what is seen
	alt     string // the figure in words, for those who do not see it
	axis    string // what the values are, with their unit
	marks   []mark
	note    string // what is not in it and why; empty: nothing
	network bool   // marks differ in their network
	sampled bool   // some mark shows fewer dots than it has trials
	lead    string // what it says, in a sentence; empty: it is left to the reader
	stairs  *ladder.Staircase
	fall    *fall
	spread  []spread
}

// mark is one treatment in a figure.
type mark struct {
	group       string // its place on the figure's axis: the instance type
	label       string // "container, docker, pinned"
	brief       string // the same where there is little room: "cn docker pinned"
	short       [2]string
	look        look
	value       float64
	low, high   float64
	dots        []float64
	words       string // the value with its interval
	missing     string // why there is no value
	isReference bool
}

// group is the rows of one workload with its parameters, on one host with so many of its CPUs online: what belongs in
// one figure and one table.
type group struct {
	workload string
	params   string // "segments 30", empty where there are none
	host     string // empty where there is one host only
	online   string // "with 1 of 2 CPUs", empty where there is nothing to be said
	rows     []*data.Row
}

func (g *group) title() string {
	t := g.workload
	if g.params != "" {
		t += " (" + g.params + ")"
	}
	if g.host != "" {
		t += " on " + g.host
	}
	if g.online != "" {
		t += " " + g.online
	}
	return t
}

// allRows are the summary's rows, to be taken apart.
func allRows(s *data.Summary) []*data.Row {
	rows := make([]*data.Row, len(s.Rows))
	for i := range s.Rows {
		rows[i] = &s.Rows[i]
	}
	return rows
}

// groups sorts rows into groups, in the order in which they first appear.
func groups(s *data.Summary, rows []*data.Row) []*group {
	var list []*group
	byKey := map[string]*group{}
	for _, r := range rows {
		params := paramWords(r.Treatment.Params)
		key := fmt.Sprintf("%q %q %q %d", r.Treatment.Workload, params, r.HostID, r.HostCores)
		g := byKey[key]
		if g == nil {
			g = &group{workload: plain(r.Treatment.Workload), params: params, online: s.Online(r.HostID, r.Treatment.Workload, r.HostCores)}
			if len(s.Hosts) > 1 {
				g.host = plain(r.Host)
			}
			byKey[key] = g
			list = append(list, g)
		}
		g.rows = append(g.rows, r)
	}
	return list
}

// paramWords says a workload's parameters in words, sorted by name.
func paramWords(params map[string]string) string {
	keys := make([]string, 0, len(params))
	for k := range params {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for i, k := range keys {
		keys[i] = plain(k + " " + params[k])
	}
	return strings.Join(keys, ", ")
}

// platformNames are the platforms in words.
var platformNames = map[string]string{
	notebook.BM:   "bare metal",
	notebook.CN:   "container",
	notebook.VM:   "VM",
	notebook.VMCN: "container in VM",
}

func platformName(p string) string {
	if n := platformNames[p]; n != "" {
		return n
	}
	return plain(p)
}

const emulatedMark = " (emulated)"

// treatmentName says in words what a treatment is, without its instance type and workload; with its network where
// that is to be told.
func treatmentName(t notebook.Treatment, network bool) string {
	parts := []string{platformName(t.Platform)}
	if t.Engine != "" {
		parts = append(parts, plain(t.Engine))
	}
	if t.Provisioning != "" {
		parts = append(parts, plain(t.Provisioning))
	}
	if w := isolationWords(t); w != "" {
		parts = append(parts, w)
	}
	if network && t.Network != "" {
		parts = append(parts, "network "+plain(t.Network))
	}
	name := strings.Join(parts, ", ")
	if t.AA {
		name += " again (A/A)"
	}
	if !t.Representative() {
		name += emulatedMark
	}
	return name
}

// shortName says the same in two short lines, to stand under a bar.
func shortName(t notebook.Treatment) [2]string {
	first := plain(t.Platform)
	if t.Engine != "" && t.Platform != notebook.VM {
		first += " " + plain(t.Engine)
	}
	return [2]string{first, strings.TrimSpace(plain(t.Provisioning) + " " + plain(t.Isolation))}
}

// briefName says the same in few letters, in a line.
func briefName(t notebook.Treatment, network bool) string {
	short := shortName(t)
	n := strings.TrimSpace(short[0] + " " + short[1])
	if network && t.Network != "" {
		n += ", " + plain(t.Network)
	}
	if t.AA {
		n += " (A/A)"
	}
	return n
}

// named is a mark's name in so much room.
func (m *mark) named(size, room vg.Length) string {
	if s := fit(m.label, size, room); s == m.label {
		return s
	}
	return fit(m.brief, size, room)
}

// figures says which figures the summary gives: for each panel its means, its ratios, and what was emulated.
func figures(s *data.Summary) []figure {
	var list []figure
	for i, p := range panels(s) {
		drawn := p.figures(s, fmt.Sprintf("%d-%s", i+1, slug(strings.TrimSpace(p.name+" "+p.workload))))
		if len(drawn) > 0 {
			drawn[0].note = p.note
		}
		list = append(list, drawn...)
	}
	var said []string
	for i := range list {
		f := &list[i]
		if !slices.Contains(said, f.how) {
			said = append(said, f.how)
			f.caption = f.how + " " + strings.TrimSpace(f.caption)
		}
		f.caption, f.note = tight(strings.TrimSpace(f.caption)), tight(f.note)
		list[i].alt = alternative(&list[i])
	}
	return list
}

// figures are those of one panel.
func (p *panel) figures(s *data.Summary, stem string) []figure {
	if p.stairs != nil {
		return []figure{p.stairFigure(stem)}
	}
	network := p.axis != "network" && s.Networks(p.rows[0].Treatment.Workload)
	looks := newLooks(p.rows, network)
	baseline := baselineName(p.rows)
	metric := plain(p.rows[0].Metric.Name)
	unit := metric
	if u := plain(p.rows[0].Metric.Unit); u != "" {
		unit += ", " + u
	}
	m := figure{kind: means, file: stem + "-mean", title: p.title("Mean " + metric), axis: unit, network: network}
	r := figure{kind: ratios, file: stem + "-ratio", title: p.beside("Ratio to " + baseline), axis: "times " + baseline, network: network}
	e := figure{kind: emulated, file: stem + "-emulated", title: p.beside("Emulated, not a VM’s cost"), axis: unit + " – emulated: not a VM’s cost", network: network}
	hasRatio, doubts := false, false
	apart := p.apart(network)
	for i, row := range p.rows {
		mk := mark{
			group: p.places[i],
			label: treatmentName(row.Treatment, network) + apart[i],
			brief: briefName(row.Treatment, network) + apart[i],
			short: shortName(row.Treatment),
			look:  looks.of(row.Treatment, network),
			value: row.Mean, low: data.Floor(row.Metric, row.MeanLow), high: row.MeanHigh,
			words: valueWords(row.Mean, data.Floor(row.Metric, row.MeanLow), row.MeanHigh, row.Metric.Unit),
			dots:  dotValues(row.Dots),
		}
		if math.IsNaN(row.Mean) {
			mk.missing = "no value"
			if row.Failed > 0 && row.Failed == row.Trials {
				mk.missing = "all failed"
			}
		}
		sampled := row.DotsOf > len(mk.dots)
		switch {
		case !row.Representative:
			mk.label = strings.Replace(mk.label, emulatedMark, "", 1) // all of that figure is
			e.marks = append(e.marks, mk)
			e.sampled = e.sampled || sampled
		case !row.Treatment.AA:
			m.marks = append(m.marks, mk)
			m.sampled = m.sampled || sampled
		}
		if row.Representative {
			rm := mk
			rm.dots = nil
			rm.value, rm.low, rm.high = row.Ratio, data.Floor(row.Metric, row.RatioLow), row.RatioHigh
			rm.words = valueWords(row.Ratio, rm.low, row.RatioHigh, "")
			rm.isReference = row.IsBaseline()
			if rm.isReference {
				rm.words = "1"
			} else if math.IsNaN(row.Ratio) {
				if rm.missing == "" {
					rm.missing = "no ratio"
				}
			} else {
				hasRatio = true
			}
			if row.Doubtful {
				rm.label += " ?"
				rm.brief += " ?"
				doubts = true
			}
			r.marks = append(r.marks, rm)
		}
	}
	const bars = "Each bar is the mean over rounds, the vertical line through its top the 95 % interval, and each small circle one trial. "
	m.how = bars + "Tinted bars are vanilla (a CPU quota), solid ones pinned (a fixed CPU set)."
	if hasEngines(m.marks) {
		m.caption = "Stripes tell the engines of one platform apart."
		if network {
			m.caption = "Stripes tell the engines and networks of one platform apart."
		}
	}
	m.caption += p.about
	if len(e.marks) > 0 {
		m.caption += " What ran under software emulation is in a figure of its own."
	}
	r.how = "Each mark is the mean over that of " + baseline + " in the same rounds, with its 95 % interval; the line at 1 is " + baseline +
		" itself. Hollow marks are vanilla, filled ones pinned. An interval that holds 1 shows no cost that can be told from none."
	for _, mk := range r.marks {
		if strings.Contains(mk.label, "(A/A)") {
			r.how += " “Again (A/A)” is bare metal measured a second time under another name: it should lie at 1."
			break
		}
	}
	if doubts {
		r.caption += " A question mark: doubtful, because bare metal differed from itself by as much (A/A check)."
	}
	e.how = bars + "Hatched: these ran under software emulation (TCG) and say what emulation costs on this host, not what a VM costs."
	e.caption = "Never compare them with the figure above."
	for _, f := range []*figure{&m, &e} {
		if f.sampled {
			f.caption += fmt.Sprintf(" Where a treatment has more than %d trials, the circles are an even sample of them.", dotsPerMark)
		}
	}
	var list []figure
	if len(m.marks) > 0 {
		list = append(list, m)
	}
	if hasRatio {
		list = append(list, r)
	}
	if len(e.marks) > 0 {
		list = append(list, e)
	}
	return list
}

// baselineName says what the ratios of these rows are relative to.
func baselineName(rows []*data.Row) string {
	for _, r := range rows {
		if !r.IsBaseline() {
			continue
		}
		if r.Treatment.Platform == notebook.BM {
			return "bare metal"
		}
		return treatmentName(r.Treatment, false) + " at " + plain(r.Treatment.Instance.Name)
	}
	return "the baseline"
}

func hasEngines(marks []mark) bool {
	for _, m := range marks {
		if m.look.pattern > 0 {
			return true
		}
	}
	return false
}

// dotValues takes at most dotsPerMark of the dots, evenly, the first and the last among them (which are the smallest
// and the largest where the summary has sampled), and without those that are no number.
func dotValues(dots []data.Dot) []float64 {
	n := min(len(dots), dotsPerMark)
	values := make([]float64, 0, n)
	for i := range n {
		v := dots[i*(len(dots)-1)/max(n-1, 1)].Value
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return values
}

// alternative says in words what a figure shows.
func alternative(f *figure) string {
	if f.kind == stairs {
		return stairAlternative(f.stairs)
	}
	var b strings.Builder
	if f.kind == ratios {
		b.WriteString("Marks with intervals. ")
	} else {
		b.WriteString("Bars with intervals. ")
	}
	for i, m := range f.marks {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s, %s: ", m.group, m.label)
		if m.missing != "" {
			b.WriteString(m.missing)
		} else {
			b.WriteString(m.words)
		}
	}
	b.WriteString(".")
	return b.String()
}

// slug makes a word that is safe in a file's name on every system.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	if t := strings.Trim(b.String(), "-"); t != "" {
		return t
	}
	return "workload"
}
