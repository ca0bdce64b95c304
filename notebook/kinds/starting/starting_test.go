package starting_test

import (
	"testing"

	"tare/notebook"
	"tare/notebook/kinds/starting"
)

// A start as in the paper's Table 5.1 ends when lxc-start has returned, or at a VM's login prompt, whatever comes later.
func TestStartAsPublished(t *testing.T) {
	for _, c := range []struct {
		moments []notebook.Moment
		want    float64 // seconds; 0: none
	}{
		{[]notebook.Moment{{Name: notebook.MomentFirst, NS: 5e7}, {Name: notebook.MomentReturned, NS: 2e8}, {Name: notebook.MomentLogin, NS: 1e9}}, 0.2},
		{[]notebook.Moment{{Name: notebook.MomentCreated, NS: 1e8}, {Name: notebook.MomentLogin, NS: 10e9}, {Name: notebook.MomentAnswer, NS: 11e9}}, 10},
		{[]notebook.Moment{{Name: notebook.MomentFirst, NS: 1e6}, {Name: notebook.MomentAnswer, NS: 3e6}}, 0.003},
		{[]notebook.Moment{{Name: notebook.MomentCreated, NS: 1e6}}, 0},
	} {
		s := starting.Start{Moments: c.moments}
		if got := s.Figures()[starting.AsPublished]; got != c.want {
			t.Errorf("%v: %v s, want %v", c.moments, got, c.want)
		}
	}
}

// A restored VM is compared with a started container, where the study restores guests.
func TestRestoredOrStarted(t *testing.T) {
	restored := []notebook.Moment{{Name: notebook.MomentRestored, NS: 12e8}}
	for _, c := range []struct {
		start starting.Start
		want  float64 // seconds; 0: none
	}{
		{starting.Start{Moments: []notebook.Moment{{Name: notebook.MomentLogin, NS: 10e9}}, Restored: restored}, 1.2},
		{starting.Start{Moments: []notebook.Moment{{Name: notebook.MomentReturned, NS: 2e8}, {Name: notebook.MomentLogin, NS: 1e9}}, Restored: restored}, 0.2},
		{starting.Start{Moments: []notebook.Moment{{Name: notebook.MomentReturned, NS: 2e8}}, NoSaving: notebook.TextMessage("CRIU refuses it")}, 0.2},
		{starting.Start{Moments: []notebook.Moment{{Name: notebook.MomentReturned, NS: 2e8}}}, 0},
	} {
		if got := c.start.Figures()[starting.RestoredOrStarted]; got != c.want {
			t.Errorf("%+v: %v s, want %v", c.start, got, c.want)
		}
	}
}
