package arrivals

import (
	"testing"
	"time"

	"tare/desk/show/showtest"
	"tare/notebook"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	silent := say("no-answer", "within", time.Second, "cause", say("starting", "cause", "context deadline exceeded"))
	showtest.Say(t,
		showtest.Sentence{Of: say("starts-failed", "failed", 16, "of", 20, "rate", 200, "first", say("of-container", "container", 5, "cause", silent)),
			Want: "16 of 20 starts failed at 200 a second: container 5: no answer in 1s: starting it: context deadline exceeded"},
		showtest.Sentence{Of: say("engine-silent", "cause", silent), Want: "the engine or an application stopped answering: no answer in 1s: starting it: context deadline exceeded"},
		showtest.Sentence{Of: say("container-not-made", "container", 3, "of", 20, "cause", "the disk is full"), Want: "container 3 of 20 cannot be made: the disk is full"},
		showtest.Sentence{Of: say("no-memory", "left_mib", 200, "kept_mib", 100, "each_mib", 24, "started", 7),
			Want: "the host has 200 MiB of memory left and keeps 100; a container takes about 24, so Tare starts at most 7"},
		showtest.Sentence{Of: say("no-threads", "left", 900, "each", 32, "started", 7), Want: "the host has room for 900 more processes and threads; a container takes about 32, so Tare starts at most 7"},
	)
}
