//go:build linux

// Package proctest makes the files of machines, and processes, for tests.
package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"tare/lab/proc"
)

// Tree is a machine's file tree that a test makes.
type Tree struct{ proc.Tree }

// New is a tree without a file.
func New() Tree { return Tree{proc.Tree{FS: fstest.MapFS{}}} }

// Recorded reads a machine's files from a file: text after a line "-- PATH --" up to the next one.
func Recorded(t testing.TB, path string) Tree {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	var file *fstest.MapFile
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(line, "-- /"); ok {
			file = &fstest.MapFile{}
			files[strings.TrimSuffix(p, " --\n")] = file
		} else if file != nil {
			file.Data = append(file.Data, line...)
		}
	}
	return Tree{proc.Tree{FS: files}}
}

// Put sets a file; a line's end is added to its text.
func (t Tree) Put(name, text string) {
	t.Files()[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: []byte(text + "\n")}
}

// Drop takes a file away.
func (t Tree) Drop(name string) { delete(t.Files(), strings.TrimPrefix(name, "/")) }

// Files is the tree itself.
func (t Tree) Files() fstest.MapFS { return t.FS.(fstest.MapFS) }

// Alive says whether the process runs; one that only waits to be reaped does not.
func Alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// Start runs a program until the end of the test.
func Start(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}
