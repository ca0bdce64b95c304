package claims

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
)

// Folders of a host with KVM and of one without are read together: what was emulated takes nothing from what was not.
func TestEmulatedBesideRepresentative(t *testing.T) {
	w := newWorld(host("kvm", 8), host("none", 2))
	for h, accel := range []string{"kvm", "tcg"} {
		w.add(h, "ffmpeg segments=1 bm large", 4)
		w.add(h, "ffmpeg segments=1 cn docker vanilla large", 4.4)
		w.add(h, "ffmpeg segments=1 cn docker pinned large", 4.1)
		for _, p := range []string{"vanilla", "pinned"} {
			w.add(h, "ffmpeg segments=1 vm qemu "+accel+" "+p+" cache=none large", 8.4)
		}
	}
	w.add(1, "ffmpeg segments=1 vm qemu tcg vanilla cache=none 1/2GB", 90)
	w.add(1, "ffmpeg segments=1 bm 1/2GB", 8)
	v := Find(t, Judge(w.measure(10, 0.003, 1), shipped(t)), "ffmpeg-ii-a")
	if v.Answer != Holds || len(v.Missing) != 0 || len(v.Evidence) != 2 {
		t.Errorf("%s: %s %+v", v.Answer, Why(v), v.Missing)
	}
	for i := range w.sum.Rows {
		w.sum.Rows[i].Representative = w.sum.Rows[i].Representative && w.sum.Rows[i].Treatment.Platform != notebook.VM
	}
	if v := Find(t, Judge(w.measure(10, 0.003, 1), shipped(t)), "ffmpeg-ii-a"); v.Answer != NotTestable || Why(v) != "vm was only emulated (tcg): needs a host with KVM" {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
}

// Figure 6 excludes Cassandra at large: there it decides nothing, and what is about other applications too is about them.
func TestWhatThePaperLeavesOut(t *testing.T) {
	w := newWorld(host("r830", 112))
	for _, what := range []string{"ffmpeg segments=1", "mpi-search", "wordpress", "cassandra"} {
		w.add(0, what+" bm 2/8GB", 1)
		w.add(0, what+" cn docker vanilla 2/8GB", 4)
		w.add(0, what+" cn docker pinned 2/8GB", 1.1)
	}
	vs := Judge(w.exact(), shipped(t))
	if v := Find(t, vs, "cassandra-i-d"); v.Answer != NotTestable || !strings.Contains(Why(v), "was measured only where the paper leaves it out: Figure 6 excludes large") {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
	for id, n := range map[string]int{"practice-1": 3, "pso-e": 4} {
		v := Find(t, vs, id)
		if v.Answer != Holds || len(v.Evidence) != n || strings.Contains(Compared(v.Evidence[n-1]), "cassandra") {
			t.Errorf("%s: %s: %s %+v", id, v.Answer, Why(v), v.Evidence)
		}
	}
	// A small host's sizes are not large.
	if v := Find(t, Judge(smallWorld().exact(), shipped(t)), "cassandra-i-d"); v.Answer != Holds {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
}

// A small container can be a large share of a small host. The verdict says at what share it was judged, or that the claim
// is not testable here, as the paper words it.
func TestShareOfTheHost(t *testing.T) {
	w := newWorld(host("mid", 32))
	for _, what := range []string{"ffmpeg segments=1", "mpi-search", "wordpress", "cassandra rate=1000"} {
		for _, instance := range []string{"1/2GB", "2/4GB"} {
			w.add(0, what+" bm "+instance, 4)
			w.add(0, what+" cn docker vanilla "+instance, 6)
			w.add(0, what+" cn docker pinned "+instance, 4.1)
		}
	}
	vs := Judge(w.measure(8, 0.005, 3), shipped(t))
	for id, want := range map[string]string{
		"practice-1": "; at a CHR of 0.031 to 0.062, the paper's is 0.018",
		"io-a":       "", // nothing was judged
		"ffmpeg-i-d": "", // a trend over sizes
	} {
		v := Find(t, vs, id)
		if want == "" && strings.Contains(Why(v), "the paper's is") || !strings.HasSuffix(Why(v), want) {
			t.Errorf("%s: %s", id, Why(v))
		}
	}
	vs = Judge(smallWorld().measure(8, 0.005, 3), shipped(t))
	for _, id := range []string{"practice-1", "wordpress-i-b", "cassandra-i-c", "summary-b"} {
		if v := Find(t, vs, id); v.Answer != NotTestable || !strings.Contains(Why(v), "a CHR of at most 0.07") {
			t.Errorf("%s: %s: %s", id, v.Answer, Why(v))
		}
	}
	if v := Find(t, vs, "pso-e"); v.Answer != NotTestable || !strings.Contains(Why(v), "a CHR of at most 0.07 (2 cores on a host with at least 29); here: 0.5, 1") {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
}

// Notes state what several verdicts have in common once, and list their treatments together.
func TestReasonsInCommon(t *testing.T) {
	w := newWorld(host("bench", 2))
	w.add(0, "ffmpeg segments=1 bm large", 4)
	w.add(0, "ffmpeg segments=1 cn docker vanilla large", 4.4)
	const reason = "no VM with kvm: a guest was started and did not say hello within 4s"
	for _, p := range []string{"vm qemu kvm vanilla cache=none", "vm qemu kvm pinned cache=none", "vmcn crun kvm vanilla cache=none", "vmcn crun kvm pinned cache=none"} {
		w.sum.LeftOut = append(w.sum.LeftOut, data.LeftOut{Host: "bench", Treatment: treatment("ffmpeg segments=1 " + p + " large"), Reason: notebook.TextMessage(reason)})
	}
	vs := Judge(w.exact(), shipped(t))
	if v := Find(t, vs, "ffmpeg-iii-d"); Why(v) != "vm vanilla with cache=none and vmcn crun vanilla with cache=none were left out: "+reason || len(v.Missing) != 2 {
		t.Errorf("%s %+v", Why(v), v.Missing)
	}
	whys, notes := Reasons(vs)
	said := 0
	for i, r := range whys {
		if len(r.Missing) != len(vs[i].Missing) {
			t.Errorf("%s: %d missing", vs[i].Claim.ID, len(r.Missing))
		}
		for _, p := range append(r.Why, r.Missing...) {
			if strings.Contains(p.Text, reason) {
				said++
			}
			if p.Note < 0 || p.Note > len(notes) || p.Text == "" && p.Note == 0 || strings.HasPrefix(p.Text, "and ") && p.Note != 0 {
				t.Errorf("%s: %+v", vs[i].Claim.ID, p)
			}
		}
	}
	if said != 0 || len(notes) < 2 || !slices.Contains(notes, reason) {
		t.Errorf("said %d times; %q", said, notes)
	}
	var b bytes.Buffer
	if err := Table(&b, vs, 0); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.Count(out, reason) != 1 || !strings.Contains(out, reason+"\n    ffmpeg-i-a ffmpeg-i-b ") {
		t.Error(out)
	}
}
