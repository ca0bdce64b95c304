package words

import (
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
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

// A search that had a limit of time is offered with twice as much, in another folder; one without a limit would find nothing more.
func TestALongerSearchHasTwiceTheTime(t *testing.T) {
	for args, want := range map[string]string{
		"fit --time-budget 90s --out vms --seed 4": "sudo tare fit --time-budget 180s --out vms-2",
		"fit mine.yaml --time-budget=2m":           "sudo tare fit mine.yaml --time-budget 240s --out vms-2",
		"fit --time-budget soon":                   "",
		"fit":                                      "",
	} {
		s := &data.Summary{Folders: []data.Folder{{Dir: "vms/", Args: strings.Fields(args)}}}
		if got := longer(s); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
