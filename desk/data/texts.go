package data

import (
	"fmt"
	"strings"
)

// maxTexts bounds how many kinds of text are kept, and maxText how many bytes of each: a folder is not trusted to have
// few and short ones.
const (
	maxTexts = 500
	maxText  = 500
)

// texts counts what was said, each kind once. Two texts are of one kind when they differ in their figures alone.
type texts struct {
	all     []*text
	byKind  map[string]*text
	dropped int // said, and of no kind that is kept
}

type text struct {
	first   string
	differs bool // others of this kind had other figures
	count   int
	who     map[string]bool
}

func (t *texts) add(s, who string) {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	kind := withoutFigures(s)
	e := t.byKind[kind]
	if e == nil {
		if len(t.all) >= maxTexts {
			t.dropped++
			return
		}
		if t.byKind == nil {
			t.byKind = map[string]*text{}
		}
		e = &text{first: s, who: map[string]bool{}}
		t.byKind[kind] = e
		t.all = append(t.all, e)
	}
	e.count++
	e.differs = e.differs || s != e.first
	if who != "" {
		e.who[who] = true
	}
}

func (e *text) String() string {
	if e.differs {
		return e.first + " (the figures differ)"
	}
	return e.first
}

func (t *texts) list() []string {
	var all []string
	for _, e := range t.all {
		all = append(all, e.String())
	}
	return all
}

// commonest is the text said most often, the first of those.
func (t *texts) commonest() string {
	var most *text
	for _, e := range t.all {
		if most == nil || e.count > most.count {
			most = e
		}
	}
	switch {
	case most == nil:
		return "no cause is recorded"
	case len(t.all) == 1:
		return most.String()
	}
	return fmt.Sprintf("%s (%d times, the commonest cause)", most, most.count)
}

// withoutFigures makes each run of digits, with the point or comma in it, one sign.
func withoutFigures(s string) string {
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
