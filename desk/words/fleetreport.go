package words

import (
	"fmt"
	"strings"

	"tare/desk/fleet"
)

// Texts of the figures of a fleet.
const (
	FleetTitle      = "What each environment costs over all hosts"
	FleetHow        = "A mark is the mean over hosts, with its 95 % interval. The pale bar contains the true cost on one more host like these with a probability of 95 %."
	FleetHostsTitle = "Each host"
	FleetHostsHow   = "Each host is a dot with its own 95 % interval, sorted. The dashed line is the mean over hosts, and the pale band the interval of the next host. Crosses are hosts unlike the others."
)

// FleetName names a configuration of a fleet among those that are shown.
func FleetName(f *fleet.Fleet, shown []*fleet.Configuration, c *fleet.Configuration) string {
	return inFleet(f, shown, c, false)
}

// FleetAxis names the axis of changes, and FleetRatioAxis the one of ratios.
func FleetAxis(f *fleet.Fleet) string {
	return "change of the cost against " + fleetReference(f) + ", %"
}
func FleetRatioAxis(f *fleet.Fleet) string { return "cost over that of " + fleetReference(f) }

// FleetAlt is the picture of all configurations in words.
func FleetAlt(f *fleet.Fleet, shown []*fleet.Configuration) string {
	var all []string
	for _, c := range shown {
		all = append(all, FleetName(f, shown, c)+": "+fleetChange(c.Ratio))
	}
	return FleetTitle + ". " + strings.Join(all, "; ") + "."
}

// FleetMark is the text next to a configuration's mark.
func FleetMark(c *fleet.Configuration) string { return fleetChange(c.Ratio) }

// FleetNotDrawn says for how many configurations the report draws no hosts.
func FleetNotDrawn(n int) string {
	return "The hosts of " + Count(n, "more configuration") + " are not drawn; the table lists them."
}

// FleetSorted is the text below sorted hosts: how many of them are drawn.
func FleetSorted(drawn, all int) string {
	if drawn < all {
		return fmt.Sprintf("%s of %s, sorted", Thousands(drawn), Count(all, "host"))
	}
	return Count(all, "host") + ", sorted"
}

// FleetHostsAlt is the text alternative of the figure of a configuration's hosts.
func FleetHostsAlt(name string, c *fleet.Configuration, unlike int) string {
	said := fmt.Sprintf("%s on %s: mean %s", name, Count(c.Across.N, "host"), fleetChange(c.Ratio))
	if c.Next.HasInterval() {
		said += ", next host " + fleetSpan(c.Next)
	}
	if unlike > 0 {
		said += ", " + Count(unlike, "host") + " unlike the others"
	}
	return said + "."
}

// FleetPageTitle is the title of a fleet's report.
func FleetPageTitle(f *fleet.Fleet) string {
	return Plain(f.Study) + " on " + Count(len(f.Hosts), "host")
}
