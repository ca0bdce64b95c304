package replay

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Span is a time between two moments of the monotonic clock.
type Span struct{ Begin, End time.Duration }

// took is how long it was.
func (s Span) took() time.Duration { return s.End - s.Begin }

// since is the span by the time since a moment.
func (s Span) since(at time.Duration) Span { return Span{s.Begin - at, s.End - at} }

// Operation is what a load timed: one request, or the requests of a web page.
type Operation struct{ Requests []Span }

// span is the whole time of the operation.
func (o *Operation) span() (s Span) {
	for i, r := range o.Requests {
		if i == 0 {
			s = r
		}
		s = Span{min(s.Begin, r.Begin), max(s.End, r.End)}
	}
	return s
}

// Clocks that a load's record can name in its first line.
const (
	monotonic = "monotonic"
	realtime  = "realtime"
)

// Bounds of a load's record.
const (
	mostRecorded = 2 << 20
	mostOfOne    = 200 // requests of an operation
	longestLine  = 100 // bytes
)

// ReadOperations reads what a load recorded. The first line names the clock of its times, monotonic or realtime. Each other line is one request: the
// number of its operation, when it began, and when it ended, in nanoseconds. leads says how far the realtime clock is ahead of the monotonic one. The
// operations are in the order in which they began.
func ReadOperations(r io.Reader, leads func() (time.Duration, error)) (all []Operation, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	if !lines.Scan() {
		return nil, cmp.Or(lines.Err(), errors.New("it is empty"))
	}
	ahead := time.Duration(0)
	switch clock := lines.Text(); clock {
	case realtime:
		if ahead, err = leads(); err != nil {
			return nil, err
		}
	case monotonic:
	default:
		return nil, fmt.Errorf("line 1: %q: must be %s or %s", clock, realtime, monotonic)
	}
	at := map[int64]int{} // an operation's index in all
	for n := 2; lines.Scan(); n++ {
		if n > mostRecorded {
			return nil, fmt.Errorf("it has more than %d requests", mostRecorded)
		}
		var v [3]int64
		words := strings.Fields(lines.Text())
		if len(words) != len(v) {
			return nil, fmt.Errorf("line %d: %q: must be three numbers", n, lines.Text())
		}
		for i, word := range words {
			if v[i], err = strconv.ParseInt(word, 10, 64); err != nil || v[i] < 0 {
				return nil, fmt.Errorf("line %d: %q: must be a whole number of at least 0", n, word)
			}
		}
		s := Span{time.Duration(v[1]) - ahead, time.Duration(v[2]) - ahead}
		if s.End < s.Begin {
			return nil, fmt.Errorf("line %d: the request ends before it begins", n)
		}
		i, known := at[v[0]]
		if !known {
			i = len(all)
			at[v[0]], all = i, append(all, Operation{})
		}
		if all[i].Requests = append(all[i].Requests, s); len(all[i].Requests) > mostOfOne {
			return nil, fmt.Errorf("line %d: operation %d has more than %d requests", n, v[0], mostOfOne)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, o := range all {
		slices.SortFunc(o.Requests, func(x, y Span) int { return cmp.Or(cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.End, y.End)) })
	}
	slices.SortFunc(all, func(x, y Operation) int {
		return cmp.Or(cmp.Compare(x.Requests[0].Begin, y.Requests[0].Begin), cmp.Compare(x.Requests[0].End, y.Requests[0].End))
	})
	return all, nil
}
