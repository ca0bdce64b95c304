package study

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

// Until is how well every ratio is to be known before a run ends, in place of what the study's design asks. The zero value: as it asks.
type Until struct {
	Precision float64 // an interval within ± this share of the ratio
	Margin    float64 // known to be larger or smaller by this share at least, or by less
	Claims    bool    `json:",omitempty"` // until the study's claims are decided, as far as they can be tested

	// What is sought in place of timing work, by the objective of a kind of study; nil: nothing is.
	sought    *measure.Kind
	objective string // as it was given
	config    measure.Config
}

// Seeks says whether something is sought in place of timing work.
func (u Until) Seeks() bool { return u.config != nil }

// asked says whether something is asked for.
func (u Until) asked() bool {
	return u.Precision != 0 || u.Margin != 0 || u.Claims || u.config != nil
}

// MarshalJSON is what of it stands in a study's hash: of what is sought as it was written when there was one kind of it.
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

// Question is what rounds are run for: something that is to be known, and is not.
type Question struct {
	Of     []string // the treatments that have to be in a round to say anything of it
	Rounds int      // about how many more it takes; 0: that is not foreseeable
}

// Goal says, between rounds, what the trials that stand in the notebook leave open.
type Goal func() ([]Question, error)

// UntilRounds is the most rounds of a run that goes on until something is known. However often one looks, intervals hold up to it; more
// would make each of them wider.
const UntilRounds = 200

var (
	precise = regexp.MustCompile(`^\s*(?:±|\+/?-)?\s*([0-9.]+)\s*%\s*$`)
	decided = regexp.MustCompile(`(?i)^\s*decided(?:\s+at\s+([0-9.]+)\s*%)?\s*$`)
)

// ParseUntil reads "±1%", also without its sign, "decided at 2%", "claims", or an objective of one of the kinds, such as "p95 < 1.5x"; "decided" alone is at
// stats.Margin, 1 %.
func ParseUntil(text string, kinds measure.Registry) (u Until, err error) {
	wrong := fmt.Errorf("%q: ±1%% (or 1%%), 'decided at 2%%', claims, or 'p95 < 1.5x', with p10 to p99 and more than 1x, was expected", text)
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
	u.Margin = stats.Margin
	if m[1] != "" {
		if u.Margin, err = yamlfile.Share(m[1] + "%"); err != nil {
			return u, wrong
		}
	}
	return u, nil
}

// decidable refuses what could never be decided: a study in which nothing is compared with bare metal.
func (u Until) decidable(s notebook.Study) error {
	on := func(bare bool) bool {
		return slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool { return t.Representative() && (t.Platform == notebook.BM) == bare })
	}
	if u.Margin == 0 || on(true) && on(false) {
		return nil
	}
	return fmt.Errorf("study %s: --until decided: what is decided is the ratio of a platform to bare metal, and here is nothing to compare; --until ±%s asks for means as precise", s.Name, percent(u.Margin))
}
