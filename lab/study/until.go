package study

import (
	"fmt"
	"regexp"

	"tare/stats"
)

// Until is how well every ratio is to be known before a run ends, in place of what the study's design asks. The zero value: as it asks.
type Until struct {
	Precision float64 // an interval within ± this share of the ratio
	Margin    float64 // known to be larger or smaller by this share at least, or by less
}

// untilRounds is the most rounds of a run that goes on until something is known. However often one looks, intervals hold up to it; more
// would make each of them wider.
const untilRounds = 200

var (
	precise = regexp.MustCompile(`^\s*±?\s*([0-9.]+%)\s*$`)
	decided = regexp.MustCompile(`^\s*decided(?:\s+at\s+([0-9.]+%))?\s*$`)
)

// ParseUntil reads "±1%" or "decided at 2%"; "decided" alone is at stats.Margin, 1 %.
func ParseUntil(text string) (u Until, err error) {
	wrong := fmt.Errorf("%q: ±1%% or 'decided at 2%%' was expected", text)
	if m := precise.FindStringSubmatch(text); m != nil {
		if u.Precision, err = parseShare(m[1]); err != nil {
			return u, wrong
		}
		return u, nil
	}
	m := decided.FindStringSubmatch(text)
	if m == nil {
		return u, wrong
	}
	u.Margin = stats.Margin
	if m[1] != "" {
		if u.Margin, err = parseShare(m[1]); err != nil {
			return u, wrong
		}
	}
	return u, nil
}
