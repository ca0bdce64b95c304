package starting

import (
	"testing"
	"time"

	"tare/desk/show/showtest"
	"tare/notebook"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	cold := say("not-cached", "want", "cold", "share", 0.6, "of_mib", 12)
	const uncached = "the page cache was not cold: it held 60 % of the 12 MiB that the guest reads; pages that other programs have mapped stay cached, and pages that do not fit in memory are dropped"
	showtest.Say(t,
		showtest.Sentence{Of: cold, Want: uncached},
		showtest.Sentence{Of: say("before-restore", "cause", cold), Want: "before its restore, " + uncached},
		showtest.Sentence{Of: say("no-login", "within", 2*time.Minute), Want: "no login prompt on its console in 2m0s"},
		showtest.Sentence{Of: say("no-first-answer"), Want: "Tare did not see its first useful answer"},
		showtest.Sentence{Of: say("saving", "cause", "EOF"), Want: "saving it: EOF"},
		showtest.Sentence{Of: say("cache-before-restore", "cause", "EOF"), Want: "the page cache before its restore: EOF"},
		showtest.Sentence{Of: say("restoring", "cause", "EOF"), Want: "restoring it: EOF"},
		showtest.Sentence{Of: say("restored-silent", "cause", "EOF"), Want: "the restored guest does not answer: EOF"},
		showtest.Sentence{Of: say("after-restore", "cause", "EOF"), Want: "after its restore: EOF"},
		showtest.Sentence{Of: say("leaving-token", "cause", "EOF"), Want: "writing a token to its memory: EOF"},
		showtest.Sentence{Of: say("not-continued", "cause", say("token-changed", "has", "b\n", "had", "a")), Want: `it did not continue from its saved state: its memory has "b\n" instead of "a"`},
		showtest.Sentence{Of: say("order-ended-later"), Want: "its ruler finished the order that was in progress when Tare saved the guest"},
		showtest.Sentence{Of: say("token-found"), Want: "a file in its memory had the random text that Tare wrote there before it saved the guest"},
		showtest.Sentence{Of: say("saved-by-criu"), Want: "CRIU, driven by runc; all memory is read before it continues, and its network is connected again"},
		showtest.Sentence{Of: say("saved-by-lxc"), Want: "CRIU, called by lxc-checkpoint; CRIU reads all memory before the container continues, then Tare connects its network again"},
		showtest.Sentence{Of: say("saved-by-qemu-mapped"), Want: "QEMU's migration stream without the memory, which stays in a file: the restored machine maps it, and reads a page when it needs it"},
		showtest.Sentence{Of: say("saved-by-qemu"), Want: "QEMU's migration stream to a file, all of which is read before the machine continues"},
	)
}
