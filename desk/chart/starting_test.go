package chart

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// Starts under load are drawn over their rates, with each engine's knee named beside the published values, and what the one is at that was sampled. What the pictures say is held to; the house has no room for four more of them.
func TestStarts(t *testing.T) {
	figures := map[string]Figure{}
	for _, f := range []*notebooktest.Folder{notebooktest.Raised()} {
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range OfPanels(Panels(s)) {
			figures[f.File[strings.LastIndex(f.File, "-")+1:]] = f
		}
	}
	for file, want := range map[string]struct{ caption, alt, drawn string }{
		"up": {"docker, vanilla between 4.00 and 8.00 a second (6.00 a second completed); container, crun, vanilla none up to 16.0 a second.",
			"8.00 a second: mean 0.897 s, 95th percentile 1.50 s, first answer 0.947 s, 6.00 a second completed, client 0.20 ms late and at 0.92 % of a core", "stroke-dasharray"},
		"flames":  {"", "dockerd 80 %, runc 20 %", "daemon.(*Daemon).containerStart"},
		"classes": {"", "all in the kernel: 55.0 %", "mounts"},
	} {
		f, found := figures[file]
		if !found {
			t.Errorf("no figure %s", file)
			continue
		}
		drawn := strings.Contains(string(f.SVG()), want.drawn)
		if !drawn || !strings.Contains(f.Caption, want.caption) || !strings.Contains(f.Alt, want.alt) {
			t.Errorf("%s: drawn %v, %s %s", file, drawn, f.Caption, f.Alt)
		}
	}
	for _, file := range []string{"flames", "classes"} {
		f := figures[file]
		golden.Check(t, file+".txt", []byte(f.Caption+"\n"+f.Alt+"\n"))
	}
}

// A name without its package is shown where there is no room for the whole, and none where not even its beginning says anything.
func TestCalled(t *testing.T) {
	const name = "github.com/docker/docker/daemon.(*Daemon).containerStart"
	for _, c := range []struct {
		room float64
		want string
	}{{400, name}, {150, "daemon.(*Daemon).containerStart"}, {120, "(*Daemon).containerStart"}, {60, "(*Daemon).co…"}, {6, ""}} {
		if got := called(name, c.room); got != c.want {
			t.Errorf("in %g points: %q, want %q", c.room, got, c.want)
		}
	}
}
