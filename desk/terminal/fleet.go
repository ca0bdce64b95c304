package terminal

import (
	"io"
	"strings"

	"tare/desk/data"
	"tare/desk/fleet"
	"tare/desk/words"
)

// FleetClaims writes on how many hosts each claim holds, and names the hosts that refute one.
func FleetClaims(w io.Writer, f *fleet.Fleet, all []fleet.Claimed, on Screen) error {
	t := &text{Screen: on}
	for _, l := range words.FleetClaims(f, all) {
		t.wrap("", l)
	}
	groups, last := words.FleetClaimGroups(f, all)
	for _, g := range groups {
		var lines []string
		for _, c := range g.Claims {
			counts, said := words.FleetClaim(f, c)
			lines = append(lines, counts+": "+said)
		}
		t.list(g.Head, lines)
	}
	if last != "" {
		t.line("")
		t.wrap("", last)
	}
	for i, u := range f.Unread {
		if i == 0 {
			t.line("")
		}
		t.wrap("! ", words.FleetUnread(u))
	}
	return t.flush(w)
}

// Fleet writes what many hosts say together: the finding, a table with a line for each configuration, classes of hosts, hosts unlike the others, what
// is left out, and reasons to doubt it. With all, secondary metrics and emulated environments have lines too.
func Fleet(w io.Writer, f *fleet.Fleet, all bool, on Screen) error {
	t := &text{Screen: on}
	a := words.FleetAnswerOf(f, all)
	for _, h := range a.Headline {
		t.wrapAs(bold, "", h)
	}
	t.line("")
	t.wrap("", a.Of)
	t.line("")
	if len(a.Lines) > 0 {
		t.fleetTable(a.Columns, a.Lines)
		t.line("")
	}
	t.wrap("", a.Made)
	for _, b := range a.Blocks {
		t.block(b)
	}
	return t.flush(w)
}

// FleetAdvice writes for each work what to choose for all hosts, and a table of the choices.
func FleetAdvice(w io.Writer, all []*fleet.Advised, on Screen) error {
	t := &text{Screen: on}
	for i, a := range all {
		if i > 0 {
			t.line("")
		}
		if len(all) > 1 {
			t.wrapAs(bold, "", words.Plain(a.Workload)+", "+words.Plain(a.Metric.Name))
		}
		t.wrapAs(bold, "", words.FleetAdvice(a))
		t.line("")
		t.fleetTable(words.FleetAdviceColumns, words.FleetAdvised(a))
	}
	if len(all) > 0 {
		t.line("")
	}
	t.wrap("", words.FleetAdvisedMade)
	return t.flush(w)
}

// fleetTable writes a table, or its cells one after the other if the screen is too narrow.
func (t *text) fleetTable(heads []string, lines [][]string) {
	var cols []column
	for i, head := range heads {
		c := column{head: head, gap: 2}
		for _, line := range lines {
			c.cells = append(c.cells, data.Printable(line[i]))
		}
		cols = append(cols, c)
	}
	if t.fits(cols) {
		t.grid(cols, func(int) bool { return false })
		return
	}
	t.wrap("  ", strings.Join(heads, " · "))
	for _, line := range lines {
		t.wrap("  ", strings.Join(line, " · "))
	}
}
