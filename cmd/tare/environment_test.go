package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/commands.md lists the exit statuses and the environment variables with the same words as the man page.
func TestDocumentationHasStatusesAndVariables(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statuses {
		if row := fmt.Sprintf("\n| %s | %s |\n", s.name, s.usage); !strings.Contains(string(text), row) {
			t.Errorf("docs/commands.md has no row%s", row)
		}
	}
	for _, v := range variables {
		if row := fmt.Sprintf("\n| `%s` | %s |\n", v.name, v.usage); !strings.Contains(string(text), row) {
			t.Errorf("docs/commands.md has no row%s", row)
		}
	}
	if n := strings.Count(string(text), "\n| `"+variables[0].name+"` |"); n != 1 {
		t.Errorf("docs/commands.md has %s %d times", variables[0].name, n)
	}
}

// The help of tare lists the environment variables, and the help of a command omits them.
func TestHelpListsVariables(t *testing.T) {
	help := func(args ...string) string {
		var said bytes.Buffer
		root := rootCommand()
		root.SetOut(&said)
		root.SetArgs(append(args, "--help"))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		return said.String()
	}
	for _, v := range variables {
		if line := "\n  " + v.name + " "; !strings.Contains(help(), line) || strings.Contains(help("summary"), line) {
			t.Errorf("%s: want it in tare --help, and not in tare summary --help", v.name)
		}
	}
}

var readsVariable = regexp.MustCompile(`os\.(?:Getenv|LookupEnv)\("?(\w+)"?\)`)

// notForUsers are the names in the source of variables that only tests set, that Tare's own init in a VM reads, or that users name.
var notForUsers = []string{"testLock", "envHold", "SkipsFile", "TARE_REQUIRE", "runtimeSettings", "name"}

// Every variable that the program reads is listed.
func TestEveryVariableIsListed(t *testing.T) {
	var read []string
	for _, folder := range []string{"cmd", "desk", "internal", "lab", "notebook", "stats", "yamlfile"} {
		if err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "remotetest") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range readsVariable.FindAllSubmatch(text, -1) {
				read = append(read, string(m[1]))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range read {
		if !slices.Contains(notForUsers, name) && !slices.ContainsFunc(variables, func(v option) bool { return v.name == name }) {
			t.Errorf("the program reads %s, which variables does not list", name)
		}
	}
	for _, name := range []string{"TARE_STATE", "DOCKER_HOST", "NO_COLOR", "TERM"} {
		if !slices.Contains(read, name) {
			t.Errorf("nothing reads %s", name)
		}
	}
}
