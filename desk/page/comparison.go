package page

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"tare/desk/chart"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook/durable"
	"tare/stats"
)

// comparisonPart is what a page of two folders shows instead of a study's result.
type comparisonPart struct {
	Said     string
	Margin   string
	Rows     []comparisonRow
	Figure   pageFigure
	CSV      *sheet
	Emulated int // of the rows
	Differs  []string
	Level    string
	Old, New comparisonSide
}

// comparisonSide is one of the two folders.
type comparisonSide struct {
	Name   string
	Checks []check
	Only   []string // what the other folder does not have
}

type comparisonRow struct {
	cardRow
	Old, New string // means
	Emulated bool   // it has no verdict
	Note     string
}

// WriteComparison writes the report of what changed between two folders into out. The paths of the files are as WriteSummary has them.
func WriteComparison(c *compare.Comparison, out string) ([]string, error) {
	of := *c // with folders named without the paths to them
	of.Old, of.New = unpathed(c.Old), unpathed(c.New)
	c = &of
	both := beside(c.Old, c.New)
	f := chart.OfComparison(c)
	p := page{Summary: both, Style: template.CSS(style), Title: title(both), When: when(both), ManyHosts: len(both.Hosts) > 1, Comparison: comparisonOf(c, &f)}
	p.guests(both)
	means, _, terms := words.Ratios(both)
	p.Terms = words.Glossary(means, terms)
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p); err != nil {
		return nil, fmt.Errorf("making the page: %w", err)
	}
	return publish(out, b.Bytes(), []chart.Figure{f}, studyDate(both))
}

// unpathed is a summary of one folder, which has its name only.
func unpathed(s *data.Summary) *data.Summary {
	of := *s
	of.Folders = slices.Clone(s.Folders)
	for i := range of.Folders {
		of.Folders[i].Dir = folderName(of.Folders[i].Dir)
	}
	return &of
}

// beside has the folders, hosts and rows of two summaries: for the part of a page about their origin.
func beside(a, b *data.Summary) *data.Summary {
	s := *a
	s.Folders, s.Rows = slices.Concat(a.Folders, b.Folders), slices.Concat(a.Rows, b.Rows)
	s.Hosts = slices.Clone(a.Hosts)
	for _, h := range b.Hosts {
		// A host whose settings changed stands there twice.
		if !slices.ContainsFunc(s.Hosts, func(o data.Host) bool { return reflect.DeepEqual(o, h) }) {
			s.Hosts = append(s.Hosts, h)
		}
	}
	return &s
}

// comparisonOf puts a comparison into words.
func comparisonOf(c *compare.Comparison, f *chart.Figure) *comparisonPart {
	alone := *f
	alone.Lead = "" // the page begins with it
	p := &comparisonPart{Said: plain(words.Compared(c)), Margin: words.MarginText(c.Margin), Figure: inPage(&alone, "figure-comparison"), Level: words.ChangedLevel(c)}
	p.Figure.Heading = f.Title
	lines := [][]string{{"configuration", "host", "metric", "unit", "mean_before", "mean_after", "ratio", "ratio_low", "ratio_high", "relative", "level", "verdict"}}
	add := func(x compare.Change, host bool) {
		row := changeRow(c, x)
		p.Rows = append(p.Rows, row)
		if row.Emulated {
			p.Emulated++
		}
		m := x.Old.Metric
		lines = append(lines, []string{words.ChangedWhere(c, x), fmt.Sprint(host), m.Name, m.Unit, exact(x.Old.Mean), exact(x.New.Mean),
			exact(x.Ratio.Value), exact(x.Ratio.Low), exact(x.Ratio.High), fmt.Sprint(x.Relative), exact(x.Level), string(x.Answer)})
	}
	for _, x := range c.Changes {
		add(x, false)
	}
	for _, x := range c.Host {
		add(x, true)
	}
	p.CSV = sheetOf("comparison", lines)
	for _, d := range words.Doubts(c.Differences) {
		p.Differs = append(p.Differs, words.Sentence(d))
	}
	side := func(s *data.Summary, only []*data.Row) comparisonSide {
		side := comparisonSide{Name: folderName(s.Folders[0].Dir)}
		side.Checks, _ = checks(s, treatmentNames(s))
		for _, r := range only {
			side.Only = append(side.Only, fullName(s, r.Treatment, r.Host))
		}
		return side
	}
	p.Old, p.New = side(c.Old, c.Gone), side(c.New, c.Added)
	return p
}

// changeRow is one change. Bare metal, to which the others are relative, has no verdict.
func changeRow(c *compare.Comparison, x compare.Change) comparisonRow {
	row := comparisonRow{cardRow: cardRow{Name: words.ChangedWhere(c, x), Change: "–"}, Old: words.Mean(x.Old), New: words.Mean(x.New), Emulated: !x.Old.Representative || !x.New.Representative}
	if !math.IsNaN(x.Ratio.Value) {
		row.Change, row.Interval = inChange(x.Ratio)
	}
	switch {
	case row.Emulated:
		row.Verdict = words.NotVMsCost
		return row
	case x.Answer == "":
		row.Verdict = words.HostsChange(c)
		return row
	}
	row.Verdict, row.Sign, row.Class = words.VerdictOf(x.Old, x.Answer), verdictSigns[x.Answer], string(x.Answer)
	if x.Answer == stats.Inconclusive {
		row.Note = words.ChangedBy(c, x)
	}
	return row
}

// publish writes a page and its figures into a folder, the page last: it links to the figures.
func publish(out string, page []byte, figs []chart.Figure, date time.Time) ([]string, error) {
	root, dir, err := outFolders(out)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	defer dir.Close()
	files := []string{filepath.Join(out, PageName)}
	for i := range figs {
		made, err := figureFiles(&figs[i], date)
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		for _, it := range made {
			name := figs[i].File + it.ext
			if err := durable.WriteFileIn(dir, name, it.data, 0o644); err != nil {
				return nil, fmt.Errorf("page: %w", err)
			}
			files = append(files, filepath.Join(out, FiguresDir, name))
		}
	}
	if err := durable.WriteFileIn(root, PageName, page, 0o644); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return files, nil
}
