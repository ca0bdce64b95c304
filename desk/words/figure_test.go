package words

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/notebook"
	"tare/stats"
)

func TestProvisionings(t *testing.T) {
	rows := []*data.Row{{Treatment: notebook.Treatment{Provisioning: notebook.Vanilla}}}
	if got, want := Provisionings(rows, "Pale bars", "solid ones"), "Pale bars have a CPU quota, solid ones a CPU set."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rows = append(rows, &data.Row{Treatment: notebook.Treatment{Provisioning: notebook.Whole}})
	if got := Provisionings(rows, "Pale bars", "solid ones"); !strings.HasSuffix(got, "a CPU set or no limit.") {
		t.Errorf("with whole: %q", got)
	}
}

// Below a figure a long reason gives way to where it stands, and many names to their number.
func TestNotMeasured(t *testing.T) {
	s := &data.Summary{}
	gap := func(size, reason string) data.LeftOut {
		return data.LeftOut{Treatment: notebook.Treatment{Platform: notebook.CN, Engine: "docker", Provisioning: notebook.Pinned, Instance: notebook.Instance{Name: size}}, Reason: notebook.TextMessage(reason)}
	}
	if got := NotMeasured(s, nil); got != "" {
		t.Errorf("no gaps: %q", got)
	}
	long := strings.Repeat("a long story; ", 12)
	got := NotMeasured(s, []data.LeftOut{gap("a", "no memory."), gap("b", long), gap("a", long), gap("c", long), gap("d", long)})
	if want := " (no memory); 4 treatments at b, a, c, d (the reason is under “What was left out”)."; !strings.HasPrefix(got, "Not measured: ") || !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
}

func TestStairMarks(t *testing.T) {
	measured := func(kind ladder.Kind, ratio float64) *ladder.Rung {
		return &ladder.Rung{Kind: kind, Row: &data.Row{Rounds: 3}, Ratio: stats.Quotient{Value: ratio, N: 3}}
	}
	c := &ladder.Staircase{Rungs: []*ladder.Rung{measured(ladder.BareMetal, 1), measured(ladder.Layer, 1.1)}}
	if got := StairMarks(c, 2); got != "" {
		t.Errorf("layers only: %q", got)
	}
	c.Rungs = append(c.Rungs, measured(ladder.Engine, 1.2), measured(ladder.VM, 3))
	if got, want := StairMarks(c, 2), "Below the stairs: whole containers, each compared with the topmost layer (dotted); the VM, compared with bare metal. An arrow: beyond the axis, with its value."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Rungs[3].Emulated = true
	if got := StairMarks(c, 4); !strings.HasSuffix(got, " Hatched: emulated, which says nothing of a VM’s cost; never ranked.") {
		t.Errorf("emulated: %q", got)
	}
}

func TestWaterfallBars(t *testing.T) {
	for _, c := range []struct {
		solid, pale int
		want        string
	}{{2, 0, ""}, {0, 2, "Pale: the 95 %"}, {1, 1, "Solid: the 95 %"}} {
		if got := WaterfallBars(c.solid, c.pale); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d solid and %d pale: %q", c.solid, c.pale, got)
		}
	}
}

func TestDistribution(t *testing.T) {
	for _, c := range []struct {
		of       notebook.Distribution
		inside   bool
		platform string
		want     string
	}{
		{notebook.Distribution{What: notebook.OnCPU}, false, notebook.CN, "on a core"},
		{notebook.Distribution{What: notebook.OffCPU, Of: notebook.WallFutex}, false, notebook.CN, "waiting for each other (futex)"},
		{notebook.Distribution{What: notebook.BlockIO, Of: "vda read"}, true, notebook.VM, "in the VM: block I/O, vda read"},
		{notebook.Distribution{What: notebook.RunQueue, Role: notebook.RoleVCPU}, false, notebook.VM, "vCPUs: in the run queue"},
		{notebook.Distribution{What: notebook.OnCPU, Role: notebook.RoleEmulator}, false, notebook.VM, "emulator: on a core"},
		{notebook.Distribution{What: notebook.OnCPU, Role: notebook.RoleEmulator}, false, notebook.CN, "sandbox: on a core"},
	} {
		if got := Distribution(&c.of, c.inside, c.platform); got != c.want {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
	if got, want := TimesInTrial(1234.4, 0.5, "s"), Thousands(1234)+"×, "+Duration(0.5); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := TimesInTrial(2.5, 0, "B"); got != "2.5×" {
		t.Errorf("%q", got)
	}
}
