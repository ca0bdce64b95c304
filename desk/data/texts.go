package data

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"tare/notebook"
)

// maxTexts bounds how many kinds of text are kept, and maxText how many bytes of each: a folder is not trusted to have
// few and short ones.
const (
	maxTexts = 500
	maxText  = 500
)

// texts counts messages by kind. Messages of one kind have the same source, the same code and, except for numbers, the same
// arguments.
type texts struct {
	all     []*text
	byKind  map[textKind]*text
	dropped int // messages whose kind is not kept
}

type textKind struct {
	of   source
	text string
}

// source is what said a text.
type source int

const (
	ofTrial source = iota
	ofGuest
	ofWarmup
	ofTraced
)

// Text is a recorded message that stands for all of its kind.
type Text struct {
	First   *notebook.Message
	Differs bool // others of this kind have other numbers
}

// Cause is why trials failed: the commonest text, and how often it was said. Zero where none is recorded.
type Cause struct {
	Text  Text
	Times int
	Alone bool // there is no other
}

type text struct {
	Text
	of    source
	count int
	who   map[string]bool
}

// add counts a message about a treatment; who is its ID, or empty. A damaged folder may have null instead of a message.
func (t *texts) add(of source, m *notebook.Message, who string) {
	if m == nil {
		return
	}
	m = Bounded(m)
	kind := textKind{of, kindOf(m)}
	e := t.byKind[kind]
	if e == nil {
		if len(t.all) >= maxTexts {
			t.dropped++
			return
		}
		if t.byKind == nil {
			t.byKind = map[textKind]*text{}
		}
		e = &text{Text: Text{First: m}, of: of, who: map[string]bool{}}
		t.byKind[kind] = e
		t.all = append(t.all, e)
	}
	e.count++
	e.Differs = e.Differs || !m.Equal(e.First)
	if who != "" {
		e.who[who] = true
	}
}

// Shortened is a text with no more than maxText bytes of it.
func Shortened(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// Bounds of a message's arguments.
const (
	maxArgs   = 16
	maxDepth  = 8  // a start that failed in a treatment that was given up has five around it
	maxValues = 64 // arguments and items of lists, with those of the messages inside
)

// Bounded returns the message with texts of at most maxText bytes, at most maxArgs arguments, at most maxDepth levels of nested messages,
// and at most maxValues values in all.
func Bounded(m *notebook.Message) *notebook.Message {
	left := maxValues
	return boundedTo(m, maxDepth, &left)
}

// boundedTo counts values down in left.
func boundedTo(m *notebook.Message, depth int, left *int) *notebook.Message {
	if m == nil {
		return nil
	}
	b := &notebook.Message{Code: Shortened(m.Code)}
	for _, name := range slices.Sorted(maps.Keys(m.Args))[:min(len(m.Args), maxArgs)] {
		if *left == 0 {
			break
		}
		*left--
		v := m.Args[name]
		switch of := v.(type) {
		case string:
			v = Shortened(of)
		case []string:
			n := min(len(of), maxArgs, *left)
			*left -= n
			v = each(of[:n], Shortened)
		case *notebook.Message:
			if depth == 0 {
				continue
			}
			v = boundedTo(of, depth-1, left)
		}
		if b.Args == nil {
			b.Args = map[string]any{}
		}
		b.Args[Shortened(name)] = v
	}
	return b
}

func each(all []string, f func(string) string) (out []string) {
	for _, s := range all {
		out = append(out, f(s))
	}
	return out
}

// kindOf is a message without its numbers.
func kindOf(m *notebook.Message) string {
	var b strings.Builder
	b.WriteString(m.Code)
	for _, name := range slices.Sorted(maps.Keys(m.Args)) {
		b.WriteString("\n" + name + "\t")
		switch v := m.Args[name].(type) {
		case float64:
		case *notebook.Message:
			b.WriteString("(" + kindOf(v) + ")")
		default: // a text from outside may have numbers
			b.WriteString(withoutNumbers(fmt.Sprint(v)))
		}
	}
	return b.String()
}

// commonest is the cause said most often, the first of those.
func (t *texts) commonest() Cause {
	var most *text
	for _, e := range t.all {
		if most == nil || e.count > most.count {
			most = e
		}
	}
	if most == nil {
		return Cause{}
	}
	return Cause{Text: most.Text, Times: most.count, Alone: len(t.all) == 1}
}

// withoutNumbers makes each run of digits, with the point or comma in it, one sign.
func withoutNumbers(s string) string {
	b := make([]byte, 0, len(s))
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	for i := 0; i < len(s); i++ {
		c := s[i]
		in := len(b) > 0 && b[len(b)-1] == '0'
		switch {
		case digit(c) && in:
		case digit(c):
			b = append(b, '0')
		case (c == '.' || c == ',') && in && i+1 < len(s) && digit(s[i+1]):
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// sample keeps some of a stream of dots, evenly drawn, and the smallest and the largest, in bounded memory. The same
// stream gives the same sample.
type sample struct {
	kept      []Dot
	every     int // each so many-th is kept
	of        int // all that were there
	low, high Dot
}

func (s *sample) add(d Dot, limit int) {
	if s.of == 0 {
		s.every, s.low, s.high = 1, d, d
	}
	if d.Value < s.low.Value {
		s.low = d
	}
	if d.Value > s.high.Value {
		s.high = d
	}
	if s.of%s.every == 0 {
		if len(s.kept) >= 2*limit {
			for i := range len(s.kept) / 2 {
				s.kept[i] = s.kept[2*i]
			}
			s.kept = s.kept[:len(s.kept)/2]
			s.every *= 2
		}
		if s.of%s.every == 0 {
			s.kept = append(s.kept, d)
		}
	}
	s.of++
}

// pick gives at most limit of them (two at least), in order, the smallest and the largest among them.
func (s *sample) pick(limit int) []Dot {
	if len(s.kept) <= limit && s.every == 1 {
		return s.kept
	}
	limit = max(limit, 2)
	n := min(limit-2, len(s.kept))
	out := []Dot{s.low}
	for i := range n {
		d := s.kept[i*len(s.kept)/n]
		if d != s.low && d != s.high {
			out = append(out, d)
		}
	}
	return append(out, s.high)
}

// Printable makes what a results folder says safe for a terminal: a guest may have had a part in it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != ' ' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
