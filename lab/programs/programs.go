//go:build linux

// Package programs contains the programs that Tare puts into guests. The build makes them before tare itself and embeds them,
// compressed, for the architecture of tare, which is also that of its guests (scripts/programs).
package programs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"tare/notebook/durable"
)

// The programs' names.
const (
	Ruler  = "ruler"  // cmd/ruler: measures, as the first process of every guest
	Init   = "init"   // cmd/init: the first process of a virtual machine
	Tracer = "tracer" // cmd/tracer: observes trials inside a virtual machine
)

// Dir is the folder for the programs, below Tare's state folder.
const Dir = "programs"

// ErrAbsent is in the chain of the error for a program that was not embedded. Commands that need no guest work without it.
var ErrAbsent = errors.New("this tare was built without its ruler: `make build` builds both")

// embedded has a folder for this architecture with the programs in it: compressed, except in tests.
var embedded fs.FS = packed

// program returns the content of an embedded program.
func program(name string) ([]byte, error) {
	content, err := fs.ReadFile(embedded, runtime.GOARCH+"/"+name+".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("the embedded %s: %w", name, err)
	}
	if content, err = io.ReadAll(z); err != nil {
		return nil, fmt.Errorf("the embedded %s: %w", name, err)
	}
	return content, nil
}

// place is the path of a program with this content below the state folder: each version has a folder of its own.
func place(state, name string, content []byte) string {
	sum := sha256.Sum256(content)
	return filepath.Join(state, Dir, hex.EncodeToString(sum[:16]), name)
}

// File returns the path of the program's file below the state folder. It writes the file unless it exists with exactly that
// content. The file appears under its name only when it is complete.
func File(state, name string) (path string, err error) {
	content, err := program(name)
	if err != nil {
		return "", err
	}
	path = place(state, name, content)
	if st, err := os.Lstat(path); err == nil && st.Mode() == 0o755 {
		if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, content) {
			return path, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("a folder for the %s: %w", name, err)
	}
	if err := durable.WriteFile(path, content, 0o755); err != nil {
		return "", fmt.Errorf("writing the %s: %w", name, err)
	}
	return path, nil
}

// Sweep removes the programs of other versions of tare, and incomplete files, and returns the removed files. No guest may be alive.
func Sweep(state string) (removed []string, err error) {
	keep := map[string]bool{}
	for _, name := range []string{Ruler, Init, Tracer} {
		content, err := program(name)
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		keep[place(state, name, content)] = true
	}
	files, err := filepath.Glob(filepath.Join(state, Dir, "*", "*"))
	for _, path := range files {
		if keep[path] {
			continue
		}
		if err := os.Remove(path); err != nil {
			return removed, err
		}
		removed = append(removed, path)
		os.Remove(filepath.Dir(path)) // fails while anything is in it
	}
	return removed, err
}
