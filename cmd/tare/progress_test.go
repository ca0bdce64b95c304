package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/notebook"
)

// What is under way is called as the table calls it, and bare metal again is not bare metal.
func TestProgressNamesTheTreatment(t *testing.T) {
	large := notebook.Instance{Name: "large"}
	for _, c := range []struct {
		t    notebook.Treatment
		want string
	}{
		{notebook.Treatment{Platform: "bm", Instance: large}, "bm large"},
		{notebook.Treatment{Platform: "bm", AA: true, Instance: large}, "bm again (A/A) large"},
		{notebook.Treatment{Platform: "vm", Engine: "qemu", Accelerator: "tcg", Provisioning: "pinned", Instance: large}, "vm pinned tcg large"},
	} {
		path := filepath.Join(t.TempDir(), "screen")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		p := newProgress(f)
		p.tty = true
		p.Guest(2, c.t, 1, 4, time.Minute)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if shown, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(shown), "[####............] round 3, about 1m0s left  "+c.want) {
			t.Errorf("%q, %v; want %s", shown, err, c.want)
		}
	}
}

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
