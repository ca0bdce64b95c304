package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"tare/desk/words"
)

// jsonFormat is an array, one object a line.
var jsonFormat = Format{Name: "json", open: openJSON}

func openJSON(w io.Writer) (put func(*Row) error, end func() error) {
	b := bufio.NewWriter(w)
	e := NewEncoder(b)
	before := "[\n" // of the next row; its line's end is the encoder's
	put = func(r *Row) error {
		if _, err := b.WriteString(before); err != nil {
			return err
		}
		before = ","
		return e.Encode(r)
	}
	end = func() error {
		if before != "," {
			before = "[\n]\n"
		} else {
			before = "]\n"
		}
		if _, err := b.WriteString(before); err != nil {
			return err
		}
		return b.Flush()
	}
	return put, end
}

// NewEncoder encodes JSON that cannot control a terminal: it writes characters that do not print as \uXXXX, which parsers read as the same character.
// encoding/json itself does so only in the ASCII range.
func NewEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(printable{w})
	e.SetEscapeHTML(false)
	return e
}

// printable is a writer of JSON values, each whole in one call, as an Encoder writes them.
type printable struct{ w io.Writer }

func (p printable) Write(value []byte) (int, error) {
	if !bytes.ContainsFunc(value, hidden) {
		return p.w.Write(value)
	}
	out := make([]byte, 0, len(value)+64)
	for _, r := range string(value) { // an Encoder writes valid UTF-8
		switch {
		case !hidden(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(value), nil
}

// hidden says whether a character is not printed, within a string: outside strings, line ends are the only such characters of JSON.
func hidden(r rune) bool { return r != '\n' && words.Hidden(r) }
