package notebook

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// decoder reads lines several times as fast as encoding/json (and its successor), which would need more than the time
// that a report on a million trials may take. It accepts what Tare itself writes: the known keys, each once at most,
// with values of the right kind and no white space. At anything else it gives the line to encoding/json, so the two
// cannot differ in what they accept, and what it accepts a fuzz test compares.
type decoder struct {
	b     []byte
	i     int
	names map[string]string // strings seen before: a study has few treatments and metrics, and many trials
}

// Bounds of decoder.names, and of the strings in it.
const (
	maxNames = 1 << 14
	maxName  = 1 << 8
)

// taker takes a value of one type; it says false where that is not written as Tare writes it.
type taker func(d *decoder, v reflect.Value) bool

// line decodes a line into what v points at, with the taker of its type.
func (d *decoder) line(line []byte, take taker, v any) error {
	d.b, d.i = line, 0
	to := reflect.ValueOf(v).Elem()
	if take(d, to) && d.i == len(d.b) {
		return nil
	}
	to.SetZero()
	return json.Unmarshal(line, v)
}

// takerOf makes the taker of a type. Of a type that no record has, it takes nothing.
func takerOf(t reflect.Type) taker {
	switch t {
	case reflect.TypeFor[time.Time]():
		return func(d *decoder, v reflect.Value) bool {
			raw := d.rawString()
			return raw != nil && v.Addr().Interface().(*time.Time).UnmarshalJSON(raw) == nil
		}
	case reflect.TypeFor[Message]():
		return func(d *decoder, v reflect.Value) bool {
			m, ok := d.message()
			if ok {
				*v.Addr().Interface().(*Message) = *m
			}
			return ok
		}
	case reflect.TypeFor[map[string]float64]():
		return takeMap((*decoder).float)
	case reflect.TypeFor[map[string]string]():
		return takeMap((*decoder).string)
	case reflect.TypeFor[map[string]*Message]():
		return takeMap((*decoder).message)
	}
	switch t.Kind() {
	case reflect.String:
		return func(d *decoder, v reflect.Value) bool {
			s, ok := d.string()
			v.SetString(s)
			return ok
		}
	case reflect.Int, reflect.Int64:
		return func(d *decoder, v reflect.Value) bool {
			n, ok := d.int()
			v.SetInt(n)
			return ok && v.Int() == n
		}
	case reflect.Float64:
		return func(d *decoder, v reflect.Value) bool {
			f, ok := d.float()
			v.SetFloat(f)
			return ok
		}
	case reflect.Bool:
		return func(d *decoder, v reflect.Value) bool {
			is := d.word("true")
			v.SetBool(is)
			return is || d.word("false")
		}
	case reflect.Pointer:
		elem := sync.OnceValue(func() taker { return takerOf(t.Elem()) }) // a Trace has a Trace
		return func(d *decoder, v reflect.Value) bool {
			v.Set(reflect.New(t.Elem()))
			return elem()(d, v.Elem())
		}
	case reflect.Slice:
		return takeList(t)
	case reflect.Struct:
		return takeStruct(t)
	}
	return func(*decoder, reflect.Value) bool { return false }
}

func takeList(t reflect.Type) taker {
	elem := takerOf(t.Elem())
	return func(d *decoder, v reflect.Value) bool {
		if !d.next('[') {
			return false
		}
		room := 1
		if t.Elem().Kind() != reflect.Struct {
			room += d.count(',', ']')
		}
		v.Grow(room) // an empty list is not nil
		if d.next(']') {
			return true
		}
		for n := 0; ; n++ {
			v.Grow(1)
			v.SetLen(n + 1)
			if !elem(d, v.Index(n)) {
				return false
			}
			if d.next(']') {
				return true
			}
			if !d.next(',') {
				return false
			}
		}
	}
}

func takeMap[T any](value func(*decoder) (T, bool)) taker {
	return func(d *decoder, v reflect.Value) bool {
		m := make(map[string]T, d.count(':', '}'))
		*v.Addr().Interface().(*map[string]T) = m
		return d.object(func(key []byte) bool {
			n := len(m)
			x, ok := value(d)
			m[d.known(key)] = x
			return ok && len(m) > n
		})
	}
}

func takeStruct(t reflect.Type) taker {
	type field struct {
		key  string
		take taker
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[i] = field{key, takerOf(t.Field(i).Type)}
	}
	return func(d *decoder, v reflect.Value) bool {
		var seen uint64 // bits: no record has more fields
		at := 0         // keys are mostly written in the order of the fields
		return d.object(func(key []byte) bool {
			for range fields {
				i := at
				if at++; at == len(fields) {
					at = 0
				}
				if fields[i].key == string(key) {
					twice := seen&(1<<i) != 0
					seen |= 1 << i
					return !twice && fields[i].take(d, v.Field(i))
				}
			}
			return false
		})
	}
}

// next takes the byte c where it is next. Tare writes no white space.
func (d *decoder) next(c byte) bool {
	if d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

// word takes a word where it is next.
func (d *decoder) word(w string) bool {
	if bytes.HasPrefix(d.b[d.i:], []byte(w)) {
		d.i += len(w)
		return true
	}
	return false
}

// count is how often c stands before the next end: about how many elements follow.
func (d *decoder) count(c, end byte) int {
	rest := d.b[d.i:]
	return bytes.Count(rest[:max(bytes.IndexByte(rest, end), 0)], []byte{c})
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

// rawValue takes a string or an object without reading it; nil if there is neither.
func (d *decoder) rawValue() []byte {
	start, depth := d.i, 0
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case '"':
			if d.rawString() == nil {
				return nil
			}
		case '{':
			depth++
			d.i++
		case '}':
			depth--
			d.i++
		default:
			if depth == 0 {
				return nil
			}
			d.i++
		}
		if depth == 0 {
			return d.b[start:d.i]
		}
	}
	return nil
}

// message takes a message.
func (d *decoder) message() (*Message, bool) {
	raw := d.rawValue()
	if raw == nil {
		return nil, false
	}
	m := new(Message)
	return m, m.UnmarshalJSON(raw) == nil
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

func (d *decoder) string() (string, bool) {
	start := d.i
	if b := d.plain(); b != nil {
		return d.known(b), true
	}
	d.i = start
	raw := d.rawString()
	if raw == nil {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// known is the text as a string, the same one each time where it is short.
func (d *decoder) known(b []byte) string {
	known, ok := d.names[string(b)]
	if !ok {
		known = string(b)
		if d.names == nil || len(d.names) >= maxNames {
			d.names = map[string]string{}
		}
		if len(known) <= maxName {
			d.names[known] = known
		}
	}
	return known
}

// int takes a whole number of up to 18 digits, which cannot overflow.
func (d *decoder) int() (n int64, ok bool) {
	negative := d.next('-')
	start := d.i
	for d.i < len(d.b) && '0' <= d.b[d.i] && d.b[d.i] <= '9' && d.i-start < 18 {
		n = 10*n + int64(d.b[d.i]-'0')
		d.i++
	}
	if negative {
		n = -n
	}
	return n, d.i > start && (d.b[start] != '0' || d.i-start == 1)
}

// float takes a number by JSON's grammar.
func (d *decoder) float() (f float64, ok bool) {
	start := d.i
	d.next('-')
	whole := d.i
	if !d.digits() || d.b[whole] == '0' && d.i-whole > 1 {
		return 0, false
	}
	if d.next('.') && !d.digits() {
		return 0, false
	}
	if d.next('e') || d.next('E') {
		if !d.next('+') {
			d.next('-')
		}
		if !d.digits() {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(d.b[start:d.i]), 64) // short: it stays on the stack
	return f, err == nil
}

// digits takes one or more.
func (d *decoder) digits() bool {
	start := d.i
	for d.i < len(d.b) && '0' <= d.b[d.i] && d.b[d.i] <= '9' {
		d.i++
	}
	return d.i > start
}
