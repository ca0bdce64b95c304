package data

import (
	"testing"

	"tare/notebook"
)

// A guest whose quota is as large as its CPU set says nothing about quotas: its scheduler has no CPUs to choose from.
func TestAQuotaWithoutChoice(t *testing.T) {
	for _, c := range []struct {
		limits notebook.Limits
		want   bool
	}{
		{notebook.Limits{Quota: 1, CPUs: "1"}, true},
		{notebook.Limits{Quota: 0.5, CPUs: "1"}, true},
		{notebook.Limits{Quota: 1, CPUs: "4-7"}, false},
		{notebook.Limits{Quota: 1}, false},
		{notebook.Limits{CPUs: "1"}, false},
		{notebook.Limits{Quota: 1, CPUs: "x"}, false},
	} {
		if got := withoutChoice(c.limits); got != c.want {
			t.Errorf("%+v: %v", c.limits, got)
		}
	}
}
