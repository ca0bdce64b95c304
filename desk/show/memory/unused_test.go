package memory

import (
	"strings"
	"testing"

	"tare/desk/show/showtest"
	"tare/internal/golden"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// The report says how much less VMs take without devices, next to the paper's values. A VM with another engine, size or way of
// weighing is not compared.
func TestUnusedDevices(t *testing.T) {
	f := notebooktest.New(4)
	f.Rounds, f.Noise = 4, 0
	f.Study.Kind, f.Study.Config = kind.Name, &kind.Config{Guests: []int{1, 2}, KSM: notebook.KSMPaper}
	takes := map[string][2]float64{ // alone, one more
		"idle bm large": {1, 1}, "idle bm aa large": {1, 1},
		"idle vm qemu kvm pinned devices=virt-manager large":      {100, 60},
		"idle vm qemu kvm pinned devices=usb,balloon large":       {84.5, 54.5},
		"idle vm qemu kvm pinned devices=qxl,spice,balloon large": {95, 61},
		"idle vm qemu kvm pinned large":                           {80, 50},
		"idle vm qemu kvm vanilla devices=balloon large":          {10, 10}, // no VM with all devices exists for it
	}
	for _, words := range []string{"idle bm large", "idle bm aa large", "idle vm qemu kvm pinned devices=usb,balloon large", "idle vm qemu kvm pinned devices=virt-manager large",
		"idle vm qemu kvm pinned devices=qxl,spice,balloon large", "idle vm qemu kvm pinned large", "idle vm qemu kvm vanilla devices=balloon large"} {
		f.Add(words, takes[words][0])
	}
	f.Study.Metrics["idle"] = kind.PSS
	f.Study.Also = map[string][]notebook.Metric{"idle": {kind.AloneKSM, kind.AddedKSM}}
	f.Trial = func(x *notebook.Trial) {
		d := 0.0
		if strings.Contains(x.Treatment, "virt-manager") {
			d = []float64{-0.25, 0.25}[x.Round%2]
		}
		x.Figures = map[string]float64{kind.AloneKSM.Name: takes[x.Treatment][0] + d, kind.AddedKSM.Name: takes[x.Treatment][1] + d}
	}
	page := showtest.Page(t, f, &Kind)
	golden.Check(t, "devices.html", golden.Excerpt(t, page, `<caption id="table-1-devices-name"`, "</p>"))
}

// If all VMs have the same devices, or were not weighed, the report has no such table.
func TestNoUnusedDevices(t *testing.T) {
	if page := string(showtest.Page(t, notebooktest.Weighed(), &Kind)); strings.Contains(page, "Taken away") {
		t.Error("a study of no devices has a table of them")
	}
	f := notebooktest.New(4).Add("bm large", 1).Add("vm qemu kvm pinned devices=virt-manager large", 3).Add("vm qemu kvm pinned large", 2)
	if page := string(showtest.Page(t, f, &Kind)); strings.Contains(page, "Taken away") {
		t.Error("a study that times work has a table of memory")
	}
}
