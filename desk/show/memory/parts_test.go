package memory

import (
	"strings"
	"testing"

	"tare/desk/show/showtest"
	"tare/internal/golden"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// If guests were weighed, the report says what the last of them consists of, and which of its pages exist twice.
func TestParts(t *testing.T) {
	page := showtest.Page(t, notebooktest.Weighed(), &Kind)
	golden.Check(t, "weights.html", golden.Excerpt(t, page, `<div class="scroll" role="region" aria-labelledby="table-1-guest-name"`, "<details>"))
	for _, want := range []string{"Memory by number of guests", "What one more guest adds", "a guest takes 20&nbsp;% more memory", "<dt>KSM</dt>"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, no := range []string{"20&nbsp;% longer", "Platform and size"} {
		if strings.Contains(string(page), no) {
			t.Errorf("the page says %q", no)
		}
	}
}

// Names in a folder are hostile text.
func TestNamesOfProcessesAreHostile(t *testing.T) {
	f := notebooktest.Weighed()
	f.Rounds = 1
	weigh := f.Trial
	f.Trial = func(x *notebook.Trial) {
		weigh(x)
		weights := notebooktest.Seen[kind.Seen](x).Weights
		for i := range weights {
			weights[i].Last.Processes[0].Name = "<script>alert(1)</script>\x1b[2J\u202e"
			weights[i].Last.Files[0].Name = `"><img src=x>`
		}
	}
	page := string(showtest.Page(t, f, &Kind))
	for _, no := range []string{"<script", "<img", "\x1b", "\u202e"} {
		if strings.Contains(page, no) {
			t.Errorf("the page holds %q", no)
		}
	}
	if !strings.Contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the name is lost")
	}
}

// A study that times work has no such tables, and neither have rows without an account of the last guest.
func TestNoParts(t *testing.T) {
	s := showtest.Read(t, notebooktest.New(2).Add("bm large", 1).Add("cn crun pinned large", 2), &Kind)
	if p := tables("x", "", s.Rows, s); p != nil {
		t.Errorf("%+v", p)
	}
	s.Rows[0].Of = &Weights{}
	if p := tables("x", "", s.Rows, s); p != nil {
		t.Errorf("without an account of the last guest: %+v", p)
	}
}

// The report says how a guest uses its VM's memory, which files its page cache holds, and what the paper has. Names of files are
// hostile text.
func TestWhatAVMsMemoryIsToItsGuest(t *testing.T) {
	f := notebooktest.WeighedInside()
	weigh := f.Trial
	f.Trial = func(x *notebook.Trial) {
		weigh(x)
		weights := notebooktest.Seen[kind.Seen](x).Weights
		for i := range weights {
			if r := weights[i].Last.RAM; r != nil {
				r.Files[0].Name = "/tmp/<script>alert(2)</script>\x1b[2J"
			}
		}
	}
	page := showtest.Page(t, f, &Kind)
	golden.Check(t, "ram.html", golden.Excerpt(t, page, `<div class="scroll" role="region" aria-label="What the RAM is to the guest`, "<details>"))
	for _, want := range []string{"and in the paper", "(28)", "with KSM</th>", "by what pages are to the guest</th>", "are free to it, of which the host has pages for", "What the last guest alone has"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(string(page), "<script>alert(2)") || strings.Contains(string(page), "\x1b") {
		t.Error("a file's name is more than text")
	}
}
