package words_test

import (
	"fmt"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// answered reads a folder and gives its findings, its remarks, and the sentences about the row of a treatment.
func answered(t *testing.T, f *notebooktest.Folder, of string) (findings, remarks, row string) {
	t.Helper()
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := words.Summary(s)
	findings = strings.Join(a.Headline, "\n") + "\n"
	for _, r := range s.Rows {
		for _, d := range r.Doubts {
			if r.Treatment.ID == of {
				row += words.Doubt(d) + "\n"
			}
		}
	}
	return findings, strings.Join(a.Remarks, " "), row
}

// listed are the lines below the tables of the first answer.
func listed(t *testing.T, dirs ...string) string {
	t.Helper()
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, b := range words.ResultOf(s, false).Blocks {
		for _, line := range b.Lines {
			fmt.Fprintln(&said, line.Text)
		}
	}
	return said.String()
}

// What gVisor's guests sync does not reach the disk: all that rests on it says so, what may rest on it says that, and nothing else does.
func TestIgnoredFlushes(t *testing.T) {
	const (
		sure = "gVisor ignored flushes, and ladder-io syncs what it writes: its results there are not the cost of synced writes."
		may  = "gVisor ignored flushes: if the work syncs what it writes (fsync), its results there are not the cost of synced writes."
	)
	for name, c := range map[string]struct {
		engine, workload string
		synced           map[string]bool
		noFlush          bool // recorded of guests
		finding, remark  string
	}{
		"recorded":                 {"gvisor", "mine", map[string]bool{"mine": true}, true, "they are not flushed", "and mine syncs what it writes"},
		"a folder from before":     {"gvisor", "ladder-io", nil, false, "they are not flushed", sure},
		"it does not sync":         {"gvisor", "mine", map[string]bool{"mine": false}, true, "", ""},
		"it is not known":          {"gvisor", "mine", nil, true, "", may},
		"it is not known, as then": {"gvisor", "mine", nil, false, "", may},
		"another engine":           {"crun", "ladder-io", map[string]bool{"ladder-io": true}, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			id := c.workload + " cn " + c.engine + " pinned 1/1GB"
			f := notebooktest.New(4).Add(c.workload+" bm 1/1GB", 2).Add(id, 1)
			f.Study.Syncs = c.synced
			f.Guest = func(g *notebook.Guest) { g.NoFlush = c.noFlush && g.Treatment == id }
			findings, remarks, row := answered(t, f, id)
			if strings.Contains(findings, "they are not flushed") != (c.finding != "") {
				t.Errorf("findings: %s", findings)
			}
			if strings.Contains(remarks, "flushes") != (c.remark != "") || !strings.Contains(remarks, c.remark) {
				t.Errorf("remarks: %s", remarks)
			}
			if strings.Contains(row, "not the cost of synced writes") != (c.remark != "") {
				t.Errorf("the row: %s", row)
			}
		})
	}
}

// The text names what runs found of earlier ones once, with a file of it and what to do.
func TestStateIsFound(t *testing.T) {
	const id = "cn crun pinned 1/1GB"
	f := notebooktest.New(4).Add("bm 1/1GB", 2).Add(id, 1)
	finds := false
	f.Trial = func(x *notebook.Trial) {
		if x.Found = nil; finds && x.Index > 0 {
			x.Found = &notebook.Found{Files: []string{"/tmp/stamp", "/tmp/x"}, N: 3}
		}
	}
	if _, remarks, row := answered(t, f, id); strings.Contains(remarks+row, "found") {
		t.Errorf("%s %s", remarks, row)
	}
	finds = true
	_, remarks, row := answered(t, f, id)
	const what = "of %d runs found what an earlier run had left in the same guest (/tmp/stamp and 2 more files), and may have done less work"
	if !strings.Contains(row, "10 "+fmt.Sprintf(what, 15)) {
		t.Errorf("the row: %s", row)
	}
	if want := "ffmpeg: 20 " + fmt.Sprintf(what, 30) + ". Let the command remove what it leaves, or write it to {scratch}, which Tare empties before each run."; strings.Count(remarks, want) != 1 {
		t.Errorf("remarks: %s", remarks)
	}
}

// A finding about runs of a few milliseconds says what else differs at that scale, or that it is below what Tare resolves.
func TestShortRuns(t *testing.T) {
	const id = "cn crun pinned 1/1GB"
	const differs = "at this length the choice of CPU, the wake-up and the start of the process differ too"
	for name, c := range map[string]struct {
		base, mean            float64
		said, below, resolves bool
	}{
		"long":                       {1, 1.1, false, false, false},
		"short":                      {0.005, 0.008, true, false, true},
		"short, and the same nearly": {0.005, 0.0052, true, true, false}, // the ruler takes 0.42 ms
	} {
		t.Run(name, func(t *testing.T) {
			findings, remarks, row := answered(t, notebooktest.New(4).Add("bm 1/1GB", c.base).Add(id, c.mean), id)
			if strings.Contains(remarks, differs) != c.said || strings.Contains(findings, "below the measurement overhead (422 µs)") != c.below {
				t.Errorf("findings: %s %s", findings, remarks)
			}
			if strings.Contains(row, "Tare cannot resolve the difference") != c.below || strings.Contains(row, differs) != c.resolves {
				t.Errorf("the row: %s", row)
			}
		})
	}
	// Another time, which the program prints, is not that of a run.
	f := notebooktest.New(4).Add("bm 1/1GB", 0.005).Add(id, 0.008)
	f.Trial = func(x *notebook.Trial) { x.ElapsedS, x.HostS = 10, 10 }
	if findings, remarks, row := answered(t, f, id); strings.Contains(findings+remarks+row, "at this length") {
		t.Errorf("%s %s %s", findings, remarks, row)
	}
}

// A load that used its own CPUs fully may have been what was measured. The first answer says so.
func TestSaturatedLoadIsACaveat(t *testing.T) {
	for _, saturated := range []bool{true, false} {
		f := notebooktest.New(2).Add("bm large", 1).Add("cn docker vanilla large", 1.2)
		f.Trial = func(x *notebook.Trial) {
			if saturated {
				x.Warnings = []*notebook.Message{notebook.Say("load-saturated", "share", 0.9)}
			}
		}
		said := listed(t, f.Write(t))
		if got := strings.Contains(said, "In 30 of 30 runs the load generator used 90 % of its CPUs' time or more"); got != saturated {
			t.Errorf("saturated %v: %s", saturated, said)
		}
	}
}

// An environment that waited for its rounds because time was short is named.
func TestFewRoundsOfAnEnvironmentAreACaution(t *testing.T) {
	for _, all := range []int{2, 5} {
		first, more := notebooktest.New(2).Add("bm large", 1).Add("cn docker vanilla large", 1.01).Add("cn docker pinned large", 1), notebooktest.New(2).Add("bm large", 1).Add("cn docker pinned large", 1)
		first.Rounds, first.Noise = all, 0.3
		more.Rounds, more.Noise, more.Seed = 5, 0.3, 8
		more.Guest, more.Trial = func(g *notebook.Guest) { g.ID += " more" }, func(x *notebook.Trial) { x.Guest += " more" }
		said := listed(t, first.Write(t), more.Write(t))
		if got := strings.Contains(said, "Docker, CPU quota (--cpus) has only 2 of 7 rounds."); got != (all == 2) {
			t.Errorf("%d rounds: %s", all, said)
		}
	}
}
