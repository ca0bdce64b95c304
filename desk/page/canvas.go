package page

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// fonts names the font that was measured, then others of the same widths, then what there is.
const fonts = `'Liberation Sans',Arial,Helvetica,Arimo,sans-serif`

// svgText is an SVG canvas that anchors texts, which the library's own does not. It says where by a control
// character at a text's beginning, which rawSVG replaces; texts have none of their own (see plain).
type svgText struct{ *vgsvg.Canvas }

const anchors = "\x01\x02\x03" // start, middle, end

func (c svgText) fillAnchored(f font.Face, pt vg.Point, s string, align float64) {
	i := int(2 * align)
	c.FillString(f, pt, anchors[i:i+1]+s)
}

var anchored = strings.NewReplacer(">\x01", ">", ">\x02", ` text-anchor="middle">`, ">\x03", ` text-anchor="end">`)

// rawSVG draws a scene as an SVG document.
func rawSVG(s scene) (string, error) {
	c := svgText{vgsvg.NewWith(vgsvg.UseWH(s.w, s.h))}
	s.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", fmt.Errorf("drawing a figure as SVG: %w", err)
	}
	// The SVG library writes style="…" itself; a family's quotes are single ones and fit inside.
	return strings.ReplaceAll(anchored.Replace(b.String()), "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal", "font-family:"+fonts), nil
}

// An SVG document starts with a header up to and including its <svg …> tag.
var svgHeader = regexp.MustCompile(`(?s)^.*?<svg [^>]*viewBox="([^"]*)"[^>]*>`)

// svgFile makes a figure's file: on white, for documents that know nothing of schemes.
func svgFile(f *figure) ([]byte, error) {
	s := wide(f)
	raw, err := rawSVG(s)
	if err != nil {
		return nil, err
	}
	m := svgHeader.FindStringSubmatchIndex(raw)
	if m == nil {
		return nil, fmt.Errorf("drawing %q as SVG: no <svg> tag in what the library wrote", f.title)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]g\" height=\"%[2]g\" viewBox=\"0 0 %[1]g %[2]g\" role=\"img\" aria-labelledby=\"title desc\">\n"+
		"<title id=\"title\">%[3]s</title>\n<desc id=\"desc\">%[4]s</desc>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		s.w.Points(), s.h.Points(), html.EscapeString(f.title), html.EscapeString(f.alt))
	b.WriteString(raw[m[1]:])
	return b.Bytes(), nil
}

// svgInline makes a figure's element in the page, its colours replaced by the page's variables. id is unique in
// the page.
func svgInline(f *figure, s scene, id, class string) (string, error) {
	raw, err := rawSVG(s)
	if err != nil {
		return "", err
	}
	m := svgHeader.FindStringSubmatchIndex(raw)
	if m == nil {
		return "", fmt.Errorf("drawing %q as SVG: no <svg> tag in what the library wrote", f.title)
	}
	head := fmt.Sprintf(`<svg class="%[1]s" viewBox="0 0 %[2]g %[3]g" width="%[2]g" height="%[3]g" role="img" aria-labelledby="%[4]s-t %[4]s-d"><title id="%[4]s-t">%[5]s</title><desc id="%[4]s-d">%[6]s</desc>`,
		class, s.w.Points(), s.h.Points(), id, html.EscapeString(f.title), html.EscapeString(f.alt))
	return head + themed(raw[m[1]:]), nil
}

// styles finds the style attributes that the SVG library wrote, the only place where colours are. Texts
// cannot hold one: the library escapes their quotes.
var styles = regexp.MustCompile(`style="[^"]*"`)

// themed replaces the figures' colours by the page's variables.
func themed(svg string) string {
	var pairs []string
	add := func(c color.NRGBA, name string) {
		pairs = append(pairs, svgColour(c), "var(--"+name+")")
	}
	add(paper, "paper")
	add(ink, "ink")
	add(muted, "muted")
	add(grid, "grid")
	names := make([]string, 0, len(strong))
	for p := range strong {
		names = append(names, p)
	}
	sort.Strings(names)
	for _, p := range names {
		name := p
		if name == "" {
			name = "other"
		}
		add(strong[p], name)
		add(light[p], name+"-light")
	}
	r := strings.NewReplacer(append(pairs, "font-family:"+fonts, "font-family:var(--figure-font)")...)
	return styles.ReplaceAllStringFunc(svg, r.Replace)
}

// svgColour writes a colour as the SVG library does, with its rounding.
func svgColour(c color.Color) string {
	r, g, b, alpha := c.RGBA()
	a := 255.0 / float64(alpha)
	return fmt.Sprintf("#%02X%02X%02X", int(float64(r)*a), int(float64(g)*a), int(float64(b)*a))
}

// pdfText is a PDF canvas that takes text in UTF-8. The library's own takes Windows-1252, the encoding of the fonts
// that it embeds.
type pdfText struct{ *vgpdf.Canvas }

var pdfWords = strings.NewReplacer("−", "-", "∞", "infinity")

// FillString writes what the encoding has; other characters as a question mark.
func (c pdfText) FillString(f font.Face, pt vg.Point, s string) {
	s = pdfWords.Replace(s)
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if e, ok := charmap.Windows1252.EncodeRune(r); ok {
			b = append(b, e)
		} else {
			b = append(b, '?')
		}
	}
	c.Canvas.FillString(f, pt, string(b))
}

// The PDF library's dates are the process's; one figure at a time sets them.
var pdfDates sync.Mutex

// pdfFile makes a figure's PDF, dated with the study's time so that the same folder gives the same bytes.
func pdfFile(f *figure, date time.Time) ([]byte, error) {
	pdfDates.Lock()
	defer pdfDates.Unlock()
	fpdf.SetDefaultCreationDate(date)
	fpdf.SetDefaultModificationDate(date)
	fpdf.SetDefaultCatalogSort(true)
	s := wide(f)
	c := pdfText{vgpdf.New(s.w, s.h)}
	s.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("drawing %q as PDF: %w", f.title, err)
	}
	return b.Bytes(), nil
}
