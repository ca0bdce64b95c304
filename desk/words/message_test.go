package words

import (
	"testing"

	"tare/notebook"
)

// A folder of another version, or a damaged one, must not stop a report.
func TestMessagesThatHaveNoSentence(t *testing.T) {
	for _, x := range []struct {
		m    *notebook.Message
		want string
	}{
		{nil, ""},
		{notebook.TextMessage("disk full"), "disk full"},
		{notebook.Say("of-guest", "guest", 1234567, "cause", notebook.TextMessage("disk full")), "guest 1234567: disk full"},
		{notebook.Say("of-guest", "guest", 2, "cause", notebook.Say("of-guest", "guest", 3, "cause", "x")), "guest 2: guest 3: x"},
		{notebook.Say("of-guest", "guest", 2), "of-guest guest=2"},
		{notebook.Say("of-guest", "guest", 2, "cause", 3), "of-guest cause=3 guest=2"},
		{notebook.Say("from-the-future", "n", 2), "from-the-future n=2"},
		{&notebook.Message{}, ""},
	} {
		if got := Message(x.m); got != x.want {
			t.Errorf("%v: %q, want %q", x.m, got, x.want)
		}
	}
}
