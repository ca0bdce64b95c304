package terminal_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// twoEngines is a folder in which a quota costs nothing next to a set, and gVisor costs a fifth.
func twoEngines(t *testing.T, noise float64) string {
	f := notebooktest.New(2)
	f.Rounds, f.Noise = 8, noise
	f.Study.Design = notebook.Design{Floor: 8, Cap: 8, Trials: 2, TimeoutS: 60, Margin: 0.02}
	return f.Add("bm 1/1GB", 3.8).Add("bm aa 1/1GB", 3.8).Add("cn docker vanilla 1/1GB", 4).Add("cn docker pinned 1/1GB", 4.01).
		Add("cn gvisor vanilla 1/1GB", 4.8).Add("cn gvisor pinned 1/1GB", 4.9).Add("vm qemu tcg vanilla 1/1GB", 9).Write(t)
}

// slightlyFaster is a folder in which a set is faster than a quota, by about the margin.
func slightlyFaster(t *testing.T) string {
	f := notebooktest.New(2)
	f.Rounds, f.Noise = 8, 0.01
	f.Study.Design = notebook.Design{Floor: 8, Cap: 8, Trials: 2, TimeoutS: 60, Margin: 0.02}
	return f.Add("bm 1/1GB", 3.8).Add("bm aa 1/1GB", 3.8).Add("cn docker vanilla 1/1GB", 4).Add("cn docker pinned 1/1GB", 3.92).Write(t)
}

// The answer compares with any environment that is named, by its name.
func TestAnswersAgainstAnyEnvironment(t *testing.T) {
	var b bytes.Buffer
	say := func(dir, against string) *data.Summary {
		keys, err := notebook.ParseReference(against)
		if err != nil {
			t.Fatal(err)
		}
		s := read(t, data.Options{Baseline: keys}, dir)
		fmt.Fprintf(&b, "--against %s: %s\n%s\n\n", against, words.ReferenceOf(s), strings.Join(words.Headline(s), "\n"))
		return s
	}
	dir, noisy := twoEngines(t, 0.002), twoEngines(t, 0.1)
	say(dir, "bm")
	say(dir, "cn:docker:set")
	say(dir, "cn:gvisor:quota")
	say(noisy, "cn:docker:quota")
	say(slightlyFaster(t), "cn:docker:quota")
	if err := terminal.Answer(&b, say(dir, "cn:docker:quota"), false, terminal.Screen{Width: 100}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "against.txt", b.Bytes())
}
