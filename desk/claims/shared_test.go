package claims

import (
	"strings"
	"testing"
)

// Testable are the verdicts on claims that something tests; the others say why nothing does.
func Testable(t *testing.T, least int, vs []Verdict) (some []Verdict) {
	t.Helper()
	for _, v := range vs {
		switch why := v.Claim.Hypothesis.Unrecorded; {
		case why == "":
			some = append(some, v)
		case v.Answer != NotTestable || !strings.Contains(Why(v), why):
			t.Errorf("%s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
	if len(some) < least {
		t.Errorf("only %d claims can be tested", len(some))
	}
	return some
}

// Find is the verdict on a claim.
func Find(t *testing.T, vs []Verdict, id string) Verdict {
	t.Helper()
	for _, v := range vs {
		if v.Claim.ID == id {
			return v
		}
	}
	t.Fatalf("no verdict on %s", id)
	return Verdict{}
}

// UnderLoad says whether a claim is of containers started under load (section 5.1), which TestClaimsOfStartsUnderLoad has.
func UnderLoad(c Claim) bool { return strings.HasPrefix(c.Group, "Containers started under load") }

// OnGPU says whether a claim is of a GPU (section 5.3), which TestClaimsOfAGPU has.
func OnGPU(c Claim) bool { return strings.HasPrefix(c.Group, "Applications on a GPU") }
