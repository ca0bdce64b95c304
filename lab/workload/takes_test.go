package workload

import (
	"testing"
	"time"
)

func TestARunLastsAsTheWorkloadSays(t *testing.T) {
	w := &Workload{Takes: "2s", Length: "n", Params: map[string]Param{"n": {Default: "100"}, "all": {Default: "0"}}}
	for n, want := range map[string]time.Duration{"100": 2 * time.Second, "50": time.Second, "1000": 20 * time.Second, "0": 0, "x": 0} {
		if got := w.Lasts(map[string]string{"n": n}); got != want {
			t.Errorf("n=%s: %v, want %v", n, got, want)
		}
	}
	w.Length = "all"
	if all, some := w.Lasts(map[string]string{"all": "0"}), w.Lasts(map[string]string{"all": "9"}); all != 2*time.Second || some != 0 {
		t.Errorf("all %v, some %v, want 2s and unknown", all, some)
	}
	w.Length, w.Takes = "", ""
	if got := w.Lasts(nil); got != 0 {
		t.Errorf("without a hint: %v", got)
	}
	for _, wrong := range []string{"2", "0s", "200h", "-1s"} {
		if (&Workload{Takes: wrong}).validateTakes() == nil {
			t.Errorf("takes: %s is accepted", wrong)
		}
	}
}
