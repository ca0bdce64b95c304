package words

import (
	"fmt"
	"strings"
	"testing"

	"tare/internal/golden"
	"tare/notebook"
)

// preview is a plan with something of each kind.
func preview() notebook.Preview {
	at := func(workload, platform, engine, provisioning string, aa bool) notebook.Treatment {
		return notebook.Treatment{ID: workload + platform + engine + provisioning, Workload: workload, Platform: platform, Engine: engine, Provisioning: provisioning,
			AA: aa, Instance: notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}}
	}
	v := notebook.Preview{
		Study: "mine", Rounds: [2]int{5, 20}, Guests: notebook.Span{Low: 40, High: 160}, Trials: notebook.Span{Low: 80, High: 320},
		Seconds: notebook.Span{Low: 130, High: 835}, Preparing: notebook.Span{Low: 12, High: 95}, Disk: notebook.Span{Low: 80e6, High: 2e9}, Roots: 1,
		HostCode: []string{"the work on bare metal"}, Untried: []notebook.Untried{{Name: "crun", Why: "only a guest can tell", Configurations: 1}},
	}
	for _, w := range []string{"cpu", "ladder-io"} {
		v.Treatments = append(v.Treatments, at(w, notebook.BM, "", "", false), at(w, notebook.BM, "", "", true), at(w, notebook.CN, "crun", notebook.Pinned, false))
		v.LeftOut = append(v.LeftOut, notebook.LeftOut{Treatment: at(w, notebook.VM, "qemu", notebook.Pinned, false), Reason: notebook.Say("too-many-cores", "cores", 4, "has", 2)})
	}
	v.Works = []notebook.PreviewPart{{Work: "cpu", Seconds: notebook.Span{Low: 50, High: 300}}, {Work: "ladder-io", Seconds: notebook.Span{Low: 70, High: 440}}}
	v.Treatments = append(v.Treatments, v.Treatments[0])
	v.Treatments[len(v.Treatments)-1].Instance.Name = "2/1GB"
	return v
}

func TestAPlanInWords(t *testing.T) {
	var b strings.Builder
	show := func(title string, v notebook.Preview, can, all int) {
		fmt.Fprintf(&b, "== %s\n", title)
		for _, line := range Planned(v, can, all) {
			fmt.Fprintf(&b, "%-16s%s\n", line[0], line[1])
		}
		for _, line := range Beginning(v) {
			fmt.Fprintln(&b, line)
		}
	}
	show("a study with claims", preview(), 3, 8)
	v := preview()
	v.Untried, v.LeftOut, v.HostCode, v.Roots = nil, nil, nil, 0
	v.Unknown, v.More, v.BudgetS, v.Seconds = []string{"command"}, notebook.Span{Low: 80, High: 320}, 600, notebook.Span{Low: 130, High: 600}
	show("a command in a time budget", v, 0, 0)
	v.Rounds = [2]int{200, 200}
	show("as many rounds as fit", v, 0, 0)
	v = preview()
	v.Measured, v.Done, v.Rounds, v.Guests, v.Trials = []string{"out/mine"}, 12, [2]int{20, 20}, notebook.Span{Low: 68, High: 68}, notebook.Span{Low: 136, High: 136}
	v.Seconds, v.Preparing, v.Disk, v.Roots = notebook.Span{Low: 60, High: 70}, notebook.Span{}, notebook.Span{}, 0
	show("a study that goes on", v, 0, 8)
	v.Done, v.Guests, v.Trials = 80, notebook.Span{}, notebook.Span{}
	show("a study that is complete", v, 0, 8)
	golden.Check(t, "plan.txt", []byte(b.String()))
}

func TestTimesAreRoundedOutwards(t *testing.T) {
	for want, s := range map[string]notebook.Span{
		"6 to 14 min":    {Low: 360, High: 812},
		"44 s to 3 min":  {Low: 44.9, High: 130},
		"0 to 7 s":       {Low: 0.3, High: 6.2},
		"4 min":          {Low: 240, High: 240},
		"110 min to 3 h": {Low: 6600, High: 9000},
		"2 to 8 days":    {Low: 2 * 86400, High: 7.5 * 86400},
	} {
		if got := Time(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
	if got := TimeBriefly(notebook.Span{Low: 44, High: 130}); got != "44 s – 3 min" {
		t.Error(got)
	}
}

func TestNeedsOfAStudy(t *testing.T) {
	one := notebook.Span{Low: 1, High: 1}
	for want, n := range map[string]Needs{
		"1 CPU, 1 GB":             {CPUs: one, RAM: one},
		"1–4 CPUs, 0.5 GB, (KVM)": {CPUs: notebook.Span{Low: 1, High: 4}, RAM: notebook.Span{Low: 0.5, High: 0.5}, VMs: true, Emulates: true},
		"1 CPU, 4–8 GB, KVM, GPU": {CPUs: one, RAM: notebook.Span{Low: 4, High: 8}, VMs: true, GPU: true},
	} {
		if got := n.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
