// Package price reads price lists and says what an instance costs an hour. docs/advise.md has the format.
package price

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/notebook"
)

// List is a price list.
type List struct {
	Currency string
	lines    []line
}

// line is one price.
type line struct {
	number int
	of     string // Any, an instance type, a platform or an engine
	unit   unit
	amount float64
}

// Any is what a price is of that holds where no other of its unit does.
const Any = "*"

// unit is what a price is for.
type unit struct {
	name    string
	per     string  // what it is multiplied by
	hours   float64 // of its time
	licence bool    // it comes on top of what the machine costs
}

// What a price is multiplied by.
const (
	perInstance = "instance"
	perCore     = "core"
	perGB       = "gb"
	perHost     = "host"
)

// Hours of the times of units. A month is a twelfth of a year.
var times = []struct {
	name  string
	hours float64
}{{"hour", 1}, {"month", 365.25 * 24 / 12}, {"year", 365.25 * 24}}

// units are all that a list may have.
var units = func() (all []unit) {
	for _, per := range []string{perInstance, perCore, perGB, perHost} {
		for _, t := range times {
			all = append(all, unit{per + "-" + t.name, per, t.hours, false})
		}
	}
	for _, per := range []string{perCore, perHost} {
		for _, t := range times {
			all = append(all, unit{"licence-" + per + "-" + t.name, per, t.hours, true})
		}
	}
	return all
}()

// Units are the names of the units that a list may have.
func Units() (names []string) {
	for _, u := range units {
		names = append(names, u.name)
	}
	return names
}

// header is the first line of a list.
var header = []string{"of", "unit", "price", "currency"}

const (
	mostBytes = 1 << 20
	mostPrice = 1e12
)

// Read reads a price list. Errors name the line, and what is allowed there.
func Read(r io.Reader) (*List, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostBytes {
		return nil, fmt.Errorf("is longer than %d bytes", mostBytes)
	}
	in := csv.NewReader(bytes.NewReader(text))
	in.Comment, in.TrimLeadingSpace, in.FieldsPerRecord = '#', true, -1
	l := &List{}
	for first := true; ; first = false {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		number, _ := in.FieldPos(0)
		if first {
			if !slices.Equal(record, header) {
				return nil, fmt.Errorf("line %d: is %.100q: must be %s", number, strings.Join(record, ","), strings.Join(header, ","))
			}
			continue
		}
		if err := l.add(number, record); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if len(l.lines) == 0 {
		return nil, errors.New("has no prices: it needs a line such as *,core-hour,0.04,USD under the line " + strings.Join(header, ","))
	}
	return l, nil
}

// add adds a line.
func (l *List) add(number int, record []string) error {
	if len(record) != len(header) {
		return fmt.Errorf("has %d fields: must have %s", len(record), strings.Join(header, ","))
	}
	of, name, amount, currency := record[0], record[1], record[2], record[3]
	i := slices.IndexFunc(units, func(u unit) bool { return u.name == name })
	if i < 0 {
		return fmt.Errorf("unit %.100q: must be one of %s", name, strings.Join(Units(), ", "))
	}
	v, err := strconv.ParseFloat(amount, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > mostPrice {
		return fmt.Errorf("price %.100q: must be a number from 0 to %g, with a point", amount, mostPrice)
	}
	switch {
	case of == "":
		return fmt.Errorf("of is empty: must be %s, an instance type, a platform (bm, cn, vm, vmcn) or an engine", Any)
	case currency == "":
		return errors.New("currency is empty: must be such as USD")
	case l.Currency != "" && l.Currency != currency:
		return fmt.Errorf("currency %.20q: must be %.20q, as in the lines before", currency, l.Currency)
	case units[i].per == perInstance && of == Any:
		return fmt.Errorf("a price for each instance needs an instance type such as 1/2GB, not %s", Any)
	}
	for _, other := range l.lines {
		if other.of == of && other.unit == units[i] {
			return fmt.Errorf("%.100q has a price in %s in line %d already", of, name, other.number)
		}
	}
	l.Currency = currency
	l.lines = append(l.lines, line{number, of, units[i], v})
	return nil
}

// ErrNoPrice: the list has no price for a machine of this size.
var ErrNoPrice = errors.New("the price list has none for this size")

// Hourly is what an instance with a treatment costs an hour, in the list's currency. A price for the instance type replaces those for its
// cores, its memory and its share of a host; licences come on top. onHost is how many of such instances share a host.
func (l *List) Hourly(t notebook.Treatment, onHost float64) (float64, error) {
	sum, priced := 0.0, false
	instance, err := l.of(t, unit{per: perInstance})
	if err != nil {
		return 0, err
	}
	for _, p := range instance {
		sum, priced = sum+p.amount/p.unit.hours, true
	}
	for _, part := range []struct {
		per    string
		factor float64
	}{{perCore, t.Instance.Cores}, {perGB, float64(t.Instance.Memory) / (1 << 30)}, {perHost, 1 / onHost}} {
		for _, licence := range []bool{false, true} {
			if !licence && len(instance) > 0 {
				continue
			}
			all, err := l.of(t, unit{per: part.per, licence: licence})
			if err != nil {
				return 0, err
			}
			for _, p := range all {
				sum += part.factor * p.amount / p.unit.hours
				priced = priced || !licence
			}
		}
	}
	if !priced {
		return 0, ErrNoPrice
	}
	return sum, nil
}

// of are the prices of a kind that hold for a treatment: one at most, that of Any only where there is no other.
func (l *List) of(t notebook.Treatment, u unit) ([]line, error) {
	var own, any []line
	for _, p := range l.lines {
		switch {
		case p.unit.per != u.per || p.unit.licence != u.licence:
		case p.of == Any:
			any = append(any, p)
		case matches(p.of, t):
			own = append(own, p)
		}
	}
	if len(own) == 0 {
		own = any
	}
	if len(own) > 1 {
		return nil, fmt.Errorf("lines %d and %d are both prices of the same thing for this choice: leave one out", own[0].number, own[1].number)
	}
	return own, nil
}

// matches says whether a price is of a treatment: of its instance type, platform or engine.
func matches(of string, t notebook.Treatment) bool {
	if of == t.Instance.Name || of == t.Engine || notebook.PlatformNamed(of) == t.Platform {
		return true
	}
	i, err := notebook.ParseInstance(of)
	return err == nil && i.SameSize(t.Instance)
}

// Unknown describes the lines whose name is not that of a size or a platform, nor of an engine among these treatments. It may be misspelt.
func (l *List) Unknown(treatments []notebook.Treatment) (all []string) {
	platforms := []string{Any, notebook.BM, notebook.CN, notebook.VM, notebook.VMCN}
	for _, p := range l.lines {
		_, err := notebook.ParseInstance(p.of)
		named := err == nil || slices.Contains(platforms, notebook.PlatformNamed(p.of))
		if !named && !slices.ContainsFunc(treatments, func(t notebook.Treatment) bool { return matches(p.of, t) }) {
			all = append(all, fmt.Sprintf("line %d (%.50s, %s)", p.number, p.of, p.unit.name))
		}
	}
	return all
}
