package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"tare/desk/words"
)

// Fonts names the fonts that a figure's texts are set in where the reader has them: those of the widths that it is laid
// out with, then any. Whichever it is, each text is fitted to its room (textLength), so that none overlaps another and
// all stay text that can be searched and read out.
const Fonts = `'Liberation Sans',Arial,Helvetica,Arimo,sans-serif`

// SVG is the figure's file: on white, for documents that know nothing of schemes.
func (f *Figure) SVG() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]s\" height=\"%[2]s\" viewBox=\"0 0 %[1]s %[2]s\" role=\"img\" aria-labelledby=\"title desc\" font-family=\"%[3]s\">\n"+
		"<title id=\"title\">%[4]s</title>\n<desc id=\"desc\">%[5]s</desc>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		coordinate(f.Picture.w), coordinate(f.Picture.h), Fonts, escape(f.Title), escape(f.Alt))
	f.Picture.svg(&b, func(c colour) string { return rgb[c] })
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// Inline is the figure as an element of a page, in the page's colours (the style variables --ink, --cn, …) and font
// (--figure-font). The id is to be unique in the page. All texts in it are escaped.
func (f *Figure) Inline(id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg viewBox=\"0 0 %[1]s %[2]s\" width=\"%[1]s\" height=\"%[2]s\" role=\"img\" aria-labelledby=\"%[3]s-t %[3]s-d\"><title id=\"%[3]s-t\">%[4]s</title><desc id=\"%[3]s-d\">%[5]s</desc>\n",
		coordinate(f.Picture.w), coordinate(f.Picture.h), id, escape(f.Title), escape(f.Alt))
	f.Picture.svg(&b, func(c colour) string { return "var(--" + string(c) + ")" })
	b.WriteString("</svg>")
	return b.String()
}

// svg writes what is drawn, an element a line.
func (c *Picture) svg(b *strings.Builder, paint func(colour) string) {
	for _, it := range c.list {
		switch it := it.(type) {
		case shape:
			it.svg(b, paint)
		case label:
			fmt.Fprintf(b, `<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs"`, coordinate(it.x), coordinate(it.y), coordinate(it.width))
			if it.anchor != start {
				fmt.Fprintf(b, ` text-anchor="%s"`, []string{middle: "middle", end: "end"}[it.anchor])
			}
			fmt.Fprintf(b, " style=\"font-size:%spx;fill:%s\">%s</text>\n", coordinate(it.size), paint(it.colour), escape(it.text))
		}
	}
}

func (s *shape) svg(b *strings.Builder, paint func(colour) string) {
	if s.titles != nil {
		b.WriteString(`<g style="` + s.look(paint) + "\">\n")
		for i, l := range s.lines {
			fmt.Fprintf(b, "<path d=\"%s\"><title>%s</title></path>\n", s.path(l), escape(s.titles[i]))
		}
		b.WriteString("</g>\n")
		return
	}
	b.WriteString(`<path d="`)
	for _, l := range s.lines {
		b.WriteString(s.path(l))
	}
	b.WriteString(`" style="` + s.look(paint) + "\"/>\n")
}

// path is one line of a shape, as the data of a path.
func (s *shape) path(l []point) string {
	var b strings.Builder
	for i, p := range l {
		if i == 0 {
			b.WriteByte('M')
		} else {
			b.WriteByte('L')
		}
		b.WriteString(coordinate(p.x) + " " + coordinate(p.y))
	}
	if s.closed {
		b.WriteByte('Z')
	} else if len(l) == 1 {
		b.WriteString("h0")
	}
	return b.String()
}

// look is a shape's style.
func (s *shape) look(paint func(colour) string) string {
	var b strings.Builder
	if s.fill == none {
		b.WriteString("fill:none")
	} else {
		b.WriteString("fill:" + paint(s.fill))
	}
	if s.stroke != none {
		fmt.Fprintf(&b, ";stroke:%s;stroke-width:%s", paint(s.stroke), coordinate(s.width))
	}
	if s.dash != nil {
		b.WriteString(";stroke-dasharray:")
		for i, d := range s.dash {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(coordinate(d))
		}
	}
	if s.round {
		b.WriteString(";stroke-linecap:round")
	}
	return b.String()
}

// escape makes any text fit to stand in XML.
func escape(s string) string { return html.EscapeString(words.Plain(s)) }

// coordinate writes a length to a tenth of a point: finer is not seen.
func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
