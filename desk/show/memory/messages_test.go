package memory

import (
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	showtest.Say(t,
		showtest.Sentence{Of: say("guests-unread", "cause", "EOF"), Want: "the memory use of its guests cannot be read: EOF"},
		showtest.Sentence{Of: say("ksm", "cause", "this kernel has none"), Want: "KSM: this kernel has none"},
		showtest.Sentence{Of: say("no-further-guests", "guests", 16, "cause", say("of-guest-of", "guest", 9, "of", 16, "cause", "EOF")), Want: "not measured with 16 guests: guest 9 of 16: EOF"},
		showtest.Sentence{Of: say("work-ended-when-weighed", "guest", 1, "cause", "EOF"), Want: "the work in guest 1 ended while Tare measured its memory: EOF"},
		showtest.Sentence{Of: say("of-guest", "guest", 1, "cause", say("kernel-copy", "cause", "EOF")), Want: "guest 1: its emulator's copy of the kernel: EOF"},
		showtest.Sentence{Of: say("cannot-tell-memory", "why", "no kpageflags"), Want: "the guest cannot tell what its memory contains: no kpageflags"},
	)
}
