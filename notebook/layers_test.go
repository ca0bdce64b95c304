package notebook_test

import (
	"slices"
	"strings"
	"testing"

	"tare/notebook"
)

// A rung has all layers below it; a single layer has only what it cannot be without.
func TestLayersOf(t *testing.T) {
	for isolation, want := range map[string]string{
		"cgroup": "cgroup", "quota": "cgroup quota", "memory": "cgroup quota cpuset memory",
		"only-memory": "cgroup cpuset memory", "only-bridge": "cgroup cpuset network bridge",
		"full": "", "": "", "only-": "", "only-armour": "",
	} {
		if got := strings.Join(notebook.LayersOf(isolation), " "); got != want {
			t.Errorf("%q: %q; want %q", isolation, got, want)
		}
	}
	for _, s := range notebook.SingleLayers {
		if !slices.Contains(notebook.FactorIsolation.Values, s) || len(notebook.LayersOf(s)) == 0 {
			t.Errorf("%s: %v", s, notebook.LayersOf(s))
		}
	}
}
