//go:build linux

package suite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tare/lab/image"
)

// The system gets Tare, the study, and the inputs that Tare fetched for its workloads, in folders that the system does not have yet.
func TestASystemGetsItsInputs(t *testing.T) {
	dir := t.TempDir()
	store, err := image.OpenStore(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	tare, film := filepath.Join(dir, "tare"), filepath.Join(dir, "film")
	if err := errors.Join(os.WriteFile(tare, []byte("program"), 0o755), os.WriteFile(film, []byte("frames"), 0o644)); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "system")
	c := Content{Study: "name: mine\n", File: true, Tare: tare, State: map[string]string{"inputs/a": film, "inputs/b": film}}
	if err := c.install(t.Context(), store, root, "/var/lib/tare"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"usr/bin/tare": "program", "etc/tare/study.yaml": "name: mine\n", "etc/tare/study": "/etc/tare/study.yaml\n",
		"var/lib/tare/inputs/a": "frames", "var/lib/tare/inputs/b": "frames",
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
