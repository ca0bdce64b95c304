// Package page makes one page and its figures from studies' folders. The page is a single HTML file that opens
// without a network, holds no program, and reads on a phone, in print and in the dark. The page contains
// the figures. They are also next to it as SVG and PDF, for use elsewhere.
//
// A report is a pure function of its folders: the same folders give the same bytes at any time and on any host.
// This package treats output of guests and names from users as hostile text. It escapes them everywhere, and
// removes characters that could hide or reorder the surrounding text.
package page

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"tare/desk/chart"
	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/export"
	"tare/desk/model"
	"tare/desk/predict"
	"tare/desk/show"
	"tare/notebook/durable"
)

// Options say what a report is of.
type Options struct {
	// Claims are judged and shown as a table; none: no such table.
	Claims []claims.Claim

	// Model says how platform and size are separated, and what overhead is acceptable.
	Model model.Options
}

// FiguresDir is the folder of the figures, next to the page.
const FiguresDir = "figures"

// PageName is the page's file name.
const PageName = "report.html"

// WriteSummary writes report.html and figures/ of a summary into out. It returns the paths of the files written, the page
// first. On an error no half file is left; files of the same names from an earlier report are replaced, whole.
func WriteSummary(s *data.Summary, out string, opt Options) ([]string, error) {
	acc, err := explained(s)
	if err != nil {
		return nil, err
	}
	return write(s, acc, out, opt)
}

// write writes a report with the accounts of its traced trials; nil: there are none.
func write(s *data.Summary, acc *explain.Accounts, out string, opt Options) ([]string, error) {
	figs, accounts := ofPredictions(s), accountsOf(acc)
	figs = append(figs, chart.OfPanels(chart.Panels(s), show.Figures(s)...)...)
	whys := chart.OfAccounts(accounts)
	several := s.Several()
	ofSeveral := chart.OfSeveral(several)
	page, err := render(s, figs, severals(s, several, ofSeveral), why(acc, accounts, whys), opt)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	if h := chart.Heat(s); h != nil {
		figs = append(figs, *h)
	}
	figs = slices.Concat(figs, slices.Concat(ofSeveral...), slices.Concat(whys...))
	return publish(out, page, figs, studyDate(s))
}

// ofPredictions draws how good the predictions of a calibration are; nil: the folders are none.
func ofPredictions(s *data.Summary) []chart.Figure {
	if !slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return r.Treatment.Workload == predict.Probes && r.Trace != nil }) {
		return nil
	}
	c, err := predict.Calibrate(s)
	if err != nil {
		return nil // of several hosts, or of bare metal only
	}
	return chart.OfChecks(c.Check())
}

// outFolders makes and opens the folder of a report, and that of its figures.
func outFolders(out string) (root, figures *os.Root, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, nil, fmt.Errorf("cannot make a folder for the report: %w", err)
	}
	if root, err = durable.OpenFolder(out); err != nil {
		return nil, nil, fmt.Errorf("cannot write the report: %w; --out names another folder", err)
	}
	if figures, err = durable.MakeFolderIn(root, FiguresDir, 0o755); err != nil {
		root.Close()
		return nil, nil, fmt.Errorf("cannot write the report's figures: %w; --out names another folder", err)
	}
	return root, figures, nil
}

type file struct {
	ext  string
	data []byte
}

// figureFiles are the files of one figure.
func figureFiles(f *chart.Figure, date time.Time) ([]file, error) {
	pdf, err := f.PDF(date)
	if err != nil {
		return nil, err
	}
	list := []file{{".svg", f.SVG()}, {".pdf", pdf}}
	if f.Staircase != nil {
		var b bytes.Buffer
		if err := export.Staircase(&b, f.Staircase); err != nil {
			return nil, err
		}
		list = append(list, file{".csv", b.Bytes()})
	}
	return list, nil
}

// studyDate is when the first of the studies began: the only date that a report of it can have and stay the same.
func studyDate(s *data.Summary) time.Time {
	var first time.Time
	for _, f := range s.Folders {
		if t := f.Study.Created.UTC(); first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}
