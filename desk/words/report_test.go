package words

import (
	"testing"
	"time"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/notebook"
)

func TestTopology(t *testing.T) {
	cpus := []notebook.CPU{{ID: 0, Core: 0}, {ID: 1, Core: 0}, {ID: 2, Core: 1, Socket: 1, Node: 1}, {ID: 3, Core: 1, Socket: 1, Node: 1}}
	if got, want := Topology(cpus), "4 CPUs on 2 cores (simultaneous multithreading), 2 sockets, 2 NUMA nodes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBegun(t *testing.T) {
	first := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		last    time.Time
		folders int
		want    string
	}{
		{first, 1, "Begun 1 March 2026, 09:30 UTC · 12 trials on record"},
		{first.AddDate(0, 0, 2), 3, "Begun 1 March 2026, 09:30 UTC, the last of 3 folders 3 March 2026, 09:30 UTC · 12 trials on record"},
	} {
		if got := Begun(first, c.last, c.folders, 12); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := Date(time.Time{}); got != "" {
		t.Errorf("no time is %q", got)
	}
}

// What a ratio means depends on the kind of study; what all kinds have in common stands once.
func TestGlossaryHasTheTermsOfKinds(t *testing.T) {
	all := Glossary([]string{"the work takes %s longer", "a guest takes %s more memory"}, []Term{{"PSS", "a share"}})
	at := map[string]int{}
	for i, term := range all {
		at[term.Name] = i
	}
	if len(at) != 24 || at["PSS"] != at["Overhead ratio"]+1 || at["CHR"] != at["PSS"]+1 {
		t.Errorf("the terms are %v", at)
	}
	if got, want := all[at["Overhead ratio"]].Text, "the mean on a platform divided by the mean on bare metal at the same instance type. 1.20 means that the work takes 20 % longer, or that a guest takes 20 % more memory. In each round, the mean of bare metal covers both of its arms, including the A/A control."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNothingMeasured(t *testing.T) {
	for _, c := range []struct {
		figure     notebook.Figure
		note, want string
	}{
		{notebook.Figure{Name: "Figure 3"}, "", "Figure 3: none of its treatments was measured."},
		{notebook.Figure{Name: "Figure 3", Title: "Cost", Workload: "ffmpeg"}, "Not measured: all.", "Figure 3 (Cost) of ffmpeg: none of its treatments was measured. Not measured: all."},
	} {
		if got := NothingMeasured(c.figure, c.note); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestRungTags(t *testing.T) {
	for _, c := range []struct {
		rung ladder.Rung
		want string
	}{
		{ladder.Rung{}, ""},
		{ladder.Rung{Significant: true, With: []string{"uts", "ipc"}}, "distinguishable from none; with uts, ipc"},
		{ladder.Rung{Emulated: true, Doubtful: true, Failing: true}, NotVMsCost + "; doubtful; too many trials failed"},
	} {
		if got := RungTags(&c.rung); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// If several checks have the same verdict, the widest interval is given.
func TestChecksTellTheLeastExact(t *testing.T) {
	of := []data.AACheck{{Verdict: data.Holds, Ratio: 1, Low: 0.99, High: 1.01}, {Verdict: data.Holds, Ratio: 1.01, Low: 0.9, High: 1.12}}
	if got, want := Checks(data.Holds, of, 2), "A/A check holds in 2 of 2, the least exact: bare metal against itself is "+Check(of[1])+"."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Checks(data.Holds, of[:1], 1), "A/A check holds: bare metal against itself is "+Check(of[0])+"."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
