package chart

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// Starts under load are drawn over their rates, with each engine's knee named, and what the one is at that was sampled; starts by their moments.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		folder  *notebooktest.Folder
		figures []string // their files end so
	}{
		{notebooktest.Raised(), []string{"-bring-up", "-classes", "-flames"}},
		{notebooktest.Begun(), []string{"-timeline"}},
	} {
		s, err := data.Read([]string{c.folder.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range c.figures {
			found := false
			for _, f := range OfPanels(Panels(s)) {
				if !strings.HasSuffix(f.File, end) {
					continue
				}
				found = true
				golden.Check(t, strings.TrimPrefix(end, "-")+".svg", f.SVG())
				golden.Check(t, strings.TrimPrefix(end, "-")+".txt", []byte(f.Caption+"\n"+f.Alt+"\n"))
			}
			if !found {
				var all []string
				for _, f := range OfPanels(Panels(s)) {
					all = append(all, f.File)
				}
				t.Errorf("no figure %s among %q", end, all)
			}
		}
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
