package claims

import (
	"strings"
	"testing"

	"tare/notebook"
)

// A contrast of what shares its load's CPUs with what does not is no finding about platforms.
func TestALoadThatSharesCPUs(t *testing.T) {
	w := newWorld(host("h", 8))
	w.add(0, "ffmpeg segments=1 bm large", 4)
	w.add(0, "ffmpeg segments=1 cn docker vanilla large", 8)
	w.add(0, "ffmpeg segments=1 cn docker pinned large", 4)
	c := Claim{ID: "x", Hypothesis: Hypothesis{Ratio: &Pair{
		Of: Selector{Platform: Values{"cn"}, Provisioning: Values{"vanilla"}}, To: Selector{Platform: Values{"cn"}, Provisioning: Values{"pinned"}}, Bounds: Bounds{Higher: 0.5}}}}
	s := w.measure(10, 0.003, 1)
	if v := Judge(s, []Claim{c})[0]; v.Answer != Holds {
		t.Fatalf("%s: %s", v.Answer, Why(v))
	}
	for _, r := range s.Rows {
		r.LoadShared = r.Treatment.Provisioning == notebook.Vanilla
	}
	if v := Judge(s, []Claim{c})[0]; v.Answer != NotTestable || !strings.Contains(Why(v), "--load-from") {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
}
