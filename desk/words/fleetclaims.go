package words

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/desk/claims"
	"tare/desk/fleet"
	"tare/stats"
)

// FleetClaims counts the claims of a fleet, and says how its verdicts are corrected.
func FleetClaims(f *fleet.Fleet, all []fleet.Claimed) []string {
	if len(all) == 0 {
		return []string{"There are no claims."}
	}
	refuted, holds, open, not := 0, 0, 0, 0
	for _, c := range all {
		switch {
		case c.Hosts[claims.DoesNotHold] > 0:
			refuted++
		case c.Hosts[claims.Holds] > 0:
			holds++
		case c.Hosts[claims.NotDecided] > 0:
			open++
		default:
			not++
		}
	}
	return []string{
		fmt.Sprintf("%s on %s. Holds, and is refuted on no host: %d. Refuted on at least one host: %d. Decided on no host: %d. Testable on no host: %d.",
			Count(len(all), "claim"), Count(len(f.Hosts), "host"), holds, refuted, open, not),
		corrected(len(f.Hosts)),
	}
}

// corrected says how sure the verdicts of so many hosts are.
func corrected(hosts int) string {
	said := fmt.Sprintf("Verdicts are corrected within each host, not across hosts: at most %.0f %% of hosts have a wrong verdict", 100*stats.Alpha)
	if hosts >= 20 {
		said += fmt.Sprintf(", about %d of %d", (hosts+19)/20, hosts)
	}
	return said + "."
}

// FleetClaim is a line of a claim: on how many hosts it holds, and the hosts that refute it.
func FleetClaim(f *fleet.Fleet, c fleet.Claimed) (counts, said string) {
	of := len(f.Hosts)
	counts = fmt.Sprintf("holds on %s of %s", Thousands(c.Hosts[claims.Holds]), Count(of, "host"))
	said = Plain(c.Claim.Finding) + " " + Plain(c.Claim.ID) + "."
	if n := len(c.Refuted); n > 0 {
		names := hostNames(c.Refuted)
		said += " Does not hold on " + List(names) + ": " + Stop(Verdict(c.First))
	}
	for _, a := range []claims.Answer{claims.NotDecided, claims.NotTestable} {
		if n := c.Hosts[a]; n > 0 {
			said += fmt.Sprintf(" %s on %s.", Capital(strings.TrimSuffix(string(a), " here")), Count(n, "host"))
		}
	}
	return counts, said
}

// hostNames names the first hosts, and says how many more there are.
func hostNames(hosts []*fleet.Host) (names []string) {
	for _, h := range hosts[:min(len(hosts), fleetClasses)] {
		names = append(names, Plain(h.Name))
	}
	if n := len(hosts) - fleetClasses; n > 0 {
		names = append(names, Count(n, "more host"))
	}
	return names
}

// FleetClaimGroup is a list of claims under a head.
type FleetClaimGroup struct {
	Head   string
	Claims []fleet.Claimed
}

// FleetClaimGroups groups the claims by their verdicts. The last line counts the claims that no host can test; empty: there are none.
func FleetClaimGroups(f *fleet.Fleet, all []fleet.Claimed) (groups []FleetClaimGroup, last string) {
	groups = []FleetClaimGroup{{Head: "Refuted on at least one host"}, {Head: "Holds, and is refuted on no host"}, {Head: "Decided on no host"}}
	none := 0
	for _, c := range all {
		at := 2
		switch {
		case len(c.Refuted) > 0:
			at = 0
		case c.Hosts[claims.Holds] > 0:
			at = 1
		case c.Hosts[claims.NotDecided] == 0:
			none++
			continue
		}
		groups[at].Claims = append(groups[at].Claims, c)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.Claims, func(a, b fleet.Claimed) int {
			return cmp.Or(len(b.Refuted)-len(a.Refuted), b.Hosts[claims.Holds]-a.Hosts[claims.Holds])
		})
	}
	groups = slices.DeleteFunc(groups, func(g FleetClaimGroup) bool { return g.Claims == nil })
	if none > 0 {
		last = fmt.Sprintf("%s testable on no host. `tare claims %s` says why for one host.", was(none, "claim"), Plain(f.Hosts[0].Folders[0]))
	}
	return groups, last
}
