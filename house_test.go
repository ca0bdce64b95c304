// Package tare has no code of its own: its tests hold what is true of the module as a whole.
package tare

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows are the imports that the house does not allow (docs/architecture.md). A pattern is a folder of the module and
// all below it; with /* it is what is below alone.
var arrows = []struct {
	from, to string
	why      string
}{
	{from: "lab", to: "desk", why: "the laboratory measures and knows of no report"},
	{from: "desk", to: "lab", why: "the desk reads results on any machine, and knows of no engine"},
	{from: "notebook", to: "", why: "both wings stand on the notebook"},
	{from: "stats", to: "", why: "intervals are functions of numbers alone"},
	{from: "lab/study", to: "lab/session", why: "a session opens the host and runs a study on it"},
	{from: "lab", to: "cmd", why: "a command calls"},
	{from: "desk", to: "cmd", why: "a command calls"},
	{from: "desk/data", to: "desk/*", why: "folders are read first, and read once"},
	{from: "lab/ruler", to: "lab/*", why: "the ruler is in every guest and carries nothing else there"},
}

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// below says whether an import path is what a pattern of [arrows] means.
func below(path, pattern string) bool {
	folder, ok := strings.CutPrefix(path, "tare/")
	if !ok {
		return false // not of this module
	}
	pattern, only := strings.CutSuffix(pattern, "/*")
	if pattern == "" {
		return true
	}
	return folder == pattern && !only || strings.HasPrefix(folder, pattern+"/")
}

func TestArrowsPointDown(t *testing.T) {
	used := make([]bool, len(arrows))
	for _, p := range packages(t) {
		for i, a := range arrows {
			if !below(p.ImportPath, a.from) {
				continue
			}
			used[i] = true
			for _, to := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
				if to != p.ImportPath && below(to, a.to) && !below(to, a.from) && !below(to, "internal") { // internal is for tests
					t.Errorf("%s imports %s: %s", p.ImportPath, to, a.why)
				}
			}
		}
	}
	for i, a := range arrows {
		if !used[i] {
			t.Errorf("there is no package %s: its rule holds nothing", a.from)
		}
	}
}
