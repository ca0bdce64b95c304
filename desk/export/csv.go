package export

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"tare/desk/words"
	"tare/stats"
)

// csvFormat has a heading, lists and maps as JSON, and a NUL byte in a text as ␀.
var csvFormat = Format{
	Name: "csv", open: func(w io.Writer) (func(*Row) error, func() error) { return openCSV(w, asIs) },
	shown: func(w io.Writer) (func(*Row) error, func() error) { return openCSV(w, words.Plain) },
}

func asIs(text string) string { return text }

// heads are the columns' names: those that JSON has for a row's fields, in their order.
func heads() (names []string) {
	row := reflect.TypeFor[Row]()
	for i := range row.NumField() {
		names = append(names, row.Field(i).Tag.Get("json"))
	}
	return names
}

// cell writes one field of a row. What is not known is empty.
func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return strings.ReplaceAll(v.String(), "\x00", "␀")
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		if !stats.Finite(v.Float()) {
			return ""
		}
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	if t, is := v.Interface().(time.Time); is {
		return t.Format(time.RFC3339Nano)
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err) // lists and maps of strings, and of numbers that were read from JSON, always can be written
	}
	return string(b)
}

// openCSV writes each text as fit gives it.
func openCSV(w io.Writer, fit func(string) string) (put func(*Row) error, end func() error) {
	c := csv.NewWriter(w)
	cells := heads()
	headed := c.Write(cells)
	put = func(r *Row) error {
		row := reflect.ValueOf(r).Elem()
		for i := range cells {
			cells[i] = fit(cell(row.Field(i)))
		}
		return cmp.Or(headed, c.Write(cells))
	}
	end = func() error {
		c.Flush()
		return cmp.Or(headed, c.Error())
	}
	return put, end
}
