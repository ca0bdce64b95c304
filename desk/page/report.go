// Package page makes one page and its figures from studies' folders. The page is a single HTML file that opens
// without a network, holds no program, and reads on a phone, in print and in the dark. The figures are in it, and
// beside it as SVG and PDF for use elsewhere.
//
// A report is a pure function of its folders: the same folders give the same bytes, whenever and wherever it is
// made. What guests printed and what users named is hostile text here: it is escaped everywhere, and stripped of
// characters that could hide or reorder what stands around them.
package page

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/model"
)

// Options say what a report is of.
type Options struct {
	// Summary says how the folders are read, and what the ratios are relative to.
	Summary data.Options

	// Claims are judged and shown as a table; none: no such table.
	Claims []claims.Claim

	// Model says how platform and size are told apart, and what overhead is borne.
	Model model.Options
}

// FiguresDir is the folder beside the page in which the figures are.
const FiguresDir = "figures"

// PageName is the page's file name.
const PageName = "report.html"

// Write reads the folders and writes report.html and figures/ into out, or into the first folder where out is
// empty. It returns the paths of the files written, the page first. On an error no half file is left; files of
// the same names from an earlier report are replaced, whole.
func Write(dirs []string, out string, opt Options) ([]string, error) {
	if len(dirs) == 0 {
		return nil, errors.New("page: no folder given: name one or more that `tare run` wrote")
	}
	if out == "" {
		out = dirs[0]
	}
	if opt.Summary.Dots == 0 {
		opt.Summary.Dots = dotsPerMark
	}
	s, err := data.Read(dirs, opt.Summary)
	if err != nil {
		return nil, err
	}
	return WriteSummary(s, out, opt)
}

// WriteSummary writes the report of a summary that was read already; see Write.
func WriteSummary(s *data.Summary, out string, opt Options) ([]string, error) {
	acc, err := explained(s)
	if err != nil {
		return nil, err
	}
	return write(s, acc, out, opt)
}

// write writes a report with the accounts of its explained trials; nil: there are none.
func write(s *data.Summary, acc *explain.Accounts, out string, opt Options) ([]string, error) {
	figs, accounts := figures(s), accountsOf(acc)
	part, err := why(acc, accounts)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	page, err := render(s, figs, part, opt)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	dir := filepath.Join(out, FiguresDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("page: making the folder of the figures: %w", err)
	}
	date := studyDate(s)
	files := []string{filepath.Join(out, PageName)}
	drawn := make([]*figure, 0, len(figs))
	for i := range figs {
		drawn = append(drawn, &figs[i])
	}
	for _, a := range accounts {
		for _, f := range []*figure{a.fall, a.spread} {
			if f != nil {
				drawn = append(drawn, f)
			}
		}
	}
	for _, f := range drawn {
		svg, err := svgFile(f)
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		pdf, err := pdfFile(f, date)
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		made := []struct {
			ext  string
			data []byte
		}{{".svg", svg}, {".pdf", pdf}}
		if f.stairs != nil {
			data, err := stairData(f)
			if err != nil {
				return nil, fmt.Errorf("page: %w", err)
			}
			made = append(made, struct {
				ext  string
				data []byte
			}{".csv", data})
		}
		for _, it := range made {
			name := filepath.Join(dir, f.file+it.ext)
			if err := replace(name, it.data); err != nil {
				return nil, err
			}
			files = append(files, name)
		}
	}
	// The page comes last: it links to the figures.
	if err := replace(files[0], page); err != nil {
		return nil, err
	}
	return files, nil
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

// replace writes a file whole or not at all.
func replace(name string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".tare-*")
	if err != nil {
		return fmt.Errorf("page: writing %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("page: writing %s: %w", name, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Chmod(0o644); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
