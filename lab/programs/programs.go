//go:build linux

// Package programs has the programs that Tare puts into guests. The build makes them before tare itself and embeds them, packed,
// for the kind of machine that tare is built for, which is that of its guests (scripts/programs).
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
	Init   = "init"   // cmd/init: what a virtual machine boots into
	Tracer = "tracer" // cmd/tracer: observes trials inside a virtual machine
)

// Dir is where the programs are kept, below Tare's state folder.
const Dir = "programs"

// ErrAbsent is in the chain of the error for a program that was not embedded: what needs no guest works without.
var ErrAbsent = errors.New("this tare was built without its ruler: `make build` builds both")

// embedded has a folder for this kind of machine, with the programs in it: packed, but for tests.
var embedded fs.FS = packed

// program gives the content of an embedded program.
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

// folder is the one that a program of this content is kept in: each version has its own.
func folder(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// File gives the path of the program's file below the state folder. It is written if it is not there with just that content, and
// appears under its name only when it is complete.
func File(state, name string) (path string, err error) {
	content, err := program(name)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, Dir, folder(content))
	path = filepath.Join(dir, name)
	if st, err := os.Lstat(path); err == nil && st.Mode() == 0o755 {
		if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, content) {
			return path, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("a folder for the %s: %w", name, err)
	}
	if err := durable.WriteFile(path, content, 0o755); err != nil {
		return "", fmt.Errorf("writing the %s: %w", name, err)
	}
	return path, nil
}

// Sweep removes the programs of other versions of tare, and what was not written to its end, and says which folders went. No guest
// may be alive.
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
		keep[folder(content)] = true
	}
	dir := filepath.Join(state, Dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if keep[e.Name()] {
			half, err := filepath.Glob(filepath.Join(dir, e.Name(), "*"+durable.PartSuffix))
			if err != nil {
				return removed, err
			}
			for _, path := range half {
				if err := os.Remove(path); err != nil {
					return removed, err
				}
				removed = append(removed, path)
			}
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := os.RemoveAll(path); err != nil {
			return removed, err
		}
		removed = append(removed, path)
	}
	return removed, nil
}
