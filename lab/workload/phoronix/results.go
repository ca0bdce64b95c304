package phoronix

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"tare/notebook"
)

// parser says how to read one figure from a test's output. It is an element of results-definition.xml.
type parser struct {
	Template   string `xml:"OutputTemplate"`
	Line       string `xml:"LineHint"`
	LineBefore string `xml:"LineBeforeHint"`
	Before     string `xml:"ResultBeforeString"`
	After      string `xml:"ResultAfterString"`
	ToSpace    string `xml:"TurnCharsToSpace"`
	Key        string `xml:"ResultKey"`
	Scale      string `xml:"ResultScale"`
	Proportion string `xml:"ResultProportion"`
	Says       string `xml:"ArgumentsDescription"`
	SaysToo    string `xml:"AppendToArgumentsDescription"`

	// Tare's expressions cannot say these.
	LineAfter    string `xml:"LineAfterHint"`
	Arguments    string `xml:"MatchToTestArguments"`
	Multiply     string `xml:"MultiplyResultBy"`
	Divide       string `xml:"DivideResultBy"`
	Divisor      string `xml:"DivideResultDivisor"`
	Multi        string `xml:"MultiMatch"`
	Format       string `xml:"FileFormat"`
	DeleteBefore string `xml:"DeleteOutputBefore"`
	DeleteAfter  string `xml:"DeleteOutputAfter"`
}

var (
	placeOf = regexp.MustCompile(`#_(\w+)_#`)
	numeric = regexp.MustCompile(`^[-+]?[0-9.,:]+$`)
)

// number is a number in an expression.
const number = `([0-9.]+(?:[eE][-+]?[0-9]+)?)`

// metrics are the profile's figures. Platforms are compared by the first.
func (d *definition) metrics(profile fs.FS) (first metric, others []metric, err error) {
	var list struct {
		Parsers []parser `xml:"ResultsParser"`
	}
	if err := decode(profile, "results-definition.xml", &list); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return first, nil, err
	}
	if len(list.Parsers) == 0 {
		if !strings.EqualFold(strings.TrimSpace(d.Scale), "seconds") || d.Proportion != "LIB" {
			return first, nil, fmt.Errorf("its figure, in %q, is neither read from its output nor the run time of its program", d.Scale)
		}
		return metric{Name: "execution time", Unit: "s", Better: notebook.Lower, Match: `^seconds: ` + number + `$`}, nil, nil
	}
	var all []metric
	for i, p := range list.Parsers {
		if err := p.possible(); err != nil {
			return first, nil, fmt.Errorf("results-definition.xml: %w", err)
		}
		better := notebook.Better("")
		switch cmp.Or(strings.TrimSpace(p.Proportion), strings.TrimSpace(d.Proportion)) {
		case "HIB":
			better = notebook.Higher
		case "LIB":
			better = notebook.Lower
		default:
			return first, nil, fmt.Errorf("its figure does not say whether higher or lower is better: must be HIB or LIB")
		}
		places := placeOf.FindAllStringSubmatch(p.Template, -1)
		if len(places) == 0 || len(places) > 1 && p.Key == "" {
			return first, nil, fmt.Errorf("results-definition.xml: %q: must have one place for the figure, as in #_RESULT_#", p.Template)
		}
		for _, place := range places {
			m := metric{Name: d.Title, Unit: cmp.Or(strings.TrimSpace(p.Scale), strings.TrimSpace(d.Scale)), Better: better, Match: p.expression(place[0])}
			switch {
			case len(places) > 1:
				m.Name = place[1]
			case i > 0 || p.Says+p.SaysToo != "":
				m.Name = cmp.Or(strings.TrimSpace(p.Says+" "+p.SaysToo), fmt.Sprintf("%s, figure %d", d.Title, i+1))
			}
			all = append(all, m)
		}
	}
	return all[0], all[1:], nil
}

func (p *parser) possible() error {
	for _, c := range []struct{ what, text string }{
		{"the line after a hint", p.LineAfter}, {"a figure by its arguments", p.Arguments}, {"a figure that is multiplied", p.Multiply}, {"a figure that is divided", p.Divide + p.Divisor},
		{"several matches", p.Multi}, {"a format of its own", p.Format}, {"a part of its output", p.DeleteBefore + p.DeleteAfter},
	} {
		if text := strings.TrimSpace(c.text); text != "" {
			return fmt.Errorf("it reads %s (%q), which Tare cannot import", c.what, text)
		}
	}
	if p.Template == "" {
		return errors.New("it reads no figure from the test's output")
	}
	return nil
}

// expression is the regular expression that finds the figure. It matches the figure's line of the template: the same words, and any numbers. The
// Phoronix Test Suite takes the word at the same place of a line with the hint.
func (p *parser) expression(place string) string {
	quoted := regexp.QuoteMeta
	switch {
	case p.Before != "":
		return number + `[ \t]*` + quoted(p.Before)
	case p.After != "":
		return quoted(p.After) + `[ \t]*` + number
	}
	gap := `[ \t` + regexp.MustCompile(`[\\\]^-]`).ReplaceAllString(p.ToSpace, `\$0`) + `]`
	line := ""
	for l := range strings.Lines(p.Template) {
		if strings.Contains(l, place) {
			line = l
		}
	}
	words := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t\r\n"+p.ToSpace, c) })
	var out strings.Builder
	if p.LineBefore != "" {
		out.WriteString(quoted(p.LineBefore) + `.*\n`)
	}
	out.WriteString(`^` + gap + `*`)
	hinted, rest := p.Line != "", ""
	for i, w := range words {
		before, after, here := strings.Cut(w, place)
		if here {
			out.WriteString(quoted(before) + number + quoted(strings.TrimRight(after, ",;")))
			if i+1 < len(words) && !numeric.MatchString(words[i+1]) && !strings.Contains(words[i+1], "#_") {
				rest = gap + `+` + quoted(words[i+1])
			}
			break
		}
		// A hint has the words that tell the line from others. Words that are not in the hint may be any.
		if numeric.MatchString(w) || strings.Contains(w, "#_") || hinted && !strings.Contains(p.Line, w) {
			out.WriteString(`\S+`)
		} else {
			out.WriteString(quoted(w))
		}
		out.WriteString(gap + `+`)
	}
	if hinted && !strings.Contains(out.String(), quoted(p.Line)) && strings.Contains(line, p.Line) && strings.Index(line, p.Line) > strings.Index(line, place) {
		rest = `.*` + quoted(p.Line)
	}
	return out.String() + rest
}
