package tare

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"tare/notebook"
)

// scripts/quickstart keeps a finished result and begins another. It finds out by a pattern, from the last line of sessions.jsonl.
func TestQuickstartKnowsWhatIsFinished(t *testing.T) {
	script, err := os.ReadFile("scripts/quickstart")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`grep -Eq '([^']+)'`).FindSubmatch(script)
	if found == nil {
		t.Fatal("scripts/quickstart looks for no reason any more")
	}
	finished, err := regexp.CompilePOSIX(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason *notebook.Message
		want   bool
	}{
		{notebook.Say("precise-enough"), true}, {notebook.Say("cap-on-rounds"), true},
		{notebook.TextMessage("precise enough"), true}, {notebook.TextMessage("cap on rounds"), true}, // as the first format has them
		{notebook.Say("interrupted"), false}, {notebook.Say("time-budget"), false}, {notebook.Say("failed", "cause", "precise-enough"), false}, {nil, false},
	} {
		line, err := json.Marshal(notebook.Session{Event: "end", Reason: c.reason})
		if err != nil {
			t.Fatal(err)
		}
		if got := finished.Match(line); got != c.want {
			t.Errorf("%s: finished: %v, want %v", line, got, c.want)
		}
	}
}
