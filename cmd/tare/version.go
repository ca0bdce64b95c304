package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"tare/notebook"
)

// number is the version that is built from this source, by https://semver.org.
const number = "0.1.0"

// release is the commit, set by the linker: see the Makefile.
var release string

// version is the version with the commit that the program was built from: folders record it.
func version() string {
	if c := commit(); c != "" {
		return number + "+" + c
	}
	return number
}

// commit is the commit that the program was built from; empty where none is known.
func commit() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + dirty
}

// build says what this program is.
type build struct {
	Version string         `json:"version"`
	Commit  string         `json:"commit"` // empty: not known
	Go      string         `json:"go"`
	System  string         `json:"system"`
	Formats map[string]int `json:"formats"` // the newest that it reads and writes
}

func thisBuild() build {
	return build{number, commit(), strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS + "/" + runtime.GOARCH, map[string]int{"results": notebook.Version}}
}

func (b build) String() string {
	from := b.Commit
	if from == "" {
		from = "not known"
	}
	return fmt.Sprintf("tare %s\ncommit: %s\nGo: %s, %s\nformat of results folders: %d\n", b.Version, from, b.Go, b.System, b.Formats["results"])
}

func versionCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "version", Short: "Print the version, the commit, Go and the formats", Args: nothing,
		Long:    "Prints the version of this program, the commit and the Go that it was built from, and the format of results folders.",
		Example: "  tare version\n  tare version --format json | jq -r .commit",
		RunE: func(*cobra.Command, []string) error {
			if format == "json" {
				return writeJSON(os.Stdout, thisBuild())
			}
			_, err := fmt.Print(thisBuild())
			return err
		}}
	tableOrJSON(c, &format)
	return c
}
