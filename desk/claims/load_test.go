package claims

import (
	"strings"
	"testing"

	"tare/notebook"
)

// A comparison of a guest that shares its load's CPUs with one that does not says nothing about platforms.
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

// The study `pinning` loads Cassandra twice: with 1,000 operations a second, as the paper did, and as fast as it answers. The paper's findings are about
// the first. What the second shows decides none of them.
func TestFindingsAreAboutThePapersLoad(t *testing.T) {
	w := newWorld(host("r830", 112))
	for _, size := range []string{"xlarge", "2xlarge"} {
		for _, load := range []string{"rate=1000", "rate=0"} {
			w.add(0, "cassandra "+load+" bm "+size, 3)
			w.add(0, "cassandra "+load+" cn docker pinned "+size, 2.8)
		}
		w.add(0, "cassandra rate=1000 cn docker vanilla "+size, 12)
		w.add(0, "cassandra rate=0 cn docker vanilla "+size, 1)
	}
	vs := Judge(w.measure(10, 0.003, 1), shipped(t))
	for id, n := range map[string]int{"cassandra-i-b": 1, "cassandra-ii-b": 0, "pso-e": 2} {
		v := Find(t, vs, id)
		if id == "cassandra-i-b" && v.Answer != Holds || n > 0 && len(v.Evidence) != n {
			t.Errorf("%s: %s: %s: %d comparisons, want %d", id, v.Answer, Why(v), len(v.Evidence), n)
		}
		for _, e := range v.Evidence {
			for _, pair := range e.terms() {
				if pair.Of.Params["rate"] != "1000" {
					t.Errorf("%s: about %s", id, pair.Of.ID)
				}
			}
		}
	}
}
