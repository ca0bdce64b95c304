package predict

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
)

// Of simulated hosts: predictions are near the truth, better than the naive ones, and most of them in their intervals.
func TestPredictionsHold(t *testing.T) {
	var left []Left
	for seed := range uint64(2) {
		w := newWorld(seed)
		for _, c := range w.calibrate(t, w.jobs(40), "crun", "gvisor").Check() {
			q := c.Quality
			t.Logf("host %d, %s: %+v", seed, c.Environment.Treatment.Engine, q)
			left = append(left, c.Left...)
		}
	}
	q := QualityOf(left)
	if inside := float64(q.Inside) / float64(q.N); inside < 0.9 || q.Refused > (q.N+q.Refused)/4 {
		t.Errorf("%g of %d are in their intervals, and %d are refused", inside, q.N, q.Refused)
	}
	if q.Model.OfShown > 0.3 || q.Model.Median > 0.05 || q.Model.Worst > q.None.Worst/2 || q.Model.Worst > q.Others.Worst/2 {
		t.Errorf("the model is off by %+v, no better than %+v and %+v", q.Model, q.None, q.Others)
	}
}

// What a run on bare metal did is predicted, tracers and the direction of its metric aside: its rates, its parts and the ratio.
func TestARunIsPredicted(t *testing.T) {
	w := newWorld(7)
	w.noise, w.odd = 0.002, 0.02
	c := w.calibrate(t, w.jobs(40), "gvisor")
	for i, j := range w.jobs(5) {
		j.reciprocal = i == 1
		all, err := c.Predict(read(t, w.measure(t, []job{j})))
		if err != nil || len(all.Works) != 1 || len(all.Works[0].Predictions) != 1 {
			t.Fatal(all, err)
		}
		for k, rate := range all.Works[0].Rates {
			if want := w.events(j, k); math.Abs(rate-want) > 0.02*want {
				t.Errorf("%s: %g %s a second, want %g", j.name, rate, Events[k].Name, want)
			}
		}
		p := all.Works[0].Predictions[0]
		if p.Refused != nil {
			t.Errorf("%s: refused: %#v", j.name, p.Refused)
			continue
		}
		if want := w.ratio(j, "gvisor"); p.Ratio < want*0.85 || p.Ratio > want*1.15 || p.Low > want || p.High < want {
			t.Errorf("%s: predicted %.3g (%.3g to %.3g), want %.3g", j.name, p.Ratio, p.Low, p.High, want)
		}
		sum := 1.0
		for _, part := range p.Parts {
			sum += part.Value
		}
		if math.Abs(sum-p.Ratio) > 1e-9 {
			t.Errorf("%s: 1 and the parts are %g, want %g", j.name, sum, p.Ratio)
		}
	}
}

// Events that are more work for the kernel than those of the probes cost as much more.
func TestLargeEvents(t *testing.T) {
	w := newWorld(13)
	w.noise, w.odd = 0.002, 0.02
	c := w.calibrate(t, w.jobs(40), "gvisor")
	predicted := 0
	for _, j := range w.jobs(20) {
		if j.size = 3; j.inKernel() < 0.3 {
			continue
		}
		all, err := c.Predict(read(t, w.measure(t, []job{j})))
		if err != nil {
			t.Fatal(err)
		}
		if size := all.Works[0].Size; math.Abs(size-3) > 0.3 {
			t.Errorf("%s: size %g, want 3", j.name, size)
		}
		p, want := all.Works[0].Predictions[0], w.ratio(j, "gvisor")
		if p.Refused != nil {
			continue
		}
		if predicted++; p.Ratio < want*0.85 || p.Ratio > want*1.15 {
			t.Errorf("%s: predicted %.3g (%.3g to %.3g), want %.3g", j.name, p.Ratio, p.Low, p.High, want)
		}
	}
	if predicted < 3 {
		t.Errorf("only %d predicted", predicted)
	}
}

// The size of events stays within limits, and is 1 where the kernel takes too little to tell.
func TestSizes(t *testing.T) {
	events := func(n float64) []float64 {
		rates := make([]float64, len(Events))
		rates[1] = n
		return rates
	}
	k := kernel{takes: events(1e-6), tracing: events(1e-6)}
	for _, c := range []struct{ rate, system, want float64 }{{1e5, 0.3, 2}, {1e5, 0.2, 1}, {1e5, 0.05, 0.25}, {1e5, 3, 8}, {1e4, 0.3, 1}} {
		if got := k.size(&Work{Rates: events(c.rate), system: c.system}); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%g events a second, %g in the kernel: size %g, want %g", c.rate, c.system, got, c.want)
		}
	}
}

// Nothing is predicted that the calibration cannot know.
func TestRefusals(t *testing.T) {
	w := newWorld(3)
	without := -1
	for k, e := range Events {
		if e.Name == "io_uring_calls" {
			without = k
		}
	}
	var jobs []job
	for _, j := range append(w.probes(), w.jobs(40)...) {
		j.shares[without] = 0
		if j.kind != Events[without].Name {
			jobs = append(jobs, j)
		}
	}
	c, err := Calibrate(read(t, w.measure(t, jobs, "gvisor")))
	if err != nil {
		t.Fatal(err)
	}
	unlike := w.jobs(1)
	unlike[0].shares[without] = 0.1
	all, err := c.Predict(read(t, w.measure(t, unlike)))
	if err != nil {
		t.Fatal(err)
	}
	p := all.Works[0].Predictions[0]
	if why, is := p.Refused.(Unlike); !is || why.Event.Name != Events[without].Name || !math.IsNaN(p.Ratio) {
		t.Errorf("events that no program of the calibration has: %g, %#v", p.Ratio, p.Refused)
	}

	few := w.calibrate(t, w.jobs(leastRows-1), "gvisor")
	if all, err = few.Predict(read(t, w.measure(t, w.jobs(1)))); err != nil {
		t.Fatal(err)
	}
	if why := all.Works[0].Predictions[0].Refused; why != (TooFewWorks{leastRows - 1, leastRows}) {
		t.Errorf("too few workloads: %#v", why)
	}

	elsewhere := read(t, w.measure(t, w.jobs(1)))
	elsewhere.Hosts[0].Kernel = "7.0"
	if all, err = c.Predict(elsewhere); err != nil || len(all.Doubts) == 0 || all.Doubts[0] != (OtherKernel{"6.18", "7.0"}) {
		t.Errorf("another kernel: %v, %#v", err, all.Doubts)
	}
	if known, is := all.Doubts[1].(Included); !is || known.Works != 1 { // the calibration has it
		t.Errorf("a work of the calibration: %#v", all.Doubts)
	}
	if _, is := all.Doubts[len(all.Doubts)-1].(IgnoredFlushes); is != (all.Works[0].Rates[syncCalls] > seldom) {
		t.Errorf("flushes that gVisor ignored: %#v", all.Doubts)
	}
	elsewhere.Hosts[0].ID = "bbbb"
	if _, err = c.Predict(elsewhere); err == nil || !strings.Contains(err.Error(), "the calibration is of the host bench (aaaa), and the work ran on bench (bbbb)") {
		t.Errorf("another host: %v", err)
	}
	if _, err = Calibrate(read(t, w.measure(t, w.jobs(3)))); err == nil || !strings.Contains(err.Error(), "no calibration") {
		t.Errorf("bare metal only: %v", err)
	}
}

// A run without counts is not predicted, and says why.
func TestUncounted(t *testing.T) {
	w := newWorld(5)
	c := w.calibrate(t, w.jobs(40), "gvisor")
	s := read(t, w.measure(t, w.jobs(2)))
	s.Rows[0].Trace = nil
	for _, r := range s.Rows[1:] {
		if r.Treatment.Workload == "job1" {
			r.Trace.Names[slices.Index(r.Trace.Names, "simple_calls")] = "other"
		}
	}
	all, err := c.Predict(s)
	if err != nil {
		t.Fatal(err)
	}
	var why []data.Doubt
	for _, k := range all.Skipped {
		why = append(why, k.Why)
	}
	if len(all.Works) != 0 || len(why) != 2 || why[0] != (Untraced{}) {
		t.Errorf("predicted %d, skipped %#v", len(all.Works), why)
	}
	if _, is := why[1].(Uncounted); !is {
		t.Errorf("a tracer that saw nothing: %#v", why[1])
	}
}

// A ratio is not predicted that may be a small part of what is said, above bare metal's and below it.
func TestTooWide(t *testing.T) {
	e := &Environment{}
	for _, c := range []struct {
		ratio, half float64
		refused     bool
	}{{3, 0.9, false}, {3, 1, true}, {0.9, 0.5, false}, {0.9, 0.6, true}, {0.3, 0.15, false}, {0.3, 0.2, true}, {1, math.NaN(), true}} {
		p := within(e, scaled(c.ratio), c.half, 2)
		if why, is := p.Refused.(TooWide); is != c.refused || is && why.Factor <= mostFactor {
			t.Errorf("%g ± %g: %+v", c.ratio, c.half, p)
		}
	}
}

// A few events that no program of the calibration has do not matter, and a round without a time leaves the others their numbers.
func TestOddities(t *testing.T) {
	w := newWorld(11)
	without := slices.IndexFunc(Events, func(e Event) bool { return e.Name == "io_uring_calls" })
	var jobs []job
	for _, j := range append(w.probes(), w.jobs(40)...) {
		if j.shares[without] = 0; j.kind != "io_uring_calls" {
			jobs = append(jobs, j)
		}
	}
	s := read(t, w.measure(t, jobs, "crun"))
	for _, r := range s.Rows {
		if r.Treatment.Workload == "job3" && r.Treatment.Engine == "crun" {
			r.Values[0].Mean = 0
		}
	}
	c, err := Calibrate(s)
	if err != nil || len(c.Environments[0].Rows) != 39 || c.Environments[0].model == nil {
		t.Fatalf("a round of no time: %v, %+v", err, c.Environments[0].Cannot)
	}
	rates := slices.Clone(c.works[0].Rates)
	rates[without] = seldom / 2
	more := *c.works[0]
	more.Rates = rates
	few := c.Environments[0].predict(&more)
	if none := c.Environments[0].predict(c.works[0]); few.Ratio != none.Ratio || few.Refused != nil {
		t.Errorf("a few events more: %+v, without %+v", few, none)
	}
	other := *c.works[0]
	other.Treatment.Instance = notebook.Instance{Name: "2/8GB", Cores: 2, Memory: 8 << 30}
	if p := c.Environments[0].predict(&other); p.Refused != (OtherSize{"2/8GB"}) {
		t.Errorf("another size: %+v", p)
	}
}

// What a container does is predicted relative to its engine: bare metal takes less by the engine's costs.
func TestObserved(t *testing.T) {
	w := newWorld(7)
	w.noise, w.odd = 0.002, 0.02
	c := w.calibrate(t, w.jobs(40), "crun", "gvisor")
	j := w.jobs(1)[0]
	j.size = 0
	o := &notebook.Observation{
		Seconds: 30, Target: notebook.ObservedTarget{Name: "web"}, Figures: map[string]float64{"run_s": 10 * (1 - j.shares[slices.IndexFunc(Events, func(e Event) bool { return e.Name == DiskWaits })])},
		Waits: map[string]int64{}, Slices: []notebook.ObservedSlice{{Seconds: 30, Wall: map[string]float64{}}},
	}
	in := w.ratio(j, "crun") // of the second of bare metal's time that the counts are of
	for k, e := range Events {
		switch n := 10 * w.events(j, k) / in; {
		case e.Name == DiskWaits:
			o.Slices[0].Wall[notebook.WallBlock] = 10 * j.shares[k]
		case e.Name == Computing:
			o.Slices[0].Wall[notebook.WallUser], o.Slices[0].Wall[notebook.WallSystem] = j.shares[k]/in, 1-1/in+j.inKernel()*(1+tracing)/in
		case slices.Contains(waits, e.Figure):
			o.Waits[e.Figure] = int64(n)
		default:
			o.Figures[e.Figure] = n
		}
	}
	all, err := c.Observed(o, "crun", notebook.Pinned, 1, host)
	if err != nil || len(all.Works) != 1 || len(all.Works[0].Predictions) != 2 || all.Works[0].Reference.Treatment.Engine != "crun" {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []float64{1 / in, w.ratio(j, "gvisor") / in} {
		if p := all.Works[0].Predictions[i]; p.Refused != nil || p.Ratio < 0.85*want || p.Ratio > 1.15*want || p.Low > want || p.High < want {
			t.Errorf("%+v, want %.3g", p, want)
		}
	}
	if _, err := c.Observed(o, "docker", notebook.Pinned, 1, host); err == nil || !strings.Contains(err.Error(), "nothing of docker") {
		t.Errorf("an engine that was not calibrated: %v", err)
	}
	o.Waits = nil
	if all, err = c.Observed(o, "crun", notebook.Pinned, 1, host); err != nil || len(all.Works) != 0 || len(all.Skipped) != 1 {
		t.Errorf("without counts: %+v, %v", all, err)
	}
}

// Every event has a metric of the tracer that is to count it.
func TestEventsAreCounted(t *testing.T) {
	for _, e := range Events {
		found := false
		for _, tracer := range notebook.Tracers {
			if tracer.Name != e.Tracer {
				continue
			}
			for _, m := range tracer.Metrics {
				found = found || m.Name == e.Figure || e.Tracer == notebook.TracerScheduler && slices.Contains(notebook.Walls, e.Figure)
			}
		}
		if !found {
			t.Errorf("%s: the tracer %s has no metric %s", e.Name, e.Tracer, e.Figure)
		}
	}
}

// However rows disagree, something is believed of the costs, and as much without a workload. Costs and variances that are each found from the
// other do not run away.
func TestNoisyRowsAreLearned(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(seed)
		row := func(j job, noise float64) *Row {
			r := &Row{Work: &Work{Treatment: notebook.Treatment{Workload: j.name}, Size: 1}, noise: noise}
			for k := range Events {
				r.Rates = append(r.Rates, w.events(j, k))
			}
			r.scaled = scaled(w.ratio(j, "gvisor")) + noise*w.NormFloat64()
			return r
		}
		e := &Environment{}
		for _, j := range w.probes()[:10] { // the costs of other events are unknown
			e.Probes = append(e.Probes, row(j, 0.1))
		}
		for _, like := range w.jobs(3) {
			for step := range 8 { // a ladder
				j := like
				j.shares = slices.Clone(like.shares)
				for k := range j.shares[1:] {
					j.shares[1+k] *= float64(1+step) / 8
				}
				e.Rows = append(e.Rows, row(j, 0.5))
			}
		}
		e.scale()
		loop, ok := probed(e.Probes)
		if !ok {
			t.Fatal("the probes tell nothing")
		}
		e.priors = loop.inPrograms()
		if m := (&Calibration{Environments: []*Environment{e}}).fit("")[0]; m == nil {
			t.Errorf("host %d: nothing is learned", seed)
		}
	}
}
