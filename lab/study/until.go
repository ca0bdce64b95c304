package study

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tare/notebook"
	fitkind "tare/notebook/kinds/fit"
	"tare/stats"
)

// Until is how well every ratio is to be known before a run ends, in place of what the study's design asks. The zero value: as it asks.
type Until struct {
	Precision float64 // an interval within ± this share of the ratio
	Margin    float64 // known to be larger or smaller by this share at least, or by less
	Claims    bool    `json:",omitempty"` // until the study's claims are decided, as far as they can be tested

	// Fit is the objective that guests are to keep: it is sought how many do, in place of timing them. Zero: it is not.
	Fit fitkind.Config `json:",omitzero"`
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

// ParseUntil reads "±1%", also without its sign, "decided at 2%", "claims", or "p95 < 1.5x"; "decided" alone is at stats.Margin, 1 %.
func ParseUntil(text string) (u Until, err error) {
	wrong := fmt.Errorf("%q: ±1%% (or 1%%), 'decided at 2%%', claims, or 'p95 < 1.5x', with p10 to p99 and more than 1x, was expected", text)
	if f, ok := parseFit(text); ok {
		return Until{Fit: f}, nil
	}
	if m := precise.FindStringSubmatch(text); m != nil {
		if u.Precision, err = parseShare(m[1] + "%"); err != nil {
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
		if u.Margin, err = parseShare(m[1] + "%"); err != nil {
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
