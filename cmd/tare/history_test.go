package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/notebook/notebooktest"
)

// A history is printed for people and as JSON. Folders without results are refused.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	args := []string{"history"}
	for i := range 12 {
		f := notebooktest.Night(i)
		docker := 1.02 + 0.001*float64(i%3)
		if i >= 8 {
			docker *= 1.1
		}
		name := filepath.Join(dir, "R"+string(rune('a'+i)))
		if err := f.Add("bm large", 1).Add("cn docker vanilla large", docker).WriteTo(name); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	out, err := output(t, args)
	if err != nil || !strings.Contains(string(out), "1 of 1 configuration changed") || !strings.Contains(string(out), "Ri") {
		t.Errorf("%v:\n%s", err, out)
	}
	var got struct {
		Runs           int
		Configurations []struct {
			Relative, Reference, Examined bool
			Points                        []struct{ Value float64 }
			Changes                       []struct{ Folder string }
		}
	}
	out, err = output(t, append(args, "--format", "json"))
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Runs != 12 || len(got.Configurations) != 2 {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, c := range got.Configurations {
		if c.Reference == c.Relative || !c.Examined || len(c.Points) != 12 || c.Relative != (len(c.Changes) == 1) {
			t.Errorf("%+v", c)
		}
	}
	// A folder that holds the folders of runs stands for them. What is not one does not count.
	if err := os.MkdirAll(filepath.Join(dir, "Rz", "failed early"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "quick.prom")
	if out, err := output(t, []string{"history", dir, "--format", "openmetrics", "--out", file}); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	metrics, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(metrics), "\ntare_runs{study=\"quick\",host=\"bench\",host_id=\"aaaaaaaabbbb\"} 12\n") || !strings.HasSuffix(string(metrics), "\n# EOF\n") {
		t.Errorf("%v:\n%s", err, metrics)
	}
	if of, err := os.Stat(file); err != nil || of.Mode().Perm() != 0o644 { // the collector is not root
		t.Errorf("%v, %v", of, err)
	}
	for want, wrong := range map[string][]string{"holds no results": {filepath.Join(dir, "Rz")}, "--out is empty": {dir, "--out", ""}, "one of table, json, openmetrics": {dir, "--format", "csv"}, "not a results folder": {filepath.Join(dir, "none")}, "--against": {args[1], "--against", ""}} {
		if _, err := output(t, append([]string{"history"}, wrong...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
