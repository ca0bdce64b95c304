package studyfile

import (
	"encoding/json"
	"errors"
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

var precise = regexp.MustCompile(`^\s*(?:±|\+/?-)?\s*([0-9.]+)\s*%\s*$`)

// byStudy stands for the margin of the study's design.
const byStudy = "margin"

// ParsePrecision reads how wide intervals may be: 1%, or ±1%.
func ParsePrecision(text string) (u Until, err error) {
	if u.Precision, err = shareIn(text); err != nil {
		return u, fmt.Errorf("%q: must be a percentage such as 1%%", text)
	}
	return u, nil
}

// ParseDecide reads a margin: 2%, or "margin" for the study's own.
func ParseDecide(text string) (u Until, err error) {
	if text == byStudy {
		return Until{Margin: stats.Margin, ByStudy: true}, nil
	}
	if u.Margin, err = shareIn(text); err != nil {
		return u, fmt.Errorf("%q: must be a percentage such as 2%%, or %s for the study's own margin", text, byStudy)
	}
	return u, nil
}

// ParseLimit reads an objective of one of the kinds, such as "p95 < 1.5x".
func ParseLimit(text string, kinds measure.Registry) (Until, error) {
	for i, k := range kinds {
		if k.Seek == nil {
			continue
		}
		if c, ok := k.Seek(text); ok {
			return Until{sought: &kinds[i], objective: strings.TrimSpace(text), config: c}, nil
		}
	}
	return Until{}, fmt.Errorf("%q: must be an objective such as 'p95 < 1.5x', with p10 to p99 and more than 1x", text)
}

// ParseUntil reads the value of the older flag --until: "±1%", also without the sign, "decided at 2%", "decided", "claims", or an
// objective.
func ParseUntil(text string, kinds measure.Registry) (Until, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	if word == "claims" {
		return Until{Claims: true}, nil
	}
	if u, err := ParseLimit(text, kinds); err == nil {
		return u, nil
	}
	parse, rest := ParsePrecision, text
	if after, ok := strings.CutPrefix(word, "decided"); ok {
		parse, rest = ParseDecide, byStudy
		if after != "" {
			rest = strings.TrimPrefix(strings.TrimSpace(after), "at ")
		}
	}
	u, err := parse(rest)
	if err != nil {
		return Until{}, fmt.Errorf("%q: use --precision 1%%, --decide 2%% or --until-claims", text)
	}
	return u, nil
}

// shareIn reads a percentage, with or without the sign of an interval.
func shareIn(text string) (float64, error) {
	m := precise.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("not a percentage")
	}
	return yamlfile.Share(m[1] + "%")
}

// Flag is the flag that asks for u, as users write it.
func (u Until) Flag() string {
	switch {
	case u.Seeks():
		return fmt.Sprintf("--limit '%s'", u.objective)
	case u.Claims:
		return "--until-claims"
	case u.ByStudy:
		return "--decide " + byStudy
	case u.Margin != 0:
		return fmt.Sprintf("--decide %.4g%%", 100*u.Margin)
	}
	return fmt.Sprintf("--precision %.4g%%", 100*u.Precision)
}

// Decidable rejects what could never be decided: a study that compares nothing with bare metal.
func (u Until) Decidable(s notebook.Study) error {
	on := func(bare bool) bool {
		return slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool { return t.Representative() && (t.Platform == notebook.BM) == bare })
	}
	if u.Margin == 0 || on(true) && on(false) {
		return nil
	}
	return fmt.Errorf("study %s: --decide: needs both bare metal and another platform to compare; for means that precise, use --precision %.4g%%", s.Name, 100*u.Margin)
}
