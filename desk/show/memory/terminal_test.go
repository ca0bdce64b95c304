package memory

import (
	"bytes"
	"strings"
	"testing"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/show/showtest"
	"tare/desk/terminal"
	"tare/desk/words"
	"tare/internal/golden"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// The answer of a study that weighs guests is about memory and not about time.
func TestWeighed(t *testing.T) {
	s := showtest.Read(t, notebooktest.Weighed(), &Kind)
	var text bytes.Buffer
	if err := terminal.Summary(&text, s, terminal.Screen{Width: 100}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "terminal.txt", text.Bytes())
	for _, word := range []string{"costs", "longer", "slower", "faster"} {
		if strings.Contains(strings.Join(words.Headline(s), " "), word) {
			t.Errorf("the answer says %q", word)
		}
	}
}

// A comparison of two such studies is about memory, too. Studies with other numbers of guests are other treatments.
func TestWeighedComparison(t *testing.T) {
	folder := func(seed uint64, more float64, guests ...int) *data.Summary {
		f := notebooktest.Weighed()
		f.Seed, f.Noise, f.Rounds = seed, 0.001, 10
		f.Mean["idle cn docker vanilla large"] *= more
		if guests != nil {
			f.Study.Kind, f.Study.Config = kind.Name, &kind.Config{Guests: guests}
		}
		return showtest.Read(t, f, &Kind)
	}
	before := folder(1, 1)
	c, err := compare.From(before, folder(2, 1.2), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	if said := words.Compared(c); !strings.Contains(said, "takes 19.96 % more memory (") {
		t.Error(said)
	}
	if said := words.Changed(c, c.Changes[0]); !strings.Contains(said, " % more memory (") {
		t.Error(said)
	}
	if _, err := compare.From(before, folder(3, 1, 1, 2), 0.01); err == nil || !strings.Contains(err.Error(), "no configuration in common") {
		t.Errorf("guests among 8 were compared with guests among 2: %v", err)
	}
}
