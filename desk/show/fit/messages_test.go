package fit

import (
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	step := say("step", "guests", 4, "ratio", 1.2, "low", 1.1, "high", 1.3, "runs", 150, "worth", nil, "decided", true)
	one := say("step", "guests", 5, "ratio", 1.6, "low", 0, "high", 0, "runs", 1, "worth", nil, "decided", false)
	alike := say("step", "guests", 2, "ratio", 1.2, "low", 1.1, "high", 0, "runs", 60, "worth", 2.4, "decided", true)
	showtest.Say(t,
		showtest.Sentence{Of: step, Want: "with 4 guests it is 1.2 times its value alone (1.1 to 1.3, 150 runs)"},
		showtest.Sentence{Of: one, Want: "with 5 guests it is 1.6 times its value alone (1 run), which is inconclusive"},
		showtest.Sentence{Of: alike, Want: "with 2 guests it is 1.2 times its value alone (1.1 or more, 60 runs that resemble each other, worth 2)"},
		showtest.Sentence{Of: say("waited", "step", step, "share", 0.8, "for", kind.OutOfCPU), Want: "with 4 guests it is 1.2 times its value alone (1.1 to 1.3, 150 runs); for 80 % of the time something waited for CPU"},
		showtest.Sentence{Of: say("nothing-waited", "step", one), Want: "with 5 guests it is 1.6 times its value alone (1 run), which is inconclusive; nothing waited for memory or I/O for 10 % of the time or more"},
		showtest.Sentence{Of: say("many-threads", "guests", 90, "threads", 95, "most", 100), Want: "with 90 guests the host had 95 of at most 100 threads"},
		showtest.Sentence{Of: say("with-guests", "guests", 2, "cause", "no guest"), Want: "with 2 guests: no guest"},
		showtest.Sentence{Of: say("fitting", "treatment", "w cn", "guests", 4, "metric", "p95", "factor", 1.5, "step", step, "ran_out", "", "why", nil),
			Want: "w cn: 4 guests fit (p95 below 1.5 times its value alone); with 4 guests it is 1.2 times its value alone (1.1 to 1.3, 150 runs); Tare tried no more; " +
				"the result is from one measured guest, and another guest may be slower or faster"},
		showtest.Sentence{Of: say("fitting", "treatment", "w cn", "guests", 1, "metric", "p95", "factor", 1.5, "step", nil, "ran_out", kind.OutOfEngine, "why", say("with-guests", "guests", 2, "cause", "no guest")),
			Want: "w cn: 1 guest fits (p95 below 1.5 times its value alone); what runs out first is the engine: with 2 guests: no guest; " +
				"the result is from one measured guest, and another guest may be slower or faster"},
	)
}
