package page

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/desk/chart"
	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

//go:embed page.gohtml
var pageSource string

//go:embed style.css
var style string

// pageTemplate is read when a page is made, which most commands never do.
var pageTemplate = sync.OnceValue(func() *template.Template {
	page := template.New("page").Funcs(template.FuncMap{
		"bytes": words.Bytes, "comparison": words.Comparison, "count": words.Count[int], "duration": words.Duration, "lines": words.PlainLines,
		"measured": words.Measured, "message": words.Message, "metric": metricWords, "omissions": words.Omissions, "plain": plain, "platform": words.Platform, "published": words.Published,
		"region": words.Region, "mitigations": words.Mitigations, "selectors": words.Selectors, "settings": words.Settings, "sentence": words.Sentence, "capital": words.Capital, "stop": words.Stop, "text": words.Text,
		"thousands": words.Thousands[int],
		"class":     func(a claims.Answer) string { return classes[a] },
		"commands":  commands,
		"csv":       partSheet,
		"date":      words.Date,
		"fact":      func(name, text string) pair { return pair{name, plain(text)} },
		"finite":    stats.Finite,
		"failures":  failures,
		"finished":  finished,
		"folder":    folderName,
		"ratio":     ratioMeans,
		"inc":       func(i int) int { return i + 1 },
		"looks":     data.LooksAt,
		"percentage": func(share float64, digits int) string {
			return strconv.FormatFloat(100*share, 'g', digits, 64)
		},
		"param":        func(p model.Param) show.Value { return show.Valued(p.Value, p.Low, p.High) },
		"system":       func(h notebook.Host) string { return strings.Trim(h.OS+", Linux "+h.Kernel+", "+h.Arch, ", ") },
		"topology":     words.Topology,
		"tracerMetric": words.TracerMetric,
		"versions":     words.Versions,
	})
	template.Must(page.New("texts").Parse(words.Report))
	template.Must(page.Parse(pageSource))
	template.Must(page.New("fleet").Parse(fleetSource))
	return page
})

// ratioMeans says what a ratio of 1.20 means; its number and its unit stay on one line.
func ratioMeans(means []string) template.HTML {
	said := template.HTMLEscapeString(words.RatioMeans(means, "20\u00a0%"))
	return template.HTML(strings.ReplaceAll(said, "\u00a0", "&nbsp;"))
}

// plain makes a text of unknown origin fit to be shown.
func plain(s string) string { return words.Tight(words.Plain(s)) }

// page is what the template shows: what was read, and words, ready to be read.
type page struct {
	Summary    *data.Summary
	Style      template.CSS
	Title      string
	Answer     words.Answer
	When       string
	AA         []check // the first screen's
	Card       *card
	Comparison *comparisonPart // of two folders; nil: the page is of a study
	Figures    []pageFigure    // results
	Spread     []pageFigure    // single runs and rounds
	Several    []severalPart
	NotDrawn   []string
	Why        *whyPart
	Tables     []table
	Claims     *claimsPart
	Size       *sizePart
	Checks     []check
	Kernels    []pair
	Machines   []pair
	OfUsual    []string // results of VMs that were made in another way
	Notes      []string
	ManyHosts  bool
	Means      []string // what a ratio of so much more means, %s, by what was measured
	Lesser     string   // what a row with a smaller ratio is
	Terms      []words.Term
	Higher     bool // higher is better for at least one metric

	Unsteady       bool // bare metal differed from itself
	VMs, Emulated  int  // of the treatments
	Emulators      string
	Trials, Failed int // measured ones

	names map[string]string // of treatments, by id
}

// FullName says what a treatment on a host is, all of it.
func (p page) FullName(t notebook.Treatment, host string) string { return fullName(p.Summary, t, host) }

// Named are the names of treatments, by their ids.
func (p page) Named(ids []string) []string { return named(p.names, ids) }

// pair is a name and what there is to say of it.
type pair struct{ Name, Text string }

// ofMetric is valued for a metric, or a ratio of it, that may have a natural lower end.
func ofMetric(m notebook.Metric, v, low, high float64) show.Value {
	return show.Valued(v, data.Floor(m, low), high)
}

// pageFigure is a figure in the page.
type pageFigure struct {
	*chart.Figure
	ID      string
	Heading string // empty: it stands under one
	Rungs   *rungTable
}

// Drawing is the figure itself: it escapes every text in it.
func (f pageFigure) Drawing() template.HTML { return template.HTML(f.Inline(f.ID)) }

// Path leads to one of its files.
func (f pageFigure) Path(ending string) string { return FiguresDir + "/" + f.File + ending }

// inPage makes a figure ready for the page.
func inPage(f *chart.Figure, id string) pageFigure {
	p := pageFigure{Figure: f, ID: id}
	if f.Staircase != nil {
		p.Rungs = rungs(id+"-rungs", f.Staircase)
	}
	return p
}

type table struct {
	ID, Title, Metric, Baseline string
	Rows                        []tableRow
	Notes                       []string
	Networks                    bool   // they are named next to the provisioning
	Robust                      []pair // by row, the ratio as a few slow rounds do not move it
	CSV                         *sheet
	Secondary                   *secondaryTable
	Parts                       []show.Part // of its kind of study
}

type tableRow struct {
	First              bool // of its instance type
	Instance, Platform string
	Share              string // how much of its host that is, of the first
	Engine, Kind       string
	Sub                string // engine and provisioning in one, for phones
	Mean, Ratio        show.Value
	Change             string // in per cent; empty: the ratio says it better
	Guests, Trials     string
	Failed             string
	Marks              []int  // of notes, from 1
	Tag                string // "emulated", "doubtful", "A/A", "baseline"
	Muted              bool
}

// check is an A/A check, or several of them together.
type check struct {
	Good                  bool
	What, Text, Untrusted string
}

// render makes the page.
func render(s *data.Summary, figs []chart.Figure, several []severalPart, why *whyPart, opt Options) ([]byte, error) {
	p := page{
		Summary:   s,
		Style:     template.CSS(style),
		Title:     title(s),
		Answer:    words.Summary(s),
		When:      when(s),
		ManyHosts: len(s.Hosts) > 1,
		Several:   several,
		Why:       why,
		names:     treatmentNames(s),
	}
	means, lesser, terms := words.Ratios(s)
	p.Means, p.Lesser, p.Terms = means, lesser, words.Glossary(means, terms)
	p.AA, p.Checks = checks(s, p.names)
	p.count(s)
	p.Card, p.Emulators = cardOf(s), words.Emulators(s)
	for i := range figs {
		f := inPage(&figs[i], fmt.Sprintf("figure-%d", i+1))
		f.Heading = f.Title
		if f.Spread {
			p.Spread = append(p.Spread, f)
		} else {
			p.Figures = append(p.Figures, f)
		}
	}
	if h := chart.Heat(s); h != nil {
		f := inPage(h, "figure-heat")
		f.Heading = f.Title
		p.Figures = append(p.Figures, f)
	}
	for _, d := range chart.DeclaredIn(s) {
		if len(d.Panels) == 0 {
			p.NotDrawn = append(p.NotDrawn, words.Tight(words.NothingMeasured(d.Figure, d.Note)))
		}
	}
	p.Claims = judged(s, opt.Claims)
	p.Size = sizes(s, opt.Model)
	for _, rows := range s.Tables() {
		p.Tables = append(p.Tables, makeTable(len(p.Tables), rows, s))
		p.Higher = p.Higher || rows[0].Metric.MoreIsBetter()
		for _, of := range data.InFigures(rows) {
			t := makeTable(len(p.Tables), of, s)
			t.Title += ": " + words.Plain(words.Caption(of[0].Metric.Name))
			p.Tables = append(p.Tables, t)
			p.Higher = p.Higher || of[0].Metric.MoreIsBetter()
		}
	}
	p.guests(s)
	for _, n := range words.Doubts(withoutPaths(s.Doubts)) {
		p.Notes = append(p.Notes, words.Sentence(n))
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p); err != nil {
		return nil, fmt.Errorf("making the page: %w", err)
	}
	return b.Bytes(), nil
}

// guests says what the guests' kernels and machines were.
func (p *page) guests(s *data.Summary) {
	p.OfUsual = words.Machines(s)
	p.Kernels = ofGuests(s, func(r *data.Row) (texts []string) {
		for _, k := range r.Kernels {
			texts = append(texts, words.Plain(k))
		}
		return texts
	})
	p.Machines = ofGuests(s, func(r *data.Row) (texts []string) {
		for _, m := range r.Machines {
			texts = append(texts, words.Plain(words.Machine(m)))
		}
		return texts
	})
}

func title(s *data.Summary) string {
	names := data.Distinct(s.Folders, func(f data.Folder) string { return cmp.Or(words.Plain(f.Study.Title), words.Plain(f.Study.Name)) })
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	return cmp.Or(strings.Join(names, " · "), "Study")
}

func when(s *data.Summary) string {
	var last time.Time
	trials := 0
	for _, f := range s.Folders {
		if t := f.Study.Created.UTC(); t.After(last) {
			last = t
		}
		trials += f.Trials
	}
	first := studyDate(s)
	if first.IsZero() {
		return ""
	}
	return words.Begun(first, last, len(s.Folders), trials)
}

// fullName says what a treatment is, all of it; with its host where there are several.
func fullName(s *data.Summary, t notebook.Treatment, host string) string {
	n := words.Sized(s, t) + ": " + words.Work(t)
	if len(s.Hosts) > 1 {
		n += ", on " + words.Plain(host)
	}
	return n
}

// treatmentNames are the names of all treatments by id: short ones where one workload is all there is.
func treatmentNames(s *data.Summary) map[string]string {
	names := map[string]string{}
	one := len(s.Tables()) == 1
	for _, r := range s.Rows {
		n := words.Sized(s, r.Treatment)
		if !one {
			n += ": " + words.Work(r.Treatment)
		}
		names[r.Treatment.ID] = n
	}
	return names
}

func named(names map[string]string, ids []string) []string {
	return data.Distinct(ids, func(id string) string { return cmp.Or(names[id], words.Plain(id)) })
}

// checks says the A/A checks' verdicts: in a line for each kind of verdict for the first screen, and each.
func checks(s *data.Summary, names map[string]string) (lines, all []check) {
	if len(s.AA) == 0 {
		return []check{{Text: words.NoCheck}}, nil
	}
	for _, a := range s.AA {
		all = append(all, check{a.Verdict == data.Holds, words.CheckWhere(s, a), words.Tight(words.Check(a)), strings.Join(named(names, a.Untrusted), "; ")})
	}
	for _, c := range s.Calibrations {
		if of, says := words.Calibrated(s, c); says != "" {
			all = append(all, check{Good: !c.Narrow(), What: of, Text: words.Tight(says)})
		}
	}
	for _, verdict := range []data.Verdict{data.Misses, data.Narrow, data.NotKnown, data.Holds} {
		of := slices.DeleteFunc(slices.Clone(s.AA), func(a data.AACheck) bool { return a.Verdict != verdict })
		good := verdict == data.Holds
		if len(of) == 0 || good && len(of) < len(s.AA) {
			continue
		}
		lines = append(lines, check{Good: good, Text: words.Tight(words.Checks(verdict, of, len(s.AA)))})
	}
	return lines, all
}

// finished reports whether a session ended as planned, so that the first screen need not mention its end.
func finished(end *notebook.Message) bool { return end.Is("precise-enough") || end.Is("cap-on-rounds") }

// count counts what a reader must know of before the figures.
func (p *page) count(s *data.Summary) {
	// Of many metrics one misses by chance.
	p.Unsteady = slices.ContainsFunc(s.AA, func(a data.AACheck) bool {
		return (a.Verdict == data.Misses || a.Verdict == data.Narrow) && a.Figure == notebook.Metric{}
	})
	for _, r := range s.Rows {
		if notebook.HasMachine(r.Treatment.Platform) {
			p.VMs++
			if !r.Representative {
				p.Emulated++
			}
		}
		p.Failed += r.Failed
		p.Trials += r.Trials
	}
}

// folderName names a folder without the path to it, which is of one machine.
func folderName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return words.Plain(filepath.Base(dir))
}

// withoutPaths returns the doubts with folders named as in the rest of the page.
func withoutPaths(doubts []data.Doubt) (named []data.Doubt) {
	for _, d := range doubts {
		if of, is := d.(data.FolderDoubt); is {
			d = of.InFolder(folderName)
		}
		named = append(named, d)
	}
	return named
}

// makeTable makes the table of rows that are compared with each other.
func makeTable(i int, rows []*data.Row, s *data.Summary) table {
	t := table{
		ID: fmt.Sprintf("table-%d", i+1), Title: words.Table(s, rows), Metric: words.Metric(rows[0].Metric), Baseline: words.Baseline(rows), Networks: s.Networks(rows[0].Treatment.Workload),
	}
	last := ""
	for _, r := range rows {
		row := tableRow{
			Instance: words.Plain(r.Treatment.Instance.Name),
			Platform: words.Platform(r.Treatment.Platform),
			Engine:   dash(words.EngineName(r.Treatment.Engine)),
			Kind:     dash(words.Limited(r.Treatment, t.Networks)),
			Mean:     ofMetric(r.Metric, r.Mean, r.MeanLow, r.MeanHigh),
			Ratio:    ofMetric(r.Metric, r.Ratio, r.RatioLow, r.RatioHigh),
			Guests:   words.Thousands(r.Guests), Trials: words.Thousands(r.Trials), Failed: words.Thousands(r.Failed),
			Muted: !r.Representative || r.Doubtful,
		}
		row.Change = "–"
		if !r.IsBaseline() && r.Ratio < 2 {
			row.Change, _ = words.InPerCent(r.Quotient())
		}
		if stats.Finite(r.Robust) && r.Robust > 0 && r.Representative && !r.IsBaseline() {
			t.Robust = append(t.Robust, pair{words.Sized(s, r.Treatment), words.Number(r.Robust, words.Places(r.Ratio, r.RatioLow, r.RatioHigh))})
		}
		row.Sub = subName(r.Treatment, s)
		row.First = row.Instance != last
		last = row.Instance
		if c := words.CHR(r.CHR); c != "" && r.HostCores > 0 {
			row.Share = fmt.Sprintf("%s, CHR %s", words.Cores(r.Treatment.Instance.Cores, r.HostCores), c)
		}
		switch {
		case r.IsBaseline():
			row.Ratio, row.Tag = show.Value{Value: "1", Interval: "by definition"}, "baseline"
		case r.Treatment.AA:
			row.Tag = "A/A: again"
		case !r.Representative:
			row.Tag = words.NotVMsCost
		}
		if r.Doubtful {
			if row.Tag != "" {
				row.Tag += "; "
			}
			row.Tag += "doubtful"
		}
		for _, n := range words.Doubts(r.Doubts) {
			n = words.Sentence(n)
			i := slices.Index(t.Notes, n)
			if i < 0 {
				i = len(t.Notes)
				t.Notes = append(t.Notes, n)
			}
			row.Marks = append(row.Marks, i+1)
		}
		t.Rows = append(t.Rows, row)
	}
	show.Align(t.Rows, func(r *tableRow) *show.Value { return &r.Ratio })
	show.Align(t.Rows, func(r *tableRow) *show.Value { return &r.Mean })
	t.CSV = resultSheet(t.ID, s, rows)
	t.Secondary = secondary(t.ID+"-secondary", rows, s)
	for _, k := range show.Kinds(s) {
		if k.Parts != nil {
			t.Parts = append(t.Parts, k.Parts(t.ID, t.Title, rows, s)...)
		}
	}
	return t
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// Failing are the treatments with failed trials.
func (p page) Failing() []*data.Row {
	return slices.DeleteFunc(slices.Clone(p.Summary.Rows), func(r *data.Row) bool { return r.Failed == 0 })
}

// failures are what a row says of why trials of it failed.
func failures(doubts []data.Doubt) []string {
	return words.Doubts(slices.DeleteFunc(slices.Clone(doubts), func(d data.Doubt) bool {
		switch d.(type) {
		case data.TrialsFailed, data.WarmupFailed, data.TracedFailed:
			return false
		}
		return true
	}))
}

// ofGuests lists the texts that there are about the rows' guests, each with the platforms that it is of.
func ofGuests(s *data.Summary, texts func(*data.Row) []string) (list []pair) {
	for _, r := range s.Rows {
		name := words.Platform(r.Treatment.Platform)
		if r.Treatment.Engine != "" {
			name += ", " + words.Plain(r.Treatment.Engine)
		}
		for _, text := range texts(r) {
			list = together(list, pair{name, text})
		}
	}
	return list
}

// together adds a pair to the list, in which each text stands once, with the names that it applies to.
func together(list []pair, p pair) []pair {
	i := slices.IndexFunc(list, func(o pair) bool { return o.Text == p.Text })
	if i < 0 {
		return append(list, p)
	}
	if !slices.Contains(strings.Split(list[i].Name, "; "), p.Name) {
		list[i].Name += "; " + p.Name
	}
	return list
}

// commands make a folder's numbers again.
func commands(f data.Folder) []string {
	seed := strconv.FormatUint(f.Study.Seed, 10)
	// Into a folder of its own: in this one the run would go on, not begin again.
	out := shellWord(folderName(f.Dir) + "-again")
	return []string{strings.Join(slices.Concat([]string{"tare run study.yaml"}, typed(f.Args), []string{"--seed " + seed + " --out " + out}), " "), "tare report " + out}
}

// again are the flags of a run that say what is measured; the others say where to, for how long and how it is shown.
var again = []string{"rounds", "only", "accel", "vm-kernel", "input"}

// typed are those of a command's flags that it takes to do the same again, as they were typed. Each of them
// has a value.
func typed(args []string) []string {
	var flags []string
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, long := strings.CutPrefix(args[i], "--")
		name, value, has := strings.Cut(name, "=")
		if !long {
			continue
		}
		if !has {
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		if slices.Contains(again, name) {
			flags = append(flags, "--"+name+" "+shellWord(value))
		}
	}
	return flags
}
