package studyfile

import (
	"fmt"
	"strings"
	"testing"

	"tare/notebook"
	"tare/workloads"
)

func TestNeighboursInStudyFiles(t *testing.T) {
	const study = "name: x\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\nneighbours: %s\n"
	for _, c := range []struct{ in, want string }{
		{"{cpu: 1, io: 1}", "cpu:1+io:1"},
		{"[{cpu: 0}, {cpu: 1/core}, {io: 2}]", "none cpu:1/core io:2"},
		{"[{}]", "none"},
		{"[{work: 1}, {work: 7}]", "work:1 work:7"},
		{"{gpu: 1}", `line 5: neighbours: "gpu:1": must be {cpu: N, io: N, work: N}`},
		{"many", `line 5: neighbours: "many": must be {cpu: N, io: N, work: N}`},
		{"{cpu: 1/core, io: 1}", `line 5: neighbours: "cpu:1/core+io:1": must be {cpu: N, io: N, work: N}`},
	} {
		s, err := Parse("x.yaml", fmt.Appendf(nil, study, c.in), ".", known)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.in, err, c.want)
			}
			continue
		}
		var got []string
		for _, n := range s.Neighbours {
			got = append(got, n.Text())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.in, got, c.want)
		}
		again := *s
		if err := again.Complete(known); err != nil {
			t.Fatal(err)
		}
		if back, err := Parse("x.yaml", []byte(again.Source), ".", known); err != nil || fmt.Sprint(back.Neighbours) != fmt.Sprint(s.Neighbours) {
			t.Errorf("%s: written and read again: %v, %v", c.in, back, err)
		}
		us, err := s.works(workloads.FS)
		if err != nil || len(us) != len(s.Neighbours) || notebook.FactorNeighbours.Of(us[0].Treatment()) != got[0] {
			t.Errorf("%s: uses %+v, %v", c.in, us, err)
		}
	}
}
