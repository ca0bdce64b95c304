//go:build linux

// Package hugepages sets the host's huge pages for guests. The host gives processes huge pages, or large folios, that they did not ask for, while
// it measures guests that are to have them (the kernel's Documentation/admin-guide/mm/transhuge.rst). A process that is to have none needs
// no setting of the host. The package also withholds memory from a guest, as huge pages that nobody uses (hugetlbpage.rst there).
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

// Tree is the root of the file tree that the kernel's files are in.
type Tree string

// Host is this machine's own.
const Host Tree = "/"

const folder = "/sys/kernel/mm/transparent_hugepage"

// file is one of them with what is written to it.
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

// Undo has the functions that undo what Set and Withhold journal, for journal.Recover.
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
	return fmt.Errorf("huge pages: %q is none of the kernel's files", e.Target) // it is a path of our own journal, and still nothing else is written
}

// Supports says why the host cannot be set so, which it tries by writing what is there; nil: it can. Any value without settings is supported.
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

// Set sets the host so. What the files say stands in the journal before any is changed; Undo of the changes puts it back. On error nothing is changed, or
// the changes are given that could not be put back.
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
