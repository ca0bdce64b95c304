package claims_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "tare/desk/claims"
	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/notebook"
	"tare/notebook/kinds/arrivals"
	"tare/notebook/notebooktest"
)

// started writes the folder of a study with the thesis's rates and higher ones, at which starts and samples are quite others. Starts at 1, 4 and 8 a second take its times,
// longer as the rate grows if grow is 1, and the engine's and its containers' samples have its shares, times shares; only the engine's are otherwise.
func started(t *testing.T, grow func(rate int, s float64) float64, unlike, shares float64) *data.Summary {
	t.Helper()
	const rounds = 8
	f := notebooktest.New(4)
	f.Rounds, f.Noise = rounds, 0
	a := arrivals.Config{ForS: 10, Least: 10, Most: 100, TimeoutS: 30, Profile: true}
	f.Study.Kind, f.Study.Config, f.Study.Design = arrivals.Name, &a, notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
	f.Study.Also = map[string][]notebook.Metric{}
	p95, median := map[string]float64{}, map[string]float64{}
	for i, w := range []string{"mapped-store", "httpd", "pagerank", "fio-mapped", "hashing", "uriparser"} {
		f.Study.Metrics[w], f.Study.Also[w] = arrivals.StartMean, a.Also()
		for rate, s := range map[int][2]float64{1: {0.68, 0.78}, 2: {1.1, 1.3}, 4: {1.55, 2.24}, 8: {2.65, 4.59}, 16: {50, 90}, 32: {500, 900}, 64: {5000, 9000}} {
			id := fmt.Sprintf("%s rate=%d cn docker vanilla 1/1GB", w, rate)
			f.Add(id, grow(rate, s[0]))
			p95[id], median[id] = grow(rate, s[1]), s[0]
			if i > 1 {
				median[id] = s[0] * (1 + unlike*float64(i))
			}
		}
	}
	f.Trial = func(x *notebook.Trial) {
		x.Figures = map[string]float64{arrivals.StartP95.Name: p95[x.Treatment], arrivals.StartP50.Name: median[x.Treatment]}
		for m, share := range map[notebook.Metric]float64{arrivals.ProfileAllKernel: 56.94, arrivals.ProfileAllGC: 21.8, arrivals.ProfileAllMemory: 19.85} {
			x.Figures[m.Name] = share * shares
		}
		for _, m := range []notebook.Metric{arrivals.ProfileInKernel, arrivals.ProfileGC, arrivals.ProfileMemory} {
			x.Figures[m.Name] = 1 // only of the engine, unlike the thesis's numbers
		}
		if !strings.Contains(x.Treatment, "rate=8 ") {
			for _, m := range arrivals.ProfileMetrics {
				x.Figures[m.Name] = 2 // at other rates
			}
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: kinds.All})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The claims of section 5.1 about starts under load hold where start times grow as the thesis says, however fast the host is. They do not hold where start times grow
// differently and the samples show other work. Rates that the thesis did not measure decide nothing.
func TestClaimsOfStartsUnderLoad(t *testing.T) {
	all, err := Shipped("characterization")
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(c Claim) bool { return !UnderLoad(c) })
	for name, c := range map[string]struct {
		grow           func(rate int, s float64) float64
		unlike, shares float64
		want           Answer
	}{
		"true":                        {func(_ int, s float64) float64 { return s }, 0.03, 1, Holds},
		"on a host ten times as fast": {func(_ int, s float64) float64 { return s / 10 }, 0.03, 1, Holds},
		"false":                       {func(rate int, s float64) float64 { return s * float64(rate*rate) }, 0.3, 1.7, DoesNotHold},
	} {
		for _, v := range Testable(t, 9, Judge(started(t, c.grow, c.unlike, c.shares), all)) {
			// Where starts become longer faster than the thesis says, they do become longer.
			if v.Answer != c.want && !(name == "false" && v.Claim.ID == "start-scales-not") {
				t.Errorf("%s: %s: %s, want %s: %s", name, v.Claim.ID, v.Answer, c.want, Why(v))
			}
		}
	}
	flat := func(int, float64) float64 { return 1 }
	if v := Find(t, Judge(started(t, flat, 0, 1), all), "start-scales-not"); v.Answer != DoesNotHold {
		t.Errorf("where starts do not become longer: %s: %s", v.Answer, Why(v))
	}
}
