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
		if u, err := ParseUntil(text, known.Kinds); err == nil || !strings.HasSuffix(err.Error(), ": use --precision 1%, --decide 2% or --until-claims") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}

// Each flag that replaces --until reads what Flag writes.
func TestFlagsOfUntil(t *testing.T) {
	for flag, parse := range map[string]func(string) (Until, error){"--precision": ParsePrecision, "--decide": ParseDecide} {
		for _, text := range []string{"1%", "2.5%", "margin"} {
			u, err := parse(text)
			if text == "margin" && flag == "--precision" {
				if err == nil || err.Error() != `"margin": must be a percentage such as 1%` {
					t.Errorf("%s %s: %+v, %v", flag, text, u, err)
				}
				continue
			}
			if err != nil || u.Flag() != flag+" "+text {
				t.Errorf("%s %s: %v, %v", flag, text, u.Flag(), err)
			}
		}
	}
	for _, text := range []string{"", "1", "0%", "101%", "at 2%"} {
		if u, err := ParseDecide(text); err == nil || !strings.HasSuffix(err.Error(), ": must be a percentage such as 2%, or margin for the study's own margin") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}
