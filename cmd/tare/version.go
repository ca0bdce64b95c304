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

// number is the version of this source, after https://semver.org.
const number = "0.1.0"

// release is the commit, set by the linker: see the Makefile.
var release string

// version is the version with the commit of the build. Results folders record it.
func version() string {
	if c := commit(); c != "" {
		return number + "+" + c
	}
	return number
}

// commit is the commit of the build; empty where it is unknown.
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

// build describes this program.
type build struct {
	Version string         `json:"version"`
	Commit  string         `json:"commit"` // empty: unknown
	Go      string         `json:"go"`
	System  string         `json:"system"`
	Formats map[string]int `json:"formats"` // the newest that this program reads and writes
}

func thisBuild() build {
	return build{number, commit(), strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS + "/" + runtime.GOARCH, map[string]int{"results": notebook.Version}}
}

func (b build) String() string {
	from := b.Commit
	if from == "" {
		from = "unknown"
	}
	return fmt.Sprintf("tare %s\ncommit: %s\nGo: %s, %s\nformat of results folders: %d\n", b.Version, from, b.Go, b.System, b.Formats["results"])
}

func versionCommand() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "version", Short: "Print the version, the commit, Go and the formats", Args: nothing,
		Long:    "Prints the version of this program, its commit, the Go version that built it, and the format of results folders.",
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
