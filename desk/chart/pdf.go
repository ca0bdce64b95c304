package chart

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
)

// PDF is the figure for papers: one page as large as the picture, its font embedded. It bears the date given, so that the
// same study gives the same bytes. An error is the PDF library's.
func (f *Figure) PDF(date time.Time) ([]byte, error) {
	c := f.Picture
	p := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: c.w, Ht: c.h}})
	p.SetCreationDate(date)
	p.SetModificationDate(date)
	p.SetCatalogSort(true)
	p.SetMargins(0, 0, 0)
	p.SetAutoPageBreak(false, 0)
	p.SetTitle(f.Title, true)
	p.AddUTF8FontFromBytes("sans", "", liberationsansregular.TTF)
	p.AddPage()
	for _, it := range c.list {
		switch it := it.(type) {
		case shape:
			it.pdf(p)
		case label:
			p.SetFont("sans", "", it.size)
			p.SetTextColor(components(it.colour))
			p.Text(it.x-it.width*[]float64{start: 0, middle: 0.5, end: 1}[it.anchor], it.y, embedded(it.text))
		}
	}
	var b bytes.Buffer
	if err := p.Output(&b); err != nil {
		return nil, fmt.Errorf("drawing %q as PDF: %w", f.Title, err)
	}
	return b.Bytes(), nil
}

func (s *shape) pdf(p *fpdf.Fpdf) {
	how := ""
	if s.fill != none {
		p.SetFillColor(components(s.fill))
		how = "F"
	}
	if s.stroke != none {
		p.SetDrawColor(components(s.stroke))
		p.SetLineWidth(s.width)
		p.SetDashPattern(s.dash, 0)
		how += "D"
	}
	p.SetLineCapStyle("butt")
	if s.round {
		p.SetLineCapStyle("round")
	}
	for _, l := range s.lines {
		p.MoveTo(l[0].x, l[0].y)
		for _, q := range l[1:] {
			p.LineTo(q.x, q.y)
		}
		if len(l) == 1 {
			p.LineTo(l[0].x, l[0].y)
		}
		if s.closed {
			p.ClosePath()
		}
	}
	p.DrawPath(how)
}

// components are a colour's red, green and blue, from 0 to 255.
func components(c colour) (r, g, b int) {
	v, err := strconv.ParseUint(strings.TrimPrefix(rgb[c], "#"), 16, 32)
	if err != nil {
		panic(fmt.Sprintf("chart: there is no colour %q", c))
	}
	return int(v >> 16), int(v >> 8 & 0xff), int(v & 0xff)
}

// embedded replaces what the font lacks by a question mark.
func embedded(s string) string {
	return strings.Map(func(r rune) rune {
		if _, has := advance(r); !has {
			return '?'
		}
		return r
	}, s)
}
