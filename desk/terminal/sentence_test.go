package terminal_test

import (
	"math"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
)

// ranked makes the rows of one place: bare metal, and a row for each of the ratios.
func ranked(rows ...*data.Row) *data.Summary {
	bm := treatmentOf("bm", "", "", "", large)
	s := &data.Summary{Rows: []*data.Row{{Treatment: bm, Representative: true, Baseline: bm.ID, Trials: 5, Rounds: 5, Ratio: 1, RatioLow: 1, RatioHigh: 1}}}
	for _, r := range rows {
		r.Trials, r.Rounds, r.RatioRounds, r.Baseline = 5, 5, 5, bm.ID
		s.Rows = append(s.Rows, r)
	}
	return s
}

func cost(platform, engine, accelerator, provisioning string, ratio, half float64) *data.Row {
	t := treatmentOf(platform, engine, accelerator, provisioning, large)
	return &data.Row{Treatment: t, Representative: t.Representative(), Ratio: ratio, RatioLow: ratio - half, RatioHigh: ratio + half}
}

// answer is the answer of folders as one text.
func answer(s *data.Summary) string {
	a := words.Summary(s)
	return strings.Join(append(a.Headline, a.Remarks...), " ")
}

func TestSentence(t *testing.T) {
	pinned, vanilla := cost("cn", "docker", "", "pinned", 1.1, 0.02), cost("cn", "docker", "", "vanilla", 1.31, 0.04)
	crun := cost("cn", "crun", "", "pinned", 1.11, 0.03)
	wide := cost("cn", "crun", "", "vanilla", 1.4, 0.35)
	vm, vmcn := cost("vm", "qemu", "kvm", "pinned", 1.5, 0.1), cost("vmcn", "crun", "kvm", "pinned", 1.9, 0.1)
	doubtful := cost("cn", "lxc", "", "pinned", 0.9, 0.01)
	doubtful.Doubtful = true
	failing := cost("cn", "crun", "", "pinned", 0.8, 0.01)
	failing.Failed = 2
	baseFails := ranked(pinned)
	baseFails.Rows[0].Failed, baseFails.Rows[0].Lost = 1, 1
	baseFails.Rows[0].Doubts = []data.Doubt{data.TrialsFailed{Failed: 1, Trials: 5, Cause: data.Cause{Text: data.Text{First: notebook.TextMessage("killed")}, Times: 1, Alone: true}}}
	emulated := cost("vm", "qemu", "tcg", "pinned", 0.8, 0.01)
	unbounded := cost("cn", "docker", "", "pinned", 1.2, math.NaN())
	unbounded.Doubts = []data.Doubt{data.Unbounded{Baseline: data.Name{Platform: "bm"}}}
	onlyEmulated := &data.Summary{Rows: []*data.Row{cost("vm", "qemu", "tcg", "vanilla", math.NaN(), math.NaN())}}
	onlyEmulated.Rows[0].Trials, onlyEmulated.Rows[0].Rounds = 5, 5
	onlyEmulated.Rows[0].Metric = notebook.Metric{Name: "execution time", Unit: "s", Better: notebook.Lower}
	onlyEmulated.Rows[0].Mean, onlyEmulated.Rows[0].MeanLow, onlyEmulated.Rows[0].MeanHigh = 4, 3.9, 4.1
	for _, c := range []struct {
		name string
		sum  *data.Summary
		want string
	}{
		{"emulated VMs only", onlyEmulated, "FFmpeg: VM, emulated: execution time 4.00 s (3.90 to 4.10). Compare these figures only with those of other emulated VMs: this host has no hardware virtualization. VMs were emulated here, so their figures do not represent a VM's cost."},
		{"one is least", ranked(vanilla, pinned), "FFmpeg in Docker is 31 % slower with --cpus (27 to 35), and is 10.0 % slower with --cpuset-cpus (8.0 to 12.0)."},
		{"alone", ranked(vanilla), "FFmpeg in Docker is 31 % slower with --cpus (27 to 35)."},
		{"alone and free", ranked(cost("cn", "crun", "", "pinned", 1, 0.01)), "This run cannot tell for FFmpeg: crun could be 1.0 % faster or 1.0 % slower with a CPU set. At this noise about 3 more rounds would settle it at ±1 %."},
		{"hardly known", ranked(cost("cn", "crun", "", "pinned", 1.5, 1.2)), "This run cannot tell for FFmpeg: crun could take 0.30 to 2.7 times as long with a CPU set. At this noise about 30 more rounds would settle it at ±1 %."},
		{"not known", ranked(cost("cn", "crun", "", "pinned", 100, 100)), "This run cannot tell for FFmpeg: crun could differ by any factor with a CPU set. More than 1,000 rounds would be needed to settle it at ±1 %."},
		{"two least", ranked(vanilla, crun, pinned), "FFmpeg in Docker is 31 % slower with --cpus (27 to 35), and is 10.0 % slower with --cpuset-cpus (8.0 to 12.0). FFmpeg in crun is 11 % slower with a CPU set (8 to 14)."},
		{"all alike but expensive", ranked(crun, pinned), "FFmpeg in crun is 11 % slower with a CPU set (8 to 14). FFmpeg in Docker is 10.0 % slower with --cpuset-cpus (8.0 to 12.0)."},
		{"a wide one behind", ranked(pinned, vanilla, wide), "FFmpeg in crun is 40 % slower with a CPU quota (5 to 75). FFmpeg in Docker is 31 % slower with --cpus (27 to 35), and is 10.0 % slower with --cpuset-cpus (8.0 to 12.0)."},
		{"all free", ranked(cost("cn", "crun", "", "pinned", 1, 0.01), cost("cn", "lxc", "", "pinned", 0.99, 0.02), cost("cn", "docker", "", "pinned", 1.01, 0.02), cost("cn", "podman", "", "pinned", 1.02, 0.03), cost("cn", "runc", "", "pinned", 1.03, 0.04)),
			"This run cannot tell for FFmpeg: runc could be 1.0 % faster or 7.0 % slower with a CPU set; Podman could be 1.0 % faster or 5.0 % slower with --cpuset-cpus; LXC could be 3.0 % faster or 1.0 % slower with a CPU set; Docker could be 1.0 % faster or 3.0 % slower with --cpuset-cpus; crun could be 1.0 % faster or 1.0 % slower with a CPU set. More than 1,000 rounds would be needed to settle it at ±1 %."},
		{"never ranked", ranked(pinned, doubtful, emulated), "FFmpeg in Docker is 10.0 % slower with --cpuset-cpus (8.0 to 12.0). VMs were emulated here, so their figures do not represent a VM's cost. 1 treatment is not ranked: the difference is within the A/A noise (bare metal against itself)."},
		{"fails", ranked(pinned, failing), "FFmpeg in Docker is 10.0 % slower with --cpuset-cpus (8.0 to 12.0). 1 treatment is not ranked: too many runs failed."},
		{"bare metal fails", baseFails, "FFmpeg in Docker is 10.0 % slower with --cpuset-cpus (8.0 to 12.0)."},
		{"nothing to rank", ranked(emulated), "Nothing is compared: the VMs were emulated, because this host has no hardware virtualization. VMs were emulated here, so their figures do not represent a VM's cost."},
		{"unsteady bare metal", ranked(unbounded), "Bare metal varied too much to give an interval for FFmpeg. Try `tare doctor --noise`, or a longer workload."},
		{"bare metal alone", ranked(), "Only bare metal was measured for FFmpeg: there is nothing to compare with it."},
		{"expensive ones", ranked(pinned, vanilla, vm, vmcn, cost("vm", "qemu", "kvm", "vanilla", 2.5, 0.1), cost("vmcn", "crun", "kvm", "vanilla", 3, 0.1)),
			"FFmpeg in crun in a VM takes 3.00 times as long (2.90 to 3.10), and is 90 % slower with a CPU set (80 to 100). FFmpeg in a VM takes 2.50 times as long (2.40 to 2.60), and is 50 % slower with a CPU set (40 to 60). FFmpeg in Docker is 31 % slower with --cpus (27 to 35), and is 10.0 % slower with --cpuset-cpus (8.0 to 12.0)."},
		{"none", &data.Summary{}, "Nothing was measured."},
	} {
		for i := range c.sum.Rows {
			c.sum.Rows[i].Metric = notebook.Metric{Name: "execution time", Unit: "s"}
		}
		if got := answer(c.sum); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Where a place's own metric has no interval, a secondary metric that has one answers, and the sentence about the first names it. A doubtful place
// has no such answer.
func TestAnotherMetricAnswers(t *testing.T) {
	folder := func(doubtful bool) *data.Summary {
		slow := cost("cn", "docker", "", "pinned", 1.2, math.NaN())
		slow.Doubts = []data.Doubt{data.Unbounded{Baseline: data.Name{Platform: "bm"}}}
		s := ranked(slow)
		for i, ratio := range []float64{1, 0.5} {
			r := s.Rows[i]
			r.Metric = notebook.Metric{Name: "response time", Unit: "s"}
			figure := *r
			figure.IsFigure, figure.Doubts, figure.Metric = true, nil, notebook.Metric{Name: "transactions_per_second", Unit: "1/s", Better: notebook.Higher}
			figure.Ratio, figure.RatioLow, figure.RatioHigh = ratio, ratio*0.8, ratio*1.2
			r.Figures = []*data.Row{&figure}
		}
		if doubtful {
			other := cost("cn", "crun", "", "pinned", 1.1, 0.02)
			other.Doubtful, other.Trials, other.Rounds, other.Baseline = true, 5, 5, slow.Baseline
			other.Metric = slow.Metric
			s.Rows = append(s.Rows, other)
			s.AA = []data.AACheck{{Verdict: data.Misses, Ratio: 1.2, Low: 1.1, High: 1.3}}
		}
		return s
	}
	want := "FFmpeg in Docker has 50 % fewer transactions per second with --cpuset-cpus (40 to 60). " +
		"Bare metal varied too much to give an interval for the response time of FFmpeg. Try `tare doctor --noise`, or a longer workload. One more metric has a table of its own."
	if got := answer(folder(false)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	mixed := folder(false)
	known := cost("cn", "crun", "", "pinned", 1.1, 0.02)
	known.Treatment.ID, known.Trials, known.Rounds, known.Baseline, known.Metric = "crun", 5, 5, mixed.Rows[1].Baseline, mixed.Rows[1].Metric
	figure := *known
	figure.IsFigure, figure.Metric = true, mixed.Rows[1].Figures[0].Metric
	known.Figures = []*data.Row{&figure}
	mixed.Rows = append(mixed.Rows, known)
	want = "FFmpeg in crun is 10.0 % slower with a CPU set (8.0 to 12.0). FFmpeg in Docker has 50 % fewer transactions per second with --cpuset-cpus (40 to 60). One more metric has a table of its own."
	if got := answer(mixed); got != want {
		t.Errorf("of two environments one without an interval:\n got %s\nwant %s", got, want)
	}
	if got := answer(folder(true)); strings.Contains(got, "fewer transactions") && strings.Contains(got, "Do not use these figures") {
		t.Errorf("a finding before a doubt: %s", got)
	}
}
