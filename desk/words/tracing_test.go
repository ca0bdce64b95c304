package words

import (
	"math"
	"slices"
	"testing"

	"tare/desk/explain"
	"tare/notebook"
	"tare/stats"
)

// The cost of the tracers is given with its interval, or said to be unknown.
func TestTracing(t *testing.T) {
	none := stats.Quotient{Value: math.NaN()}
	for _, c := range []struct {
		name string
		of   explain.Account
		want []string
	}{
		{"cost unknown", explain.Account{TracerCost: none}, []string{"The tracers’ cost is not known."}},
		{"by counters", explain.Account{Tier: notebook.TierCounters, Traced: 3, Rounds: 3, TracerCost: stats.Quotient{Value: 1.02, Low: 1.01, High: 1.03, N: 3}}, []string{
			"3 traced trials; 3 rounds with traced and untraced runs of both this configuration and its reference.",
			"The breakdown comes from the kernel's counters.",
			"The tracers’ cost: traced runs took 1.020 (1.010 to 1.030) times as long as the others.",
			"The tracers lost no event.",
		}},
		{"no cost seen", explain.Account{Traced: 1, Rounds: 1, Lost: 2, TracerCost: stats.Quotient{Value: 1.01, Low: 0.99, High: 1.03, N: 3}}, []string{
			"1 traced trial; 1 round with traced and untraced runs of both this configuration and its reference.",
			"The tracers’ cost: traced runs took 1.010 (0.990 to 1.030) times as long as the others, not distinguishable from none.",
		}},
	} {
		if got := Tracing(&c.of); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}
