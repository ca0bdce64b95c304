package data_test

import (
	"math"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// trending is a folder in which guests have 1 to 9 trials, as allocation chooses them. All values grow by both from one trial to the next. The
// pinned container's values grow by own as well.
func trending(seed uint64, own, both float64) *notebooktest.Folder {
	f := notebooktest.New(2)
	f.Seed, f.Rounds, f.Noise = seed, 15, 0.01
	f.Study.Design = notebook.Design{Floor: 15, Cap: 15, Trials: 9, TimeoutS: 60}
	f.Add("bm large", 4).Add("bm aa large", 4).Add("cn crun pinned large", 4.2).Add("cn docker vanilla large", 4.3)
	f.Trial = func(t *notebook.Trial) {
		by := both
		if t.Treatment == "cn crun pinned large" {
			by += own
		}
		t.Value *= 1 + by*float64(t.Index)
		if t.Index > t.Round%9 { // no guest does more
			t.Failure, t.Value, t.ElapsedS = notebook.TextMessage("not done"), 0, 0
		}
	}
	return f
}

func trendsOf(t *testing.T, f *notebooktest.Folder) (all []data.Trend, of []string) {
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Rows {
		for _, d := range r.Doubts {
			if d, is := d.(data.Trend); is {
				all, of = append(all, d), append(of, r.Treatment.ID)
			}
		}
	}
	return all, of
}

// If values change within a guest's life in another way than bare metal's, the ratio depends on the number of trials in a guest, and a doubt says so.
// An equal change on both sides causes no doubt, and noise does not either.
func TestATrendWithinGuests(t *testing.T) {
	const studies = 60
	alike, found := 0, 0
	for seed := range uint64(studies) {
		if all, _ := trendsOf(t, trending(seed, 0, 0.01)); len(all) > 0 {
			alike++
		}
		all, of := trendsOf(t, trending(seed, 0.005, 0.01))
		for i, d := range all {
			if of[i] == "cn crun pinned large" && d.Change > 0.01 && d.Change < 0.03 && d.Most == 9 && d.Baseline.Platform == notebook.BM {
				found++
			} else if of[i] == "cn crun pinned large" {
				t.Errorf("%s: %+v", of[i], d)
			}
		}
	}
	t.Logf("noted in %d of %d studies in which all change alike, found in %d", alike, studies, found)
	if alike > 6 || found < studies*9/10 {
		t.Errorf("noted in %d of %d studies in which all change alike, found in %d", alike, studies, found)
	}
	got := words.Doubt(data.Trend{Change: 0.021, Low: 0.009, High: 0.033, Most: 9, Baseline: data.Name{Platform: notebook.BM}})
	if want := "from the first to the last run of a guest, its values change by +2.1 % (+0.9 to +3.3) relative to those of bare metal: the ratio depends on how many runs a guest does (up to 9 here)"; got != want {
		t.Errorf("%q", got)
	}
}

// A trial that the time limit ended would have taken longer: the ratio of what succeeded is too low, and a bound says by how much at least.
func TestTimeoutsBoundARatio(t *testing.T) {
	read := func(ended ...string) *data.Summary {
		f := notebooktest.New(2)
		f.Rounds, f.Noise = 20, 0.01
		f.Study.Design = notebook.Design{Floor: 20, Cap: 20, Trials: 1, TimeoutS: 8}
		f.Add("bm large", 4).Add("cn crun pinned large", 4)
		f.Trial = func(t *notebook.Trial) {
			for _, id := range ended {
				if t.Treatment == id && t.Round%10 == 9 {
					t.Failure, t.Value, t.ElapsedS = notebook.TextMessage("killed after 8.001s, the time it was given"), 0, 8.001
				}
			}
			if t.Round == 3 && t.Treatment == "cn crun pinned large" {
				t.Failure, t.Value, t.ElapsedS = notebook.TextMessage("exit status 1"), 0, 1 // it says nothing of how long it would have taken
			}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	said := func(r *data.Row) (all []string) {
		for _, d := range r.Doubts {
			if d, is := d.(data.TimedOut); is {
				all = append(all, words.Doubt(d))
			}
		}
		return all
	}
	const bm, cn = "bm large", "cn crun pinned large"
	for _, x := range []struct {
		ended  []string
		bm, cn string
	}{
		{nil, "", ""},
		{[]string{cn}, "", "the time limit ended 2 of 20 runs, and the means lack the time that they would have taken: if each took as long as it ran, the ratio is at least 1.1"},
		{[]string{bm}, "the time limit ended 2 of 20 runs, and the means lack the time that they would have taken: its mean is too low", "the time limit ended 2 of 20 runs of bare metal, and the means lack the time that they would have taken: if each took as long as it ran, the ratio is at most 0.9"},
		{[]string{bm, cn}, "the time limit ended 2 of 20 runs, and the means lack the time that they would have taken: its mean is too low", "the time limit ended 2 of 20 runs and 2 of 20 runs of bare metal, and the means lack the time that they would have taken: the ratio has no bound"},
	} {
		s := read(x.ended...)
		if math.Abs(s.Rows[1].Ratio-1) > 0.02 {
			t.Errorf("%v: what succeeded has the ratio %v", x.ended, s.Rows[1].Ratio)
		}
		for i, want := range []string{x.bm, x.cn} {
			got := said(s.Rows[i])
			if want == "" && got != nil || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
				t.Errorf("%v: %s: %q, want %q", x.ended, s.Rows[i].Treatment.ID, got, want)
			}
		}
	}
	for _, d := range read(cn).Rows[1].Doubts {
		if d, is := d.(data.TimedOut); is && (math.Abs(d.Ratio-(4*17+8*2)/(4.*19)) > 0.02 || !(d.Low < d.Ratio)) {
			t.Errorf("%+v", d)
		}
	}
}
