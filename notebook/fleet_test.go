package notebook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is not a fleet's file is refused, and nothing in one leads out of its folder.
func FuzzReadFleet(f *testing.F) {
	f.Add(`{"version":1,"id":"tare-0a","study":"quick","by":"slurm","nodes":["n1","n2.example"]}`)
	f.Add(`{"version":1,"id":"tare-0a","nodes":[".."]}`)
	f.Add(`{"version":1,"id":"x y","nodes":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "fleet.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFleet(dir)
		if err != nil {
			if !strings.HasPrefix(err.Error(), dir) {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		for _, n := range got.Nodes {
			if rel, err := filepath.Rel(dir, NodeResults(dir, n)); err != nil || rel != filepath.Join("nodes", n, "results") {
				t.Errorf("the node %q has the folder %q, %v", n, rel, err)
			}
		}
	})
}

func FuzzReadTask(f *testing.F) {
	f.Add(`{"state":"waiting","since":"2026-11-30T08:00:00Z","job":"1"}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.MkdirAll(NodeDir(dir, "n1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(NodeDir(dir, "n1"), "task.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if task, said, err := ReadTask(dir, "n1"); err == nil && (!said || task.State == "") {
			t.Errorf("%q gives %+v, %v", text, task, said)
		}
	})
}
