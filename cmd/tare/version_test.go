package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"tare/notebook"
)

// A version tells which program wrote a folder, and which folders it reads.
func TestVersionSaysWhatThisProgramIs(t *testing.T) {
	defer func(was string) { release = was }(release)
	release = "abc123"
	if got := version(); got != number+"+abc123" {
		t.Errorf("folders record %q", got)
	}
	var said bytes.Buffer
	root := rootCommand()
	root.SetOut(&said)
	root.SetArgs([]string{"--version"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("tare %s\ncommit: abc123\nGo: %s, %s/%s\nformat of results folders: %d\n",
		number, strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS, runtime.GOARCH, notebook.Version)
	if said.String() != want {
		t.Errorf("tare --version:\ngot  %s\nwant %s", said.String(), want)
	}
	said.Reset()
	if err := writeJSON(&said, thisBuild()); err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(said.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"version": number, "commit": "abc123", "formats": fmt.Sprintf("map[results:%d]", notebook.Version)} {
		if got := fmt.Sprint(read[key]); got != want {
			t.Errorf("JSON: %s is %q, want %q", key, got, want)
		}
	}
}

// The version is written in the places that people cite.
func TestOneVersionEverywhere(t *testing.T) {
	for file, pattern := range map[string]string{"../../CITATION.cff": `(?m)^version: (\S+)$`, "../../CHANGELOG.md": `(?m)^## (\d+\.\d+\.\d+)`} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(pattern).FindSubmatch(text); found == nil || string(found[1]) != number {
			t.Errorf("%s: the first version is %s, want %s", file, found, number)
		}
	}
}

// Every command that help lists has a man page, with its flags.
func TestEveryCommandHasAManPage(t *testing.T) {
	dir := t.TempDir()
	if err := writePages(rootCommand(), dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{"tare.1", "tare\\-summary(1)"}, {"tare.1", ".SH EXIT STATUS\n.TP\n0\n"}, {"tare.1", ".SH ENVIRONMENT\n.TP\nTARE_STATE\n"},
		{"tare-summary.1", "\\-\\-against"}, {"tare-version.1", ".SH EXAMPLES\n.nf\n"},
	} {
		if page, err := os.ReadFile(filepath.Join(dir, c.file)); err != nil || !strings.Contains(string(page), c.want) {
			t.Errorf("%s: %v; it has no %q:\n%s", c.file, err, c.want, page)
		}
	}
	if got := troff(".so x\n'a-b\\ `^~"); got != "\\&.so x\n\\(aqa\\-b\\e \\(ga\\(ha\\(ti" {
		t.Errorf("a text for troff: %q", got)
	}
}
