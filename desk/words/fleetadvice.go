package words

import (
	"fmt"

	"tare/desk/fleet"
)

// FleetAdviceColumns are the column heads of FleetAdvised.
var FleetAdviceColumns = []string{"choice", "recommended on", "as good on", "worse on"}

// FleetAdvice says what to choose for all hosts.
func FleetAdvice(a *fleet.Advised) string {
	if len(a.Choices) == 0 {
		return "No host has a measured choice."
	}
	best := a.Choices[0]
	said := fmt.Sprintf("%s: it is the recommended choice, or not distinguishable from it, on %s of %s.", Capital(Choice(best.Treatment, a.Networks)), Thousands(best.Good), Count(a.Hosts, "host"))
	if n := len(best.Worse); n > 0 {
		said += " It is worse on " + List(hostNames(best.Worse)) + "."
	}
	return said
}

// FleetAdvised are the lines of the table of a work's choices.
func FleetAdvised(a *fleet.Advised) (lines [][]string) {
	for _, c := range a.Choices {
		lines = append(lines, []string{Choice(c.Treatment, a.Networks), Thousands(c.First), Thousands(c.Good), Thousands(len(c.Worse))})
	}
	return lines
}

// FleetAdvisedMade says how the table was made.
const FleetAdvisedMade = "Each host ranks its own results, as `tare advise` does it for a results folder, and counts once. “As good” counts the hosts on which a choice is recommended or not distinguishable from what is."
