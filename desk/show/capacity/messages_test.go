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
			Want: "the service missed the objective, p99 at most 50ms, at the lowest rate, 10 requests a second: p99 was 0.2 s; lower the lowest rate (from)"},
		showtest.Sentence{Of: say("missed-at-least-rate", "metric", "p99", "bound_s", 0.05, "rate", 10, "seen", say("few-answered", "rate", 8.5)),
			Want: "the service missed the objective, p99 at most 50ms, at the lowest rate, 10 requests a second: the service answered 8.5 requests a second; lower the lowest rate (from)"},
		showtest.Sentence{Of: say("met-at-greatest-rate", "metric", "p99", "bound_s", 0.05, "rate", 100), Want: "the service met the objective, p99 at most 50ms, at 100 requests a second, the highest rate of the study: raise the highest rate (to)"},
	)
}
