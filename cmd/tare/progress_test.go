package main

import "testing"

func TestWhatIsPrintedIsNoCommandToATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"exit status 1: \x1b[2J\x1b]0;evil\a done": "exit status 1: ?[2J?]0;evil? done",
		"two\nlines\tand \u009b31m C1":             "two lines and ?31m C1",
		"ratio ± 2 %, “quoted”":                    "ratio ± 2 %, “quoted”",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
