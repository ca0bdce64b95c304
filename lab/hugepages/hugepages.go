//go:build linux

// Package hugepages sets the host's huge pages for guests. For guests that are to have them, the host gives processes huge pages or
// large folios without being asked (the kernel's Documentation/admin-guide/mm/transhuge.rst). Guests without huge pages need no
// setting of the host. The package also withholds memory from a guest, as huge pages that nobody uses (hugetlbpage.rst there).
package hugepages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// Tree is the root of the file tree with the kernel's files.
type Tree string

// Host is the tree of this machine.
const Host Tree = "/"

const folder = "/sys/kernel/mm/transparent_hugepage"

// file is one of the kernel's files and the value to write to it.
type file struct{ name, value string }

// settings are the files to write for each value of notebook.FactorHugePages.
var settings = map[string][]file{
	notebook.HugePagesAlways: {{"enabled", "always"}},
	notebook.HugePagesLarge:  {{"enabled", "never"}, {"hugepages-64kB/enabled", "always"}}, // Linux 6.8
}

// Kind is the journal's kind for a file that was written; its target is the file.
const Kind = "huge pages"

const detailFrom = "from"

func (t Tree) path(name string) string { return filepath.Join(string(t), folder, name) }

// Undo returns the functions that undo the journal entries of Set and Withhold, for journal.Recover.
func (t Tree) Undo() map[string]journal.Undo {
	return map[string]journal.Undo{Kind: t.putBack, KindWithheld: t.giveBack}
}

func (t Tree) putBack(_ context.Context, e journal.Entry) error {
	for _, files := range settings {
		for _, f := range files {
			if t.path(f.name) != e.Target {
				continue
			}
			if err := proc.Set(e.Target, e.Detail[detailFrom]); err != nil {
				return fmt.Errorf("huge pages: %w; echo '%s' >%s", err, e.Detail[detailFrom], e.Target)
			}
			return nil
		}
	}
	return fmt.Errorf("huge pages: %q is none of the kernel's files", e.Target) // the path is from Tare's own journal, but Tare writes to no other file
}

// Supports says why the host cannot be set to the value; nil if it can. It tries by writing the present value. Any value without
// settings is supported.
func (t Tree) Supports(value string) error {
	for _, f := range settings[value] {
		from, err := proc.Setting(t.path(f.name))
		if err == nil {
			err = proc.WriteSetting(t.path(f.name), from)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("the kernel has no %s (Linux 6.8 or newer, with CONFIG_TRANSPARENT_HUGEPAGE)", t.path(f.name))
		case errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%w: run tare as root on the host itself", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// Set sets the host. It records the files' contents in the journal before it changes any; Undo of the changes restores them. On
// error nothing is changed, or Set returns the changes that it could not undo.
func (t Tree) Set(ctx context.Context, j *journal.Journal, value string) (*journal.Changes, error) {
	c := journal.NewChanges(j, t.Undo())
	var entries []journal.Entry
	for _, f := range settings[value] {
		from, err := proc.Setting(t.path(f.name))
		if err != nil {
			return nil, err
		}
		entries = append(entries, journal.Entry{Kind: Kind, Target: t.path(f.name), Detail: map[string]string{detailFrom: from}})
	}
	if len(entries) == 0 {
		return nil, nil
	}
	if err := c.Announce(entries...); err != nil {
		return nil, err
	}
	for _, f := range settings[value] {
		if err := proc.Set(t.path(f.name), f.value); err != nil {
			if uerr := c.Undo(ctx); uerr != nil {
				return c, errors.Join(err, uerr)
			}
			return nil, err
		}
	}
	return c, nil
}
