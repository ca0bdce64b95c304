package notebook

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// decoder reads lines of trials several times as fast as encoding/json (and about twice as fast as its successor), which
// would need most of the time that a summary of a million trials may take. It accepts what Tare itself writes: the known keys, each once at most, with
// values of the right kind. At anything else it gives the line to encoding/json, so the two cannot differ in what
// they accept, and what it accepts a fuzz test compares.
type decoder struct {
	b     []byte
	i     int
	lean  bool
	names map[string]string // strings seen before: a study has few treatments and many trials
}

// maxNames bounds decoder.names.
const maxNames = 1 << 14

func (d *decoder) trial(line []byte, t *Trial, lean bool) error {
	d.b, d.i, d.lean = line, 0, lean
	if !d.fast(t) {
		*t = Trial{}
		if err := json.Unmarshal(line, t); err != nil {
			return err
		}
	}
	if lean {
		t.strip()
	}
	return nil
}

// strip takes off what a lean trial does not have.
func (t *Trial) strip() {
	t.Command, t.Output, t.Signal, t.Load, t.Start = nil, "", "", nil, time.Time{}
	if !t.Traced {
		t.Usage, t.Trace = Usage{}, nil
	}
}

func (d *decoder) fast(t *Trial) bool {
	var seen uint32
	ok := d.object(func(key []byte) bool {
		var bit uint32
		ok := false
		switch string(key) {
		case "treatment":
			bit, ok = 1<<0, d.name(&t.Treatment)
		case "round":
			bit, ok = 1<<1, d.int(&t.Round)
		case "guest":
			bit, ok = 1<<2, d.name(&t.Guest)
		case "trial":
			bit, ok = 1<<3, d.int(&t.Index)
		case "warmup":
			bit, ok = 1<<4, d.bool(&t.Warmup)
		case "start":
			bit = 1 << 5
			if raw := d.rawString(); raw != nil && t.Start.UnmarshalJSON(raw) == nil {
				ok = true
				if d.lean {
					t.Start = time.Time{}
				}
			}
		case "command":
			bit, ok = 1<<6, d.strings(&t.Command, d.lean)
		case "value":
			bit, ok = 1<<7, d.float(&t.Value)
		case "elapsed_s":
			bit, ok = 1<<8, d.float(&t.ElapsedS)
		case "host_s":
			bit, ok = 1<<9, d.float(&t.HostS)
		case "failure":
			bit, ok = 1<<10, d.name(&t.Failure)
		case "exit":
			bit, ok = 1<<11, d.int(&t.Exit)
		case "signal":
			bit, ok = 1<<12, d.name(&t.Signal)
			if d.lean {
				t.Signal = ""
			}
		case "usage":
			bit, ok = 1<<13, d.usage(&t.Usage)
		case "output":
			bit = 1 << 14
			if raw := d.rawString(); raw != nil {
				ok = json.Unmarshal(raw, &t.Output) == nil
				if d.lean {
					t.Output = ""
				}
			}
		case "warnings":
			bit, ok = 1<<15, d.strings(&t.Warnings, false)
		case "figures":
			bit, ok = 1<<16, d.figures(&t.Figures)
		case "load":
			bit = 1 << 17
			if raw := d.rawObject(); raw != nil {
				t.Load = &Load{}
				ok = json.Unmarshal(raw, t.Load) == nil
				if d.lean {
					t.Load = nil
				}
			}
		case "explained":
			bit, ok = 1<<18, d.bool(&t.Traced)
		case "probes":
			bit = 1 << 19
			start := d.i
			t.Trace = &Trace{}
			if ok = d.trace(t.Trace); ok {
				break
			}
			d.i = start
			if raw := d.rawObject(); raw != nil {
				t.Trace = &Trace{}
				ok = json.Unmarshal(raw, t.Trace) == nil
			}
		}
		ok = ok && seen&bit == 0
		seen |= bit
		return ok
	})
	return ok && d.i == len(d.b)
}

// trace takes an object of what most traced trials have of their tracers: names, and numbers by name. With anything else in
// it, encoding/json takes it.
func (d *decoder) trace(p *Trace) bool {
	var seen uint32
	return d.object(func(key []byte) bool {
		var bit uint32
		ok := false
		switch string(key) {
		case "looked":
			bit, ok = 1<<0, d.strings(&p.Looked, false)
		case "wall":
			bit, ok = 1<<1, d.figures(&p.Wall)
		case "figures":
			bit, ok = 1<<2, d.figures(&p.Figures)
		case "lost":
			bit, ok = 1<<3, d.int64(&p.Lost)
		}
		ok = ok && seen&bit == 0
		seen |= bit
		return ok
	})
}

// rawObject takes what an object's braces enclose, and looks at nothing in it; nil where there is none.
func (d *decoder) rawObject() []byte {
	start := d.i
	if start == len(d.b) || d.b[start] != '{' {
		return nil
	}
	for depth := 0; d.i < len(d.b); {
		switch d.b[d.i] {
		case '"':
			if d.rawString() == nil {
				return nil
			}
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		d.i++
		if depth == 0 {
			return d.b[start:d.i]
		}
	}
	return nil
}

func (d *decoder) usage(u *Usage) bool {
	var seen uint32
	return d.object(func(key []byte) bool {
		var bit uint32
		ok := false
		switch string(key) {
		case "user_s":
			bit, ok = 1<<0, d.float(&u.UserS)
		case "system_s":
			bit, ok = 1<<1, d.float(&u.SystemS)
		case "max_rss":
			bit, ok = 1<<2, d.int64(&u.MaxRSS)
		case "minflt":
			bit, ok = 1<<3, d.int64(&u.MinFlt)
		case "majflt":
			bit, ok = 1<<4, d.int64(&u.MajFlt)
		case "vcsw":
			bit, ok = 1<<5, d.int64(&u.VCSw)
		case "ivcsw":
			bit, ok = 1<<6, d.int64(&u.IVCSw)
		}
		ok = ok && seen&bit == 0
		seen |= bit
		return ok
	})
}

// figures takes an object of numbers.
func (d *decoder) figures(m *map[string]float64) bool {
	*m = map[string]float64{}
	return d.object(func(key []byte) bool {
		var v float64
		if _, twice := (*m)[string(key)]; twice || !d.float(&v) {
			return false
		}
		(*m)[d.known(key)] = v
		return true
	})
}

// next takes the byte c where it is next. Tare writes no white space.
func (d *decoder) next(c byte) bool {
	if d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

func (d *decoder) object(field func(key []byte) bool) bool {
	if !d.next('{') {
		return false
	}
	if d.next('}') {
		return true
	}
	for {
		key := d.plain()
		if key == nil || !d.next(':') || !field(key) {
			return false
		}
		if d.next('}') {
			return true
		}
		if !d.next(',') {
			return false
		}
	}
}

// rawString takes a string with its quotes, and looks at nothing in it; nil where there is none.
func (d *decoder) rawString() []byte {
	start := d.i
	if !d.next('"') {
		return nil
	}
	for ; d.i < len(d.b); d.i++ {
		switch d.b[d.i] {
		case '"':
			d.i++
			return d.b[start:d.i]
		case '\\':
			d.i++
		}
	}
	return nil
}

// plain takes a string of ASCII without escapes and gives what is between its quotes; nil where there is none.
func (d *decoder) plain() []byte {
	if !d.next('"') {
		return nil
	}
	start := d.i
	for ; d.i < len(d.b); d.i++ {
		c := d.b[d.i]
		if c == '"' {
			d.i++
			return d.b[start : d.i-1 : d.i-1]
		}
		if c < ' ' || c == '\\' || c >= 0x80 {
			return nil
		}
	}
	return nil
}

// name takes a string that is likely to come again.
func (d *decoder) name(s *string) bool {
	start := d.i
	b := d.plain()
	if b == nil {
		d.i = start
		raw := d.rawString()
		return raw != nil && json.Unmarshal(raw, s) == nil
	}
	*s = d.known(b)
	return true
}

// known is the text as a string, the same one each time.
func (d *decoder) known(b []byte) string {
	known, ok := d.names[string(b)]
	if !ok {
		if d.names == nil || len(d.names) >= maxNames {
			d.names = map[string]string{}
		}
		known = string(b)
		d.names[known] = known
	}
	return known
}

// strings takes a list of strings, and keeps none where they are to be passed over.
func (d *decoder) strings(list *[]string, pass bool) bool {
	if !d.next('[') {
		return false
	}
	if !pass {
		*list = []string{}
	}
	if d.next(']') {
		return true
	}
	for {
		start := d.i
		if !pass {
			var s string
			if !d.name(&s) {
				return false
			}
			*list = append(*list, s)
		} else if d.plain() == nil {
			d.i = start
			if !json.Valid(d.rawString()) {
				return false
			}
		}
		if d.next(']') {
			return true
		}
		if !d.next(',') {
			return false
		}
	}
}

func (d *decoder) bool(b *bool) bool {
	switch rest := d.b[d.i:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		d.i += len("true")
		*b = true
	case bytes.HasPrefix(rest, []byte("false")):
		d.i += len("false")
		*b = false
	default:
		return false
	}
	return true
}

func (d *decoder) int(n *int) bool {
	var v int64
	if !d.int64(&v) || int64(int(v)) != v {
		return false
	}
	*n = int(v)
	return true
}

// int64 takes a whole number of up to 18 digits, which cannot overflow.
func (d *decoder) int64(n *int64) bool {
	negative := d.next('-')
	start := d.i
	var v int64
	for d.i < len(d.b) && '0' <= d.b[d.i] && d.b[d.i] <= '9' && d.i-start < 18 {
		v = 10*v + int64(d.b[d.i]-'0')
		d.i++
	}
	if d.i == start || d.b[start] == '0' && d.i-start > 1 {
		return false
	}
	if negative {
		v = -v
	}
	*n = v
	return true
}

// float takes a number by JSON's grammar.
func (d *decoder) float(f *float64) bool {
	start := d.i
	d.next('-')
	whole := d.i
	if !d.digits() || d.b[whole] == '0' && d.i-whole > 1 {
		return false
	}
	if d.next('.') && !d.digits() {
		return false
	}
	if d.next('e') || d.next('E') {
		if !d.next('+') {
			d.next('-')
		}
		if !d.digits() {
			return false
		}
	}
	v, err := strconv.ParseFloat(string(d.b[start:d.i]), 64) // short: it stays on the stack
	*f = v
	return err == nil
}

// digits takes one or more.
func (d *decoder) digits() bool {
	start := d.i
	for d.i < len(d.b) && '0' <= d.b[d.i] && d.b[d.i] <= '9' {
		d.i++
	}
	return d.i > start
}
