//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/lab/study"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A run until claims correctly decides the testable claims. It measures each treatment as long as a claim waits for it. It never
// waits for emulated treatments, or for those that no claim needs.
func TestClaimsAreDecided(t *testing.T) {
	published, err := claims.Parse("mine.yaml", []byte(`
paper: mine
groups:
- name: g
  about: {workload: ffmpeg, platform: cn}
  claims:
  - {id: dear, place: x, finding: f, hypothesis: {ratio: {of: {provisioning: vanilla}, higher: 10%}}}
  - {id: same, place: x, finding: f, tolerance: t, hypothesis: {ratio: {of: {provisioning: pinned}, equal: 5%}}}
  - {id: less, place: x, finding: f, hypothesis: {ratio: {of: {provisioning: vanilla}, to: {provisioning: pinned}, lower: 2%}}}
  - {id: emulated, place: x, finding: f, hypothesis: {ratio: {of: {platform: vm, provisioning: vanilla}, higher: 2%}}}
  - {id: part, place: x, finding: f, hypothesis: {all: [{ratio: {of: {provisioning: vanilla}, lower: 2%}}, {ratio: {of: {platform: vmcn}, lower: 2%}}]}}
  - {id: absent, place: x, finding: f, hypothesis: {ratio: {of: {platform: vmcn, provisioning: vanilla}, higher: 2%}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := notebooktest.New(4)
	f.Add("bm large", 1).Add("bm aa large", 1).Add("cn crun vanilla large", 1.4).Add("cn crun pinned large", 1.01)
	f.Add("vm qemu tcg vanilla large", 14).Add("other bm large", 1).Add("other cn crun vanilla xlarge", 1)
	f.Study.Design = notebook.Design{Floor: 2, Cap: studyfile.UntilRounds, Claims: true, Trials: 1, TimeoutS: 60}
	if looks := f.Study.Design.Looks(); looks != studyfile.UntilRounds {
		t.Errorf("the intervals are of %d looks", looks)
	}
	right := map[string]claims.Answer{"dear": claims.Holds, "same": claims.Holds, "less": claims.DoesNotHold, "part": claims.DoesNotHold, "emulated": claims.NotTestable, "absent": claims.NotTestable}
	wrong := 0
	for run := range 4 {
		g := rand.New(rand.NewPCG(uint64(run), 5))
		dir := notebooktest.Write(t, f.Study, f.Host)
		in := map[string]int{} // rounds, by treatment
		round := 0
		for ; ; round++ {
			open, err := openClaims(dir, published)
			if err != nil {
				t.Fatal(err)
			}
			if len(open) == 0 || round == studyfile.UntilRounds {
				break
			}
			for _, tr := range f.Study.Treatments {
				if asked := func(q study.Question) bool { return slices.Contains(q.Of, tr.ID) }; !slices.ContainsFunc(open, asked) {
					continue
				}
				in[tr.ID]++
				guest, trial := notebooktest.One(round, tr.ID, f.Mean[tr.ID]*(1+0.02*g.NormFloat64()))
				notebooktest.Append(t, dir, guest, trial)
			}
		}
		s, err := data.Read([]string{dir}, data.Options{Kinds: kinds.All})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range claims.Judge(s, published) {
			switch {
			case v.Answer == right[v.Claim.ID]:
			case v.Answer == claims.Holds || v.Answer == claims.DoesNotHold:
				wrong++
			default:
				t.Errorf("run %d: after %d rounds %s is %s", run, round, v.Claim.ID, v.Answer)
			}
		}
		// A cost of 40 % is known long before a cost of 1 % is known to be at most 5 %.
		if dear, same := in["cn crun vanilla large"], in["cn crun pinned large"]; dear >= same || same < 6 || in["bm large"] != same || len(in) != 3 {
			t.Errorf("run %d: rounds: %v", run, in)
		}
	}
	if wrong > 0 {
		t.Errorf("%d false verdicts in 4 runs", wrong)
	}
}
