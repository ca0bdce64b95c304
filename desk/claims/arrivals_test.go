package claims

import (
	"fmt"
	"slices"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// What section 5.1 of the thesis says of containers that are started under load holds where starts take what it says, and does not where they take
// twice that, with other work in the engine's samples.
func TestClaimsOfStartsUnderLoad(t *testing.T) {
	for _, c := range []struct {
		times  float64
		shares float64
		want   Answer
	}{{1, 1, Holds}, {2, 1.7, DoesNotHold}} {
		const rounds = 8
		f := notebooktest.New(4)
		f.Rounds, f.Noise = rounds, 0
		a := notebook.Arrivals{ForS: 10, Least: 10, Most: 100, TimeoutS: 30, Profile: true}
		f.Study.Arrivals, f.Study.Design = &a, notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
		f.Study.Metrics["mapped-store"], f.Study.Also = notebook.StartMean, map[string][]notebook.Metric{"mapped-store": a.Also()}
		p95 := map[string]float64{}
		for rate, s := range map[int][2]float64{1: {0.68, 0.78}, 4: {1.55, 2.24}, 8: {2.65, 4.59}} {
			id := fmt.Sprintf("mapped-store rate=%d cn docker vanilla 1/1GB", rate)
			f.Add(id, s[0]*c.times)
			p95[id] = s[1] * c.times
		}
		f.Trial = func(x *notebook.Trial) {
			x.Figures = map[string]float64{notebook.StartP95.Name: p95[x.Treatment]}
			for name, share := range map[string]float64{
				"engine's samples in the kernel": 56.94, "engine's samples in Go's garbage collection and allocation": 21.8,
				"engine's samples in the kernel's memory management, process creation and end": 19.85,
			} {
				x.Figures[name] = share * c.shares
			}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := Shipped("characterization")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range testable(t, 6, Judge(s, slices.DeleteFunc(all, func(c Claim) bool { return !underLoad(c) }))) {
			if v.Answer != c.want {
				t.Errorf("%s: %s, want %s: %s", v.Claim.ID, v.Answer, c.want, Why(v))
			}
		}
	}
}
