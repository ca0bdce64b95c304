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
		{notebook.Treatment{Platform: "bm", Instance: large}, "bare metal, large"},
		{notebook.Treatment{Platform: "bm", AA: true, Instance: large}, "bare metal again (A/A control), large"},
		{notebook.Treatment{Platform: "vm", Engine: "qemu", Accelerator: "tcg", Provisioning: "pinned", Instance: large}, "VM, CPU set, emulated, large"},
	} {
		path := filepath.Join(t.TempDir(), "screen")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		p := newProgress(f)
		p.tty = true
		p.Guest(2, c.t, 1, 4, false, time.Minute)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if shown, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(shown), "[####............] round 3, about 1m0s left  "+c.want) {
			t.Errorf("%q, %v; want %s", shown, err, c.want)
		}
	}
}

// A number of guests that is the most that there may be is not shown as a forecast.
func TestProgressSaysWhatIsForeseen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "screen")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgress(f)
	bm := notebook.Treatment{Platform: "bm"}
	p.Guest(0, bm, 0, 4800, true, 0)
	p.Guest(0, bm, 1, 4800, true, time.Hour) // of the same round: no further line
	p.Preparing(notebook.TextMessage("cpu: its trials are 3 % of the time that its guests take"))
	p.Guest(1, bm, 24, 4800, true, time.Hour)
	p.Guest(2, bm, 48, 320, false, 20*time.Minute)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want := `round 1: 0 environments done
mostly preparation: cpu: its trials are 3 % of the time that its guests take
round 2: 24 environments done, at most about 1h0m0s left
round 3: 48 of 320 environments done, about 20m0s left
`
	if shown, err := os.ReadFile(path); err != nil || string(shown) != want {
		t.Errorf("%v\ngot  %swant %s", err, shown, want)
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

// With -q only warnings are printed.
func TestProgressIsSilent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "screen")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	p := silentProgress(f)
	bm := notebook.Treatment{ID: "w bm", Platform: "bm"}
	p.Say("looking at the host")
	p.Planned(nil, map[string]string{"io": "no BPF"})
	p.TunedHost([]notebook.Setting{{Name: "governor", File: "f", From: "a", To: "b"}}, []string{"turbo: no file"})
	p.Guest(0, bm, 0, 4, false, time.Minute)
	p.GaveUp(bm, notebook.TextMessage("no memory"))
	p.end()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want := "left as it is: turbo: no file\ngiven up: w bm: every trial failed: no memory\n"
	if shown, err := os.ReadFile(path); err != nil || string(shown) != want {
		t.Errorf("%q, %v; want %q", shown, err, want)
	}
}

// More may be done than was foreseen, near the end of a time budget: the bar is then full.
func TestTheBarIsFullAtMost(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "bar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newProgress(f)
	p.tty = true
	p.Guest(1, notebook.Treatment{Platform: "bm"}, 15, 9, true, time.Second)
	if text, err := os.ReadFile(f.Name()); err != nil || !strings.Contains(string(text), "[################]") {
		t.Errorf("%q, %v", text, err)
	}
}
