package export

import (
	"bufio"
	"encoding/json"
	"io"
)

// jsonFormat is an array, one object a line.
var jsonFormat = Format{Name: "json", open: openJSON}

func openJSON(w io.Writer) (put func(*Row) error, end func() error) {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
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
