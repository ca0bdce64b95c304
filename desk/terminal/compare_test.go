package terminal_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/desk/chart"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/terminal"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// The text about two folders: in the second, on a host with another kernel, one container's engine is slower, and one is faster.
func TestComparison(t *testing.T) {
	folder := func(seed uint64, kernel string, means ...float64) *data.Summary {
		f := notebooktest.New(8)
		f.Seed, f.Rounds, f.Noise, f.Host.Kernel = seed, 10, 0.004, kernel
		f.Study.Design = notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60}
		for i, id := range []string{"bm large", "bm aa large", "cn docker vanilla large", "cn docker pinned large", "cn crun pinned large", "cn podman pinned large"} {
			if means[i] > 0 {
				f.Add(id, means[i])
			}
		}
		f.Trial = func(x *notebook.Trial) {
			if x.Treatment == "cn podman pinned large" {
				x.Value *= 1 + 0.05*float64(x.Round%4) // much noise
				x.ElapsedS = x.Value
			}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Folders[0].Dir = map[bool]string{true: "before", false: "after"}[seed == 1]
		return s
	}
	c, err := compare.From(folder(1, "6.18", 4, 4, 5.2, 4.1, 4.08, 4.2), folder(2, "6.19", 4, 4, 5.46, 3.9, 0, 4.25), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	var text, note bytes.Buffer
	for _, write := range []error{terminal.Comparison(&text, c, terminal.Screen{Width: 80}), terminal.Note(&note, c)} {
		if write != nil {
			t.Fatal(write)
		}
	}
	golden.Check(t, "comparison.txt", text.Bytes())
	golden.Check(t, "comparison.md", note.Bytes())
	f := chart.OfComparison(c)
	if want := "Docker, CPU quota (--cpus): +4.3 % (+3.8 to +4.8), slower"; !strings.Contains(f.Alt, want) || !bytes.Contains(f.SVG(), []byte(">+4.3 % (+3.8 to +4.8)<")) {
		t.Errorf("the figure in words: %s; want in it %q", f.Alt, want)
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// What a name holds means nothing to Markdown or HTML.
func TestNoteOfHostileNames(t *testing.T) {
	f := notebooktest.New(2)
	f.Add("*x*`<img>`@all bm large", 1)
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := compare.From(s, s, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := terminal.Note(&b, c); err != nil || strings.Contains(b.String(), "<img>") || strings.Contains(b.String(), "@all") || strings.Contains(b.String(), "`<") {
		t.Errorf("%v: %s", err, b.String())
	}
}
