package idlecost

import (
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
)

// The sentences are those of folders of the first format.
func TestSentencesOfMessages(t *testing.T) {
	say := notebook.Say
	showtest.Say(t,
		showtest.Sentence{Of: say("of-idle-guest", "guest", 3, "of", 4, "cause", say("no-guest", "cause", "the bridge is full")), Want: "idle guest 3 of 4: no guest: the bridge is full"},
		showtest.Sentence{Of: say("idle-guests-unread", "cause", "EOF"), Want: "the resource use of its idle guests cannot be read: EOF"},
	)
}
