package words

import (
	_ "embed"
	"strings"
	"time"

	"tare/desk/ladder"
	"tare/notebook"
)

// Report holds the texts of a report's page, as named templates of package html/template.
//
//go:embed report.gohtml
var Report string

// The values of a report's page in words. The page's other texts are in report.gohtml.

// NoCheck says what is unknown without an A/A check.
const NoCheck = "No A/A check was run, so the host's noise is not known."

// Date writes a time; empty for the zero time.
func Date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04 UTC")
}

// Begun says when the first and the last folder were begun, and how many trials the folders hold.
func Begun(first, last time.Time, folders, trials int) string {
	said := "Begun " + Date(first)
	if !last.Equal(first) {
		said += ", the last of " + Count(folders, "folder") + " " + Date(last)
	}
	return said + " · " + Count(trials, "trial") + " on record"
}

// Topology says how many sockets, NUMA nodes, cores and threads a host has.
func Topology(cpus []notebook.CPU) string {
	cores, sockets, nodes := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range cpus {
		cores[c.Core], sockets[c.Socket], nodes[c.Node] = true, true, true
	}
	s := Count(len(cpus), "CPU") + " on " + Count(len(cores), "core")
	switch {
	case len(cpus) > len(cores):
		s += " (simultaneous multithreading)"
	case len(cpus) > 0:
		s += " (one thread a core)"
	}
	return s + ", " + Count(len(sockets), "socket") + ", " + Count(len(nodes), "NUMA node")
}

// NothingMeasured says which figure of a study was not drawn, with a note of what was not measured.
func NothingMeasured(f notebook.Figure, note string) string {
	name := Plain(f.Name)
	if title := Plain(f.Title); title != "" {
		name += " (" + title + ")"
	}
	if workload := Plain(f.Workload); workload != "" {
		name += " of " + workload
	}
	return strings.TrimSpace(name + ": none of its treatments was measured. " + note)
}

// InEveryRow says what all rows of a table have in common; empty if there is nothing.
func InEveryRow(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return "The same in every row: " + strings.Join(values, ", ") + "."
}

// RungTags says what limits a rung's result, and which layers it has in addition to its own.
func RungTags(r *ladder.Rung) string {
	var tags []string
	for _, s := range []struct {
		is   bool
		text string
	}{{r.Emulated, NotVMsCost}, {r.Doubtful, "doubtful"}, {r.Failing, "too many trials failed"}, {r.Significant, "distinguishable from none"}} {
		if s.is {
			tags = append(tags, s.text)
		}
	}
	if len(r.With) > 0 {
		tags = append(tags, "with "+Plain(strings.Join(r.With, ", ")))
	}
	return strings.Join(tags, "; ")
}
