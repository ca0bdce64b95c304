package paging

import (
	"testing"
	"time"

	"tare/desk/show/showtest"
	"tare/notebook"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	early := func(until string) *notebook.Message {
		return say("work-ended", "guest", 3, "until", until, "after_s", 3, "cause", say("too-short"))
	}
	const why = ", 3 s after all had begun: use more data, or a shorter time in paging: initial:"
	showtest.Say(t,
		showtest.Sentence{Of: early("initial"), Want: "the work in guest 3 ended before the initial state was read" + why},
		showtest.Sentence{Of: early("steady"), Want: "the work in guest 3 ended before the steady state was read" + why},
		showtest.Sentence{Of: early("faults"), Want: "the work in guest 3 ended while faults were counted" + why},
		showtest.Sentence{Of: early("tables"), Want: "the work in guest 3 ended while its page tables were read" + why},
		showtest.Sentence{Of: say("work-not-ended", "guest", 1, "after", 10*time.Minute), Want: "the work in guest 1 had not ended after 10m0s"},
		showtest.Sentence{Of: say("tables-unread", "cause", say("no-processes")), Want: "page tables: it has no processes"},
		showtest.Sentence{Of: say("faults-uncounted", "cause", say("processes-hidden", "first", "sentry")), Want: "page faults: the host does not see the processes in it: its first process is sentry"},
		showtest.Sentence{Of: say("uses-unseen", "cause", say("no-processes")), Want: "Tare cannot tell which page-table entries were used repeatedly: it has no processes"},
		showtest.Sentence{Of: say("making-unseen", "cause", say("no-processes")), Want: "Tare cannot count the page faults of the bring-up: it has no processes"},
		showtest.Sentence{Of: say("nothing-read", "metric", "groupable"), Want: "Tare read no value of the study's metric: groupable"},
	)
}
