package workload

import (
	"strings"
	"testing"

	"tare/workloads"
)

// Each shipped workload says whether its results depend on synced writes.
func TestSyncs(t *testing.T) {
	want := map[string]bool{"ladder-io": true, "postgres": true, "wordpress": true} // as they ship
	for _, name := range Shipped(workloads.FS) {
		w, err := Find(workloads.FS, name, ".")
		if err != nil {
			t.Fatal(err)
		}
		params, err := w.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if synced, known := w.Syncs.With(params); !known || synced != want[name] {
			t.Errorf("%s: %v (known: %v), want %v", name, synced, known, want[name])
		}
	}
	for _, c := range []struct {
		line          string
		synced, known bool
	}{
		{"", false, false}, {"syncs: always", true, true}, {"syncs: never", false, true}, {"syncs: size=1|3", true, true}, {"syncs: size=2", false, true},
	} {
		w, err := load(strings.Replace(good, "metric:", c.line+"\nmetric:", 1))
		if err != nil {
			t.Fatal(err)
		}
		if synced, known := w.Syncs.With(map[string]string{"size": "1"}); synced != c.synced || known != c.known {
			t.Errorf("%q: %v (known: %v)", c.line, synced, known)
		}
	}
}
