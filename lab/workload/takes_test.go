package workload

import (
	"testing"
	"time"
)

func TestARunLastsAsTheWorkloadSays(t *testing.T) {
	w := &Workload{Takes: "2s", Length: "n", Params: map[string]Param{"n": {Default: "100"}, "all": {Default: "0"}}}
	for n, want := range map[string]time.Duration{"100": 2 * time.Second, "50": time.Second, "1000": 20 * time.Second, "0": 0, "x": 0} {
		if got := w.Lasts(map[string]string{"n": n}).OneCore; got != want {
			t.Errorf("n=%s: %v, want %v", n, got, want)
		}
	}
	w.Length = "all"
	if all, some := w.Lasts(map[string]string{"all": "0"}).OneCore, w.Lasts(map[string]string{"all": "9"}).OneCore; all != 2*time.Second || some != 0 {
		t.Errorf("all %v, some %v, want 2s and unknown", all, some)
	}
	w.Length, w.Takes = "", ""
	if got := w.Lasts(nil).OneCore; got != 0 {
		t.Errorf("without a hint: %v", got)
	}
	for _, wrong := range []string{"2", "0s", "200h", "-1s", "2s, 3%", "2s, 101% serial", "2s, x% serial", ", 3% serial"} {
		if (&Workload{Takes: wrong}).validateTakes() == nil {
			t.Errorf("takes: %s is accepted", wrong)
		}
	}
	for _, c := range []struct {
		takes       string
		cores       float64
		least, most time.Duration
	}{
		{"60s", 1, 60 * time.Second, 60 * time.Second},
		{"60s", 0.5, 60 * time.Second, 120 * time.Second},
		{"60s", 4, 15 * time.Second, 60 * time.Second},
		{"60s, 25% serial", 3, 30 * time.Second, 30 * time.Second},
		{"60s, 0% serial", 0.5, 120 * time.Second, 120 * time.Second},
		{"60s, 100% serial", 64, 60 * time.Second, 60 * time.Second},
	} {
		takes, err := ParseTakes(c.takes)
		if least, most := takes.On(c.cores); err != nil || least != c.least || most != c.most {
			t.Errorf("%s on %g cores: %v to %v, %v; want %v to %v", c.takes, c.cores, least, most, err, c.least, c.most)
		}
	}
}
