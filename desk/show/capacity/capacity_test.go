package capacity

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/words"
	"tare/internal/golden"
	"tare/notebook"
	kind "tare/notebook/kinds/capacity"
	"tare/notebook/notebooktest"
)

// knownServices is a study of services whose queues grow without end at known rates, so that their capacities are known.
func knownServices(t *testing.T) *data.Summary { return noisyServices(t, 0.005) }

func noisyServices(t *testing.T, noise float64) *data.Summary {
	t.Helper()
	return servicesOf(t, noise, 920)
}

// servicesOf is the same with this capacity of the container with a CPU set.
func servicesOf(t *testing.T, noise, pinned float64) *data.Summary {
	t.Helper()
	f := notebooktest.New(8)
	f.Study.Name, f.Study.Kind, f.Study.Config = "capacity", kind.Name, &kind.Config{Metric: "p99", Bound: 0.05, From: 100, To: 10000, Raise: 1, HoldS: 10}
	f.Study.Design.Trials, f.Noise = 1, noise
	limits := map[string]float64{"shop bm large": 1000, "shop bm aa large": 1000, "shop cn docker pinned large": pinned, "shop cn docker vanilla large": 600}
	for _, name := range []string{"shop bm large", "shop bm aa large", "shop cn docker pinned large", "shop cn docker vanilla large"} {
		f.Add(name, 1/limits[name])
	}
	f.Study.Metrics["shop"], f.Study.Also = notebooktest.Config[kind.Config](f.Study, kind.Name).Figure(), map[string][]notebook.Metric{"shop": {kind.PerSecond}}
	f.Trial = func(x *notebook.Trial) {
		limit := limits[x.Treatment] * (1 / limits[x.Treatment]) / x.Value // with the noise of the value
		x.Figures = map[string]float64{kind.PerSecond.Name: 1 / x.Value}
		for rate := 100.0; ; rate *= 2 {
			s := kind.Step{Rate: int(rate), Throughput: min(rate, limit), Mean: 0.002 / max(0.02, 1-rate/limit), Tail: 0.006 / max(0.02, 1-rate/limit)}
			s.Met = s.Tail <= 0.05
			if rate > 2.5*limit {
				s.Failure = notebook.TextMessage("7 of its requests failed")
			}
			x.Seen = kind.Seen{Steps: append(notebooktest.Seen[kind.Seen](x).Steps, s)}
			if !s.Met {
				return
			}
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A capacity is drawn as throughput against latency, and stated as a share of bare metal's requests.
func TestCapacity(t *testing.T) {
	s := knownServices(t)
	figs := chart.OfPanels(chart.Panels(s), figure)
	f := figs[len(figs)-1]
	if !strings.HasSuffix(f.File, "-capacity") || !strings.Contains(f.Alt, "Docker, CPU set (--cpuset-cpus): 9") || !strings.Contains(f.Caption, "The knee") {
		t.Fatalf("%s: %s %s", f.File, f.Alt, f.Caption)
	}
	golden.Check(t, "capacity.svg", f.SVG())
	for _, r := range s.Rows {
		curve, ok := r.Of.(*Curve)
		if !ok || len(curve.Points) < 4 || math.Abs(r.Mean*r.Secondary[0].Mean-1) > 0.01 {
			t.Errorf("%s: %+v", r.Treatment.ID, r.Of)
			continue
		}
		last := curve.Points[len(curve.Points)-1]
		if !(curve.Knee.Value >= 100) || last.Tail.Value <= 0.05 && last.Failed == 0 {
			t.Errorf("%s: the knee at %v, the last point %+v", r.Treatment.ID, curve.Knee, last)
		}
	}
	said := strings.Join(words.Headline(s), "\n")
	golden.Check(t, "capacity.txt", []byte(said+"\n"))
	if !strings.Contains(said, " requests/s at p99 ≤ 50 ms.") {
		t.Error(said)
	}
}

// A card says a capacity in requests a second, and a change as the capacity's.
func TestACardSaysTheCapacity(t *testing.T) {
	s := knownServices(t)
	for _, r := range s.Rows {
		if amount := words.Amount(r); !strings.Contains(amount, " requests a second (") {
			t.Errorf("%s: %s", r.Treatment.ID, amount)
		}
		if r.Treatment.Platform != notebook.CN {
			continue
		}
		if q, is := words.AmountChange(r), r.Quotient(); !(q.Value < 1 && is.Value > 1) || math.Abs(q.Value*is.Value-1) > 1e-9 || q.Low > q.Value || q.High < q.Value {
			t.Errorf("%s has %v, its time %v", r.Treatment.ID, q, is)
		}
	}
}

// An interval that leaves open whether an environment handles much less or much more is not a finding.
func TestAWideCapacityIsNotAFinding(t *testing.T) {
	said := strings.Join(words.Headline(noisyServices(t, 0.3)), " ")
	if !strings.Contains(said, "This run cannot tell what Docker with --cpuset-cpus handles at p99 ≤ 50 ms: ") || strings.Contains(said, "--cpuset-cpus handles 9") {
		t.Errorf("%s", said)
	}
}

// An interval that includes bare metal's capacity says how much less it may be at most.
func TestACapacityThatIsHardlyLess(t *testing.T) {
	said := strings.Join(words.Headline(servicesOf(t, 0.02, 990)), " ")
	if m := regexp.MustCompile(`--cpuset-cpus handles \d+ % \((\d+) to 1\d+\) of [^:]*: at most (\d+) % fewer, if any\.`).FindStringSubmatch(said); m == nil {
		t.Error(said)
	} else if from, _ := strconv.Atoi(m[1]); m[2] != strconv.Itoa(100-from) {
		t.Errorf("%s: at most %s %% fewer", said, m[2])
	}
}

// An interval beyond the margin on one side that includes bare metal's capacity is stated with the doubt.
func TestACapacityThatMayBeAsGreat(t *testing.T) {
	said := strings.Join(words.Headline(noisyServices(t, 0.05)), " ")
	if !strings.Contains(said, "requests/s at p99 ≤ 50 ms, perhaps as many.") {
		t.Errorf("%s", said)
	}
}
