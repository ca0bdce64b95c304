package studyfile

import (
	"strings"
	"testing"
)

func TestParseUntil(t *testing.T) {
	for text, want := range map[string]Until{
		"±1%": {Precision: 0.01}, "2.5%": {Precision: 0.025}, " ± 3 % ": {Precision: 0.03}, "+-4%": {Precision: 0.04}, "+/-5%": {Precision: 0.05}, "Decided at 2 %": {Margin: 0.02}, "decided": {Margin: 0.01, ByStudy: true}, "decided at 2%": {Margin: 0.02}, " claims": {Claims: true},
	} {
		if u, err := ParseUntil(text, known.Kinds); err != nil || u != want {
			t.Errorf("%q: %+v, %v; want %+v", text, u, err, want)
		}
	}
	for _, text := range []string{"", "1", "±%", "0%", "101%", "decided at", "decided at x%", "decided at 0%", "claim", "claims at 1%", "1%%"} {
		if u, err := ParseUntil(text, known.Kinds); err == nil || !strings.Contains(err.Error(), "'decided at 2%', claims, or 'p95 < 1.5x', with p10 to p99 and more than 1x") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}
