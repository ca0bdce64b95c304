package words

import (
	"slices"
	"strings"
	"testing"
)

// A command for further rounds loses the options that say when the earlier run ended, with their values, and nothing else.
func TestOptionsOfAnEarlierRunAreReplaced(t *testing.T) {
	for args, want := range map[string]string{
		"run quick --precision 1% -q --tune-host":     "run quick -q --tune-host --rounds 9",
		"run quick --quiet":                           "run quick --tune-host --rounds 9",
		"run pinning --until-claims ./mine":           "run pinning ./mine --rounds 9",
		"run quick --decide=2% --seed 3 --accel tcg":  "run quick --accel tcg --rounds 9",
		"bench --image x --until 1% -- cmd --until 2": "bench --image x --rounds 9 -- cmd --until 2",
	} {
		if got := with(strings.Fields(args), measuringFlags, "--rounds", "9"); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
