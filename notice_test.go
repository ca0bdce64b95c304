package tare

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What is linked into a program is named in NOTICE, and what is not is not.
func TestNoticeNamesWhatIsLinked(t *testing.T) {
	text, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for line := range strings.Lines(string(text)) {
		if module, licence, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && strings.HasPrefix(line, "  ") && strings.Contains(module, "/") {
			if strings.TrimSpace(licence) == "" {
				t.Errorf("NOTICE: %s has no licence", module)
			}
			named = append(named, module)
		}
	}
	var linked []string
	for _, system := range []struct{ os, arch, programs string }{
		{"linux", "amd64", "./cmd/..."}, {"linux", "arm64", "./cmd/..."}, {"darwin", "arm64", "./cmd/tare"}, {"windows", "amd64", "./cmd/tare"},
	} {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", system.programs)
		list.Env = append(os.Environ(), "GOOS="+system.os, "GOARCH="+system.arch, "CGO_ENABLED=0")
		said, err := list.Output()
		if err != nil {
			t.Fatalf("%v: %v", system, err)
		}
		linked = append(linked, strings.Fields(string(said))...)
	}
	slices.Sort(linked)
	linked = slices.Compact(linked)
	for _, module := range linked {
		if !slices.Contains(named, module) {
			t.Errorf("NOTICE does not name %s, which is linked", module)
		}
	}
	for _, module := range named {
		if !slices.Contains(linked, module) {
			t.Errorf("NOTICE names %s, which is not linked", module)
		}
	}
	if len(linked) < 20 {
		t.Errorf("only %d modules are linked", len(linked))
	}
}
