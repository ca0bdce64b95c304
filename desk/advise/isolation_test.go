package advise

import (
	"strings"
	"testing"

	"tare/notebook"
)

// A rung of the isolation ladder is an experiment's setting. The advice mentions it and does not rank it, however good it is.
func TestARungIsNothingToApply(t *testing.T) {
	l := newLab(2).add("bm", one, 4).add("cn/docker/pinned", one, 4.4)
	for i, layer := range []string{"cgroup", "quota"} {
		l.treatment(notebook.Treatment{ID: layer, Workload: "ffmpeg", Instance: one, Platform: notebook.CN, Engine: notebook.LayersEngine, Isolation: layer}, 3+float64(i))
	}
	a, err := readAll([]string{l.write(t)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := a.Rankings[0]
	for _, c := range r.Choices {
		if c.Treatment.Isolation != "" || c.Treatment.Engine == notebook.LayersEngine {
			t.Errorf("%s is ranked", c.named())
		}
	}
	if len(r.Apart) != 2 || r.Apart[0].named() != "container at 1/1GB, layers up to cgroup" || !strings.Contains(Said(r.Apart[0].Reason), "you cannot apply") {
		t.Errorf("%+v", r.Apart)
	}
}
