package studyfile

import (
	"fmt"

	"tare/notebook"
)

// Count is the number of configurations that the study asks for on a host that can run all of them. More than notebook.MaxTreatments are
// an error.
func (a *Asked) Count() (int, error) {
	all := map[string]bool{}
	large := notebook.Host{Memory: 1 << 40, CPUs: make([]notebook.CPU, 256)}
	for _, w := range a.Works {
		for _, t := range a.Treatments(w, large, func(string) string { return notebook.KVM }, func(notebook.Treatment) bool { return true }) {
			if a.Rules().BareMetal && t.Platform == notebook.BM {
				continue
			}
			all[t.ID] = true
		}
		if len(all) > notebook.MaxTreatments {
			return 0, fmt.Errorf("study %s has more than %d configurations, the limit for one study: split it into several", a.Spec.Name, notebook.MaxTreatments)
		}
	}
	return len(all), nil
}
