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

// --rounds limits what emulated VMs do next to other guests. In a study of VMs only it is what was asked for.
func TestRoundsOfEmulatedVMs(t *testing.T) {
	for _, c := range []struct {
		platforms []string
		rounds    int
		emulated  int
	}{
		{[]string{"bm", "vm"}, 5, 2},
		{[]string{"bm", "vm"}, 1, 1},
		{[]string{"vm"}, 5, 5},
		{[]string{"vm", "vmcn"}, 0, 2},
		{[]string{"vm", "vmcn"}, 1, 1},
	} {
		s := Spec{Design: Design{Rounds: Rounds{Floor: 10, Cap: 20, Emulated: 2}, Trials: 3, Timeout: "1m"}}
		for _, p := range c.platforms {
			s.Platforms = append(s.Platforms, Place{Platform: p})
		}
		d, err := s.design(Choices{Rounds: c.rounds})
		if err != nil || d.Emulated != c.emulated || c.rounds > 0 && (d.Floor != c.rounds || d.Cap != c.rounds) {
			t.Errorf("%v, --rounds %d: %+v, %v; want %d rounds of emulated VMs", c.platforms, c.rounds, d, err, c.emulated)
		}
	}
}
