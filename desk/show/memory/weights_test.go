package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
	"tare/stats"
)

func rowOf(t *testing.T, s *data.Summary, id string) *data.Row {
	t.Helper()
	for _, r := range s.Rows {
		if r.Treatment.ID == id {
			return r
		}
	}
	t.Fatalf("no row %q", id)
	return nil
}

// Guests of known sizes are measured to have these sizes, at each number of guests and with no error beyond the noise.
func TestWeights(t *testing.T) {
	s := showtest.Read(t, notebooktest.Weighed(), &Kind)
	for id, want := range map[string]struct{ own, shared, merged, sharedMerged, files float64 }{
		"idle bm large": {0.3, 0.1, 0.3, 0.1, 0.1}, "idle cn docker vanilla large": {9, 7, 9, 7, 4}, "idle vm qemu kvm pinned large": {140, 95, 90, 97, 5},
	} {
		w := weightsOf(rowOf(t, s, id))
		near := func(what string, e stats.Estimate, v float64) {
			t.Helper()
			if e.N != 5 || !(math.Abs(e.Value-v) < 0.03*v+1e-5) {
				t.Errorf("%s: %s is %+v, want %v", id, what, e, v)
			}
		}
		if len(w.Points) != 4 || len(w.Merged) != 4 || w.Added == nil || w.Last == nil {
			t.Fatalf("%s: %+v", id, w)
		}
		for i, n := range []int{1, 2, 4, 8} {
			if w.Points[i].Guests != n || w.Merged[i].Guests != n {
				t.Errorf("%s: the weighing %d is of %d guests, and %d", id, i, w.Points[i].Guests, w.Merged[i].Guests)
			}
			near(fmt.Sprint("PSS of ", n), w.Points[i].PSS, want.own+want.shared/float64(n))
			near(fmt.Sprint("PSS with KSM of ", n), w.Merged[i].PSS, want.merged+want.sharedMerged/float64(n))
			near("page tables", w.Points[i].Tables, 0.25)
			near("CPU time of ksmd", w.Merged[i].CPUS.Estimate, 2)
		}
		if w.Added.From != 4 || w.Added.To != 8 {
			t.Errorf("%s: what is added is from %d to %d", id, w.Added.From, w.Added.To)
		}
		near("one more", w.Added.PSS, want.own)
		near("its files", w.Added.File, want.files)
		near("its anonymous memory", w.Added.Anonymous, want.own-want.files)
		near("the last", w.Last.PSS, want.own+want.shared/8)
		sum := 0.0
		for _, p := range w.Last.Processes {
			sum += p.PSS.Value
		}
		if math.Abs(sum/w.Last.PSS.Value-1) > 1e-4 {
			t.Errorf("%s: its processes take %v of %v", id, sum, w.Last.PSS.Value)
		}
	}
	cn := weightsOf(rowOf(t, s, "idle cn docker vanilla large"))
	if p := cn.Last.Processes; len(p) != 3 || p[0].Name != "bash" || p[0].Count != 5 || p[1].Count != 1 {
		t.Errorf("processes %+v", p)
	}
	if d := weightsOf(rowOf(t, s, "idle vm qemu kvm pinned large")).Last.Duplicates; d == nil || d.Within.Sum.Value != 29 || d.Host.AnonFile.Value != 12 || d.Guests.Sum.Value != 59 {
		t.Errorf("duplicates %+v", d) // Table 6.4
	}
}

// A process that some guests lack has the mean over all guests, and the last part holds everything without a line of its own.
func TestPartsThatSomeGuestsLack(t *testing.T) {
	f := notebooktest.Weighed()
	weigh := f.Trial
	f.Trial = func(x *notebook.Trial) {
		weigh(x)
		weights := notebooktest.Seen[kind.Seen](x).Weights
		for i := range weights {
			g := weights[i].Last
			g.Processes = nil
			for p := range 30 {
				g.Processes = append(g.Processes, notebook.MemoryProcess{Name: fmt.Sprintf("p%02d", p), MemoryWeight: notebook.MemoryWeight{PSS: (100 - int64(p)) << 20}})
			}
			if x.Round == 0 {
				g.Processes = append(g.Processes, notebook.MemoryProcess{Name: "cron", MemoryWeight: notebook.MemoryWeight{PSS: 1000 << 20}})
			}
		}
	}
	all := weightsOf(rowOf(t, showtest.Read(t, f, &Kind), "idle bm large")).Last.Processes
	if len(all) != 21 || all[0].Name != "cron" || all[0].PSS.Value != 200 || all[0].Count != 0.2 || all[0].PSS.N != 5 {
		t.Errorf("%d lines, the first %+v", len(all), all[0])
	}
	sum := 0.0
	for _, p := range all {
		sum += p.PSS.Value
	}
	if rest := all[20]; !rest.Others || rest.Count != 11 || math.Abs(sum-(200+30*100-29*15)) > 1e-9 {
		t.Errorf("the last line is %+v, all together %v", rest, sum)
	}
}

// Further guests have points of their own, over the rounds that got to them. All else is of the number that each trial reached.
func TestFurtherGuestsHavePoints(t *testing.T) {
	f := notebooktest.Weighed()
	weigh := f.Trial
	f.Trial = func(x *notebook.Trial) {
		weigh(x)
		if all := notebooktest.Seen[kind.Seen](x).Weights; x.Round == 0 { // no room
			x.Seen = kind.Seen{Weights: slices.DeleteFunc(all, func(w kind.Weight) bool { return w.Guests > 4 })}
		}
	}
	f.Study.Kind, f.Study.Config = kind.Name, &kind.Config{Guests: []int{1, 2}, Further: []int{4, 8}, KSM: notebook.KSMPaper}
	row := rowOf(t, showtest.Read(t, f, &Kind), "idle cn docker vanilla large")
	w := weightsOf(row)
	if len(w.Points) != 4 || w.Points[2].PSS.N != 5 || w.Points[3].PSS.N != 4 || w.Points[3].Guests != 8 {
		t.Errorf("%+v", w.Points)
	}
	if w.Added == nil || w.Added.From != 1 || w.Added.To != 2 {
		t.Errorf("what is added is %+v", w.Added)
	}
	if got := merging(w); !strings.HasPrefix(got, "with KSM, 2 guests: ") {
		t.Errorf("%q", got)
	}
	two := w.Points[w.at(w.Points)]
	if got, want := strings.Join(contained(w), "; "), size(two.Engine); two.Guests != 2 || !strings.Contains(got, want) {
		t.Errorf("%q, want %s of the engine", got, want)
	}
}

// A folder may hold anything: the row leaves out what its study does not weigh, and nothing grows without limit.
func TestWeightsOfAFolderThatIsNotTrusted(t *testing.T) {
	f := notebooktest.Weighed()
	f.Rounds = 2
	f.Trial = func(x *notebook.Trial) {
		for n := range 1500 {
			x.Seen = kind.Seen{Weights: append(notebooktest.Seen[kind.Seen](x).Weights, kind.Weight{Guests: n - 100})}
		}
		weights := notebooktest.Seen[kind.Seen](x).Weights
		weights[0] = kind.Weight{Guests: 8, Last: &notebook.MemoryGuest{}, MemoryWeight: notebook.MemoryWeight{PSS: math.MaxInt64, RSS: math.MinInt64}}
		weights[1] = kind.Weight{Guests: 8, KSM: &notebook.KSM{CPUS: math.MaxFloat64}}
		for i := range 1200 {
			weights[0].Last.Processes = append(weights[0].Last.Processes, notebook.MemoryProcess{Name: fmt.Sprint(x.Round, " ", i), MemoryWeight: notebook.MemoryWeight{PSS: 1}})
		}
	}
	w := weightsOf(rowOf(t, showtest.Read(t, f, &Kind), "idle bm large"))
	if len(w.Points) != 4 || len(w.Merged) != 1 || len(w.Last.Processes) != 21 || w.Last.Processes[20].Count != 1190 {
		t.Errorf("%d points, %d merged, %d processes", len(w.Points), len(w.Merged), len(w.Last.Processes))
	}
	none := notebooktest.Weighed()
	none.Study.Kind, none.Study.Config = kind.Name, &kind.Config{}
	if r := rowOf(t, showtest.Read(t, none, &Kind), "idle bm large"); r.Of != nil || r.Config != nil {
		t.Errorf("a study that says no numbers has %+v", r.Of)
	}
}

// One guest's memory among two guests is not its memory among eight: folders of both are not averaged.
func TestOtherNumbersAreAnotherTable(t *testing.T) {
	a, b := notebooktest.Weighed(), notebooktest.Weighed()
	b.Study.Kind, b.Study.Config = kind.Name, &kind.Config{Guests: []int{1, 8}}
	b.Start = b.Start.AddDate(0, 0, 1)
	s, err := data.Read([]string{a.Write(t), b.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Tables()); n != 2 || len(s.Rows) != 10 {
		t.Errorf("%d tables, %d rows", n, len(s.Rows))
	}
}
