package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/notebook/notebooktest"
)

// The study `chr` on hosts of 16 and 112 CPUs: the commands in docs/studies.md draw the paper's Figure 7 and decide its claims.
func TestTwoHostsOfOneStudy(t *testing.T) {
	dir := t.TempDir()
	small, large, out := filepath.Join(dir, "R16"), filepath.Join(dir, "R112"), filepath.Join(dir, "chr")
	for path, f := range map[string]*notebooktest.Folder{
		small: notebooktest.OneSize(16, notebooktest.Ratios{Vanilla: 1.01, Pinned: 1.01}),
		large: notebooktest.OneSize(112, notebooktest.Ratios{Vanilla: 1.085, Pinned: 1.075}),
	} {
		if err := f.WriteTo(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := output(t, []string{"report", small, large, "--pool", "--out", out}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	figure, err2 := os.ReadFile(filepath.Join(out, "figures", "1-figure-7-ffmpeg-mean.svg"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if !strings.Contains(string(page), "Figure 7 of the paper, redrawn from these runs") {
		t.Error("the page has no Figure 7")
	}
	for _, place := range []string{"16 CPUs, CHR 1", "112 CPUs, CHR 0.14"} {
		if !strings.Contains(string(figure), place) {
			t.Errorf("Figure 7 has no place %q", place)
		}
	}
	verdicts := func(dirs ...string) map[string]string {
		text, err := output(t, append([]string{"claims", "--format", "json"}, dirs...))
		var all []struct{ ID, Verdict, Why string }
		if err != nil || json.Unmarshal([]byte(text), &all) != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		by := map[string]string{}
		for _, v := range all {
			by[v.ID] = v.Verdict + ": " + v.Why
		}
		return by
	}
	for id, want := range map[string]string{"chr-a": "holds here", "chr-b": "holds here", "practice-5-cpu": "holds here"} {
		if got := verdicts(small, large)[id]; !strings.HasPrefix(got, want+": ") {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := verdicts(large)["chr-a"]; !strings.Contains(got, "not testable here") || !strings.Contains(got, "a second host needs a different core count") {
		t.Error(got)
	}
}
