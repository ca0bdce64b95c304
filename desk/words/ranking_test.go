package words

import (
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/notebook"
)

// The rules below a ranking mention only what its table has.
func TestRankedHow(t *testing.T) {
	seconds, rate := notebook.Metric{Name: "time", Unit: "s", Better: "lower"}, notebook.Metric{Name: "rate", Unit: "1/s", Better: "higher"}
	tied := []advise.Choice{{Rank: 1, Leads: true, Tied: true, Near: true}, {Rank: 2, Tied: true, Near: true}, {Rank: 3}}
	for _, c := range []struct {
		name      string
		of        advise.Ranking
		has, lack []string
	}{
		{"one choice", advise.Ranking{Metric: seconds, Choices: []advise.Choice{{Rank: 1}}},
			[]string{"Ranked by the upper end of the 95 % interval."}, []string{"pairs", "(=)", "stand in this order", "predicted"}},
		{"ties", advise.Ranking{Metric: seconds, Choices: tied},
			[]string{"all 3 pairs", "whichever of the 3", "not distinguishable from number 1, whose upper end is the lowest", "the first 2, estimated at no more than that upper end", TieRule}, []string{"A prediction"}},
		{"more is better", advise.Ranking{Metric: rate, Choices: tied},
			[]string{"Ranked by the lower end", "whose lower end is the highest", "at no less than that lower end"}, []string{"upper"}},
		{"predicted", advise.Ranking{Metric: seconds, Choices: []advise.Choice{{Rank: 1}, {Rank: 2, Predicted: true}}},
			[]string{"docs/model.md describes the model"}, []string{"pairs"}},
	} {
		got := RankedHow(&c.of)
		for _, text := range c.has {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %q in %q", c.name, text, got)
			}
		}
		for _, text := range c.lack {
			if strings.Contains(got, text) {
				t.Errorf("%s: %q in %q", c.name, text, got)
			}
		}
	}
}
