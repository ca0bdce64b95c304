package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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
	if err := writeBuild(&said, thisBuild()); err != nil {
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
