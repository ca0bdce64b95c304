package claims

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// From trials on the disk to verdicts, as `tare claims DIR` does it.
func TestFolder(t *testing.T) {
	means := map[string]float64{
		"ffmpeg segments=1 bm 1/2GB": 4, "ffmpeg segments=1 bm AA 1/2GB": 4, "ffmpeg segments=1 cn docker vanilla 1/2GB": 6, "ffmpeg segments=1 cn docker pinned 1/2GB": 4.1,
		"ffmpeg segments=1 bm 2/4GB": 2, "ffmpeg segments=1 cn docker vanilla 2/4GB": 2.1, "ffmpeg segments=1 cn docker pinned 2/4GB": 2.05,
		"ffmpeg segments=1 vm qemu tcg vanilla cache=none 2/4GB": 30,
	}
	study := notebook.Study{
		Tare: "test", Name: "pinning-small", Hash: "h", Created: time.Unix(1e9, 0), Design: notebook.Design{Floor: 6, Cap: 12, Precision: 0.02, Trials: 1, TimeoutS: 60},
		Metrics: map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}}, Images: map[string]notebook.Image{"ffmpeg": {Digest: "sha256:1"}},
		LeftOut: []notebook.LeftOut{{Treatment: treatment("ffmpeg segments=1 vmcn crun kvm vanilla cache=none 4xlarge"), Reason: notebook.TextMessage("needs 16 cores, this host has 2")}},
	}
	for _, id := range slices.Sorted(maps.Keys(means)) {
		study.Treatments = append(study.Treatments, treatment(id))
	}
	var records []any
	g := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		for _, tr := range study.Treatments {
			guest, trial := notebooktest.One(round, tr.ID, means[tr.ID]*(1+0.005*g.NormFloat64()))
			records = append(records, guest, trial)
		}
	}
	dir := notebooktest.Write(t, study, notebook.Host{ID: "h", Hostname: "bench", CPUs: []notebook.CPU{{ID: 0}, {ID: 1}}}, records...)
	s, err := data.Read([]string{dir}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	vs := Judge(s, shipped(t))
	for _, c := range []struct {
		id     string
		answer Answer
		why    string
	}{
		{"ffmpeg-i-d", Holds, "ffmpeg at 2/4GB, against cn docker vanilla / bm, ffmpeg at 1/2GB: "},
		{"ffmpeg-iv-b", Holds, "wanted at most 0.98"},
		{"practice-5-cpu", DoesNotHold, "wanted at most 1.1 (1 of 2 comparisons)"},
		{"ffmpeg-ii-a", NotTestable, "vm was only emulated (tcg): needs a host with KVM"},
		{"ffmpeg-iii-c", NotTestable, "vmcn crun vanilla with cache=none was left out: needs 16 cores, this host has 2"},
		{"pso-c", NotTestable, "needs a host with at least 112 cores; here: 2"},
	} {
		if v := Find(t, vs, c.id); v.Answer != c.answer || !strings.Contains(Why(v), c.why) {
			t.Errorf("%s: %s: %s", c.id, v.Answer, Why(v))
		}
	}
	// Every interval is wider for the looks that the study had.
	e := Find(t, vs, "practice-5-cpu").Evidence[0]
	if e.Comparison.Over.Of.ID == "" || e.Rounds != 12 || !(e.Level > 0.99) || !(e.Low < e.Estimate && e.Estimate < e.High) {
		t.Errorf("%+v", e)
	}
}
