package studyfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tare/lab/measure"
	"tare/notebook"
	"tare/stats"
	"tare/yamlfile"
)

// Until is how precisely every ratio must be known before a run ends; it replaces what the study's design asks. The zero value: as
// the design asks.
type Until struct {
	Precision float64 // an interval within ± this share of the ratio
	Margin    float64 // known to differ by at least this share in one direction, or by less
	ByStudy   bool    // no share was named: the margin of the study's design applies, if it has one
	Claims    bool    `json:",omitempty"` // until the study's claims are decided, as far as they can be tested

	// What the run searches for instead of timing work, under the objective of a kind of study; nil: nothing.
	sought    *measure.Kind
	objective string // as given
	config    measure.Config
}

// Seeks reports whether the run searches for something instead of timing work.
func (u Until) Seeks() bool { return u.config != nil }

// Asked reports whether Until asks for anything.
func (u Until) Asked() bool {
	return u.Precision != 0 || u.Margin != 0 || u.Claims || u.config != nil
}

// MarshalJSON returns the part of Until that belongs to a study's hash. A search keeps the form that it had when there was only one kind
// of search.
func (u Until) MarshalJSON() ([]byte, error) {
	type plain Until
	b, err := json.Marshal(plain(u))
	if err != nil || u.config == nil {
		return b, err
	}
	config, err := json.Marshal(u.config.Record())
	name := u.sought.Name
	return fmt.Appendf(b[:len(b)-1], ",%q:%s}", strings.ToUpper(name[:1])+name[1:], config), err
}

// UntilRounds is the greatest number of rounds of a run that continues until something is known. Intervals are valid up to this number, no
// matter how often they are checked. A greater number would make every interval wider.
const UntilRounds = 200

var (
	precise = regexp.MustCompile(`^\s*(?:±|\+/?-)?\s*([0-9.]+)\s*%\s*$`)
	decided = regexp.MustCompile(`(?i)^\s*decided(?:\s+at\s+([0-9.]+)\s*%)?\s*$`)
)

// ParseUntil reads "±1%", also without the sign, "decided at 2%", "claims", or an objective of one of the kinds, such as "p95 <
// 1.5x". "decided" without a share means the study's margin.
func ParseUntil(text string, kinds measure.Registry) (u Until, err error) {
	wrong := fmt.Errorf("%q: must be ±1%% (or 1%%), 'decided at 2%%', claims, or 'p95 < 1.5x', with p10 to p99 and more than 1x", text)
	for i, k := range kinds {
		if k.Seek == nil {
			continue
		}
		if c, ok := k.Seek(text); ok {
			return Until{sought: &kinds[i], objective: strings.TrimSpace(text), config: c}, nil
		}
	}
	if m := precise.FindStringSubmatch(text); m != nil {
		if u.Precision, err = yamlfile.Share(m[1] + "%"); err != nil {
			return u, wrong
		}
		return u, nil
	}
	if strings.EqualFold(strings.TrimSpace(text), "claims") {
		return Until{Claims: true}, nil
	}
	m := decided.FindStringSubmatch(text)
	if m == nil {
		return u, wrong
	}
	u.Margin, u.ByStudy = stats.Margin, true
	if m[1] != "" {
		u.ByStudy = false
		if u.Margin, err = yamlfile.Share(m[1] + "%"); err != nil {
			return u, wrong
		}
	}
	return u, nil
}

// Decidable rejects what could never be decided: a study that compares nothing with bare metal.
func (u Until) Decidable(s notebook.Study) error {
	on := func(bare bool) bool {
		return slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool { return t.Representative() && (t.Platform == notebook.BM) == bare })
	}
	if u.Margin == 0 || on(true) && on(false) {
		return nil
	}
	return fmt.Errorf("study %s: --until decided: needs both bare metal and another platform to compare; for means that precise, use --until ±%.4g%%", s.Name, 100*u.Margin)
}
