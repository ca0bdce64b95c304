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
	var all []string
	for _, st := range a.Statements {
		all = append(append(all, st.Lead), st.Findings...)
	}
	return strings.Join(append(all, a.Remarks...), " ")
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
	for _, c := range []struct {
		name string
		sum  *data.Summary
		want string
	}{
		{"one is least", ranked(vanilla, pinned), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A vanilla docker container costs 31 % more (27 to 35); pinned, 10.0 % more (8.0 to 12.0)."},
		{"alone", ranked(vanilla), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A vanilla docker container costs 31 % more (27 to 35)."},
		{"alone and free", ranked(cost("cn", "crun", "", "pinned", 1, 0.01)), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): Open for a pinned crun container: 0.0 % (−1.0 to +1.0), at most 1.0 % more or 1.0 % less, about 3 more rounds (even odds), 6 (likely)."},
		{"two least", ranked(vanilla, crun, pinned), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A vanilla docker container costs 31 % more (27 to 35); pinned, 10.0 % more (8.0 to 12.0). A pinned crun container costs 11 % more (8 to 14)."},
		{"all alike but expensive", ranked(crun, pinned), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A pinned crun container costs 11 % more (8 to 14). A pinned docker container costs 10.0 % more (8.0 to 12.0)."},
		{"a wide one behind", ranked(pinned, vanilla, wide), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A vanilla crun container costs 40 % more (5 to 75). A vanilla docker container costs 31 % more (27 to 35); pinned, 10.0 % more (8.0 to 12.0)."},
		{"all free", ranked(cost("cn", "crun", "", "pinned", 1, 0.01), cost("cn", "lxc", "", "pinned", 0.99, 0.02), cost("cn", "docker", "", "pinned", 1.01, 0.02), cost("cn", "podman", "", "pinned", 1.02, 0.03), cost("cn", "runc", "", "pinned", 1.03, 0.04)),
			"For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): Open for a pinned runc container: +3 % (−1 to +7), at most 7 % more or 1 % less, about 15 more rounds (even odds), 30 (likely). Open for a pinned podman container: +2 % (−1 to +5), at most 5 % more or 1 % less, about 35 more rounds (even odds), 70 (likely). Open for a pinned lxc container: −1.0 % (−3.0 to +1.0), at most 1.0 % more or 3.0 % less, not settled within 1000 rounds by this estimate. Open for a pinned docker container: +1.0 % (−1.0 to +3.0), at most 3.0 % more or 1.0 % less, not settled within 1000 rounds by this estimate. Open for a pinned crun container: 0.0 % (−1.0 to +1.0), at most 1.0 % more or 1.0 % less, about 3 more rounds (even odds), 6 (likely)."},
		{"never ranked", ranked(pinned, doubtful, emulated), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A pinned docker container costs 10.0 % more (8.0 to 12.0). VMs were emulated here, so their figures do not represent a VM's cost. 1 treatment is not ranked: bare metal differed from itself by as much."},
		{"fails", ranked(pinned, failing), "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A pinned docker container costs 10.0 % more (8.0 to 12.0). 1 treatment is not ranked: too many trials failed."},
		{"bare metal fails", baseFails, "For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A pinned docker container costs 10.0 % more (8.0 to 12.0). Of bare metal itself, 1 of 5 trials failed: killed; failed trials do not count."},
		{"nothing to rank", ranked(emulated), "For ffmpeg at large, only emulated VMs were measured, which are never ranked: their figures are in the table. VMs were emulated here, so their figures do not represent a VM's cost."},
		{"unsteady bare metal", ranked(unbounded), "For ffmpeg at large, no overhead has bounds yet: bare metal varied too much. More rounds or a quieter host would give it some."},
		{"bare metal alone", ranked(), "For ffmpeg at large, only bare metal was measured: there is nothing to compare with it."},
		{"expensive ones", ranked(pinned, vanilla, vm, vmcn, cost("vm", "qemu", "kvm", "vanilla", 2.5, 0.1), cost("vmcn", "crun", "kvm", "vanilla", 3, 0.1)),
			"For ffmpeg at large, against bare metal (95 % intervals, margin 1 %): A vanilla crun container in a VM costs 3.00 times as much (2.90 to 3.10); pinned, 90 % more (80 to 100). A vanilla VM costs 2.50 times as much (2.40 to 2.60); pinned, 50 % more (40 to 60). A vanilla docker container costs 31 % more (27 to 35); pinned, 10.0 % more (8.0 to 12.0)."},
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
