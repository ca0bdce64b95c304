//go:build linux

// Package programstest builds the programs that Tare puts into guests from their source, for tests of what runs in guests: so they
// do not try one that was built before the last change.
package programstest

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Build builds a program, one of package programs' names, unless its file is up to date, and gives its path.
func Build(t testing.TB, name string) string {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env GOMOD: %v", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	if said, err := exec.Command(filepath.Join(root, "scripts", "programs"), name).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, said)
	}
	return filepath.Join(root, "bin", runtime.GOARCH, name)
}
