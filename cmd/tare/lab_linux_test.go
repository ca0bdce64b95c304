package main

import (
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/study"
)

// A set of claims that there is not would end the report, after all was measured; it is said before.
func TestClaimsThatThereAreNot(t *testing.T) {
	r := running{out: filepath.Join(t.TempDir(), "R")}
	err := r.run(t.Context(), &study.Spec{Name: "mine", Claims: []string{"pining"}}, nil, false)
	if err == nil || !strings.Contains(err.Error(), `study mine: claims: there are no claims of "pining"; expected one of: `) {
		t.Errorf("got %v", err)
	}
}
