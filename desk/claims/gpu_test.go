package claims

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// What section 5.3 of the thesis says of a GPU's applications holds where they take in Docker what it says, and does not where everything takes twice as long there. What
// the CPU computed in a GPU's place (pocl) decides nothing.
func TestClaimsOfAGPU(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		true   bool
		want   Answer
	}{"true": {"cuda", true, Holds}, "false": {"cuda", false, DoesNotHold}, "no GPU": {"pocl", true, NotTestable}} {
		t.Run(name, func(t *testing.T) {
			const rounds = 8
			f := notebooktest.New(4)
			f.Rounds, f.Noise = rounds, 0
			f.Study.Design = notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
			f.Study.Metrics["gpu"] = notebook.Metric{Name: "application time", Unit: "s"}
			f.Study.Also = map[string][]notebook.Metric{"gpu": {
				{Name: "compilation", Unit: "s", Better: notebook.Lower}, {Name: "allocation", Unit: "s", Better: notebook.Lower}, {Name: "copies", Unit: "s", Better: notebook.Lower},
				{Name: "kernel share", Unit: "1", Better: notebook.Higher}, {Name: "end to end", Unit: "s"}, {Name: "kernels", Unit: "s", Better: notebook.Lower},
			}}
			figures := map[string]map[string]float64{}
			add := func(app, build, jit, place string, time float64, of map[string]float64) {
				id := fmt.Sprintf("gpu application=%s build=%s driver=%s jit=%s times=1 %s 1/1GB", app, build, c.driver, jit, place)
				f.Add(id, time)
				figures[id] = of
			}
			for app, ratio := range map[string]struct{ time, compilation float64 }{
				"lud": {1.07, 1.12}, "particle-filter": {1.108, 1.12}, "stencil": {1.034, 1.131}, "lenet-inference": {1.07, 1.094},
			} {
				for _, jit := range []string{"cold", "warm"} {
					for _, place := range []string{"bm", "cn docker pinned"} {
						// Of a run of 1 s compilation is a half, so that what it takes longer in a container is most of what all takes longer.
						time, compilation, allocation, copies, share, kernels := 1.0, 0.5, 0.01, 0.1, 0.2585, 0.2
						if jit == "warm" {
							time, compilation = 0.52, 0.02
						}
						switch {
						case c.true && place != "bm":
							time, allocation, copies, share = time*ratio.time, 0.0112, 0.1014, 0.2532
							if jit == "cold" {
								compilation *= ratio.compilation
							}
						case !c.true && place == "bm": // which compiles no less with a cache, and allocates for long
							allocation, compilation = 0.2, 0.5
						case !c.true:
							time, allocation, copies, share, kernels = 0.7, 0.1, 0.2, 0.1, 0.4
							switch {
							case jit == "warm":
								compilation = 0.9
							case app == "stencil":
								time = 0.75
							case app == "particle-filter":
								time = 0.65
							}
						}
						add(app, "ptx", jit, place, time, map[string]float64{"compilation": compilation, "allocation": allocation, "copies": copies, "kernel share": share, "end to end": time, "kernels": kernels})
					}
				}
			}
			for build, compilation := range map[string]float64{"device": 0.05, "many": 0.2} {
				if !c.true {
					compilation = 0.8 - compilation // the other way round, and both longer than PTX
				}
				add("lud", build, "cold", "cn docker pinned", 1, map[string]float64{"compilation": compilation})
			}
			f.Trial = func(x *notebook.Trial) { x.Figures = figures[x.Treatment] }
			s, err := data.Read([]string{f.Write(t)}, data.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all, err := Shipped("characterization")
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range Testable(t, 8, Judge(s, slices.DeleteFunc(all, func(c Claim) bool { return !OnGPU(c) }))) {
				if v.Answer != c.want || c.want == NotTestable && !strings.Contains(Why(v), "driver=cuda") {
					t.Errorf("%s: %s, want %s: %s", v.Claim.ID, v.Answer, c.want, Why(v))
				}
			}
		})
	}
}
