package capacity

import (
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	showtest.Say(t,
		showtest.Sentence{Of: say("missed-at-least-rate", "metric", "p99", "bound_s", 0.05, "rate", 10, "seen", say("slow", "metric", "p99", "was_s", 0.2)),
			Want: "the objective, p99 at most 50ms, was missed at the least rate, 10 requests a second: p99 was 0.2 s; begin with less (from)"},
		showtest.Sentence{Of: say("missed-at-least-rate", "metric", "p99", "bound_s", 0.05, "rate", 10, "seen", say("few-answered", "rate", 8.5)),
			Want: "the objective, p99 at most 50ms, was missed at the least rate, 10 requests a second: 8.5 a second were answered; begin with less (from)"},
		showtest.Sentence{Of: say("met-at-greatest-rate", "metric", "p99", "bound_s", 0.05, "rate", 100), Want: "the objective, p99 at most 50ms, was met at 100 requests a second, the most that the study allows: allow more (to)"},
	)
}
