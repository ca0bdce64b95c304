package workload

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/workloads"
)

// Every kind of event that the workload offers happens, for as long as was asked.
func TestEventsOfEachKind(t *testing.T) {
	m := newMicro(t, "events", map[string]string{"ms": "30"})
	source, err := workloads.FS.ReadFile("events/events.c")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, k := range regexp.MustCompile(`(?m)^    \{"([a-z-]+)", \w+, \w+\},`).FindAllStringSubmatch(string(source), -1) {
		kinds = append(kinds, k[1])
	}
	if offered := strings.Split(m.w.Params["kind"].Values, "|"); len(kinds) < 20 || !slices.Equal(kinds, offered) {
		t.Errorf("the program has the kinds %q, the workload offers %q", kinds, offered)
	}
	for _, kind := range kinds {
		m.values["kind"], m.values["scratch"] = kind, t.TempDir()
		out, err := m.command(m.w.Command).Output()
		if exit, is := err.(*exec.ExitError); is && kind == "io-uring" && strings.HasPrefix(string(exit.Stderr), "io_uring_setup: ") {
			t.Logf("%s", exit.Stderr) // the host forbids it
			continue
		}
		var got struct{ Event, Events float64 }
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if took := got.Event * got.Events; err != nil || got.Events < 1 || took < 0.0299 {
			t.Errorf("%s: %v: %g events took %g s in all, want at least 0.03: %s", kind, err, got.Events, took, out)
		}
	}
	m.values["kind"] = "nothing-of-it"
	if out, err := m.command(m.w.Command).CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "usage: ") {
		t.Errorf("an unknown kind: %v: %s", err, out)
	}
}
