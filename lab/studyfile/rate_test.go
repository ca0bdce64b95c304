package studyfile

import (
	"strings"
	"testing"

	"tare/workloads"
)

// A load at a rate sends requests at that rate. A rate is refused if it means nothing.
func TestServiceAtARate(t *testing.T) {
	for uses, want := range map[string]string{
		"[{name: web, image: x, service: 80, load: /, rate: 200}]":                           "",
		"[{name: web, image: x, service: 80, load: /, rate: -1}]":                            "rate: -1: must be from 1 to 1000000",
		"[{name: web, image: x, command: [a], rate: 200}]":                                   "rate: is only for a service",
		"[{name: web, image: x, service: 80, load: [ask, '{rate}', '{seconds}'], rate: 50}]": "",
	} {
		a, err := rated(t, uses)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", uses, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", uses, err)
			continue
		}
		w := a.Works[0]
		command := strings.Join(w.Workload.Load.Command, " ")
		if w.Params["rate"] == "" || !strings.Contains(command, w.Params["rate"]) || strings.Contains(command, "{rate}") || strings.Contains(command, "{seconds}") || len(w.Workload.Load.Warm) == 0 {
			t.Errorf("%s: %q, parameters %v", uses, command, w.Params)
		}
	}
}

func rated(t *testing.T, uses string) (*Asked, error) {
	t.Helper()
	s, err := Parse("mine.yaml", []byte("name: mine\nworkloads: "+uses+"\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\n"), t.TempDir(), known)
	if err != nil {
		return nil, err
	}
	return s.Ask(workloads.FS, Choices{})
}
