package studyfile

import (
	"strings"
	"testing"

	"tare/notebook"
	"tare/workloads"
)

// A service of the user's own is one workload. Its load over HTTP is the shipped one; otherwise it is a command of the image.
func TestUsersOwnService(t *testing.T) {
	spec := func(load ...string) *Spec {
		s := &Spec{Name: "bench", Workloads: []Use{{Name: "service", Image: "./x", Port: 80, Ask: load}}, Platforms: []Place{{Platform: notebook.BM}}, Instances: []string{"1/1GB"}}
		if err := s.Measure("capacity", map[string]string{"objective": "p99=50ms"}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		load       []string
		ready, err string
	}{
		{[]string{"/page?x=1"}, "{work}/load", ""},
		{[]string{"ab", "-r", "{rate}", "{address}"}, "ab -r 1 {address}", ""},
		{[]string{"ab"}, "", "load: must be the path of a page, a command with {rate} in it, or a command with metrics: that it prints"},
		{nil, "", "service: and load: must be given together"},
		{[]string{"/a b"}, "", "path"},
	} {
		s := spec(c.load...)
		err := s.Complete(known)
		var us []Work
		if err == nil {
			us, err = s.works(workloads.FS)
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.load, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		w := us[0].Workload
		if w.Service.Port != 80 || w.Name != "service" || !strings.HasPrefix(strings.Join(w.Load.Ready, " "), c.ready) || len(w.Load.Open) == 0 {
			t.Errorf("%q: %+v", c.load, w.Load)
		}
		if _, err := w.Resolve(nil); err != nil {
			t.Error(err)
		}
		// The recorded file has the same content.
		if again, err := Parse("again.yaml", []byte(s.Source), ".", known); err != nil || again.measure.Name != "capacity" {
			t.Errorf("%v", err)
		}
	}
}
