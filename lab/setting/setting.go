//go:build linux

// Package setting sets the host for what the processes of a guest get from it and no engine can change: the pages that they have without
// asking (the kernel's Documentation/admin-guide/mm/transhuge.rst), and whether their addresses are random (sysctl/kernel.rst there,
// randomize_va_space). Guests without huge pages need no setting of the host. It also raises a limit that many whole systems at once meet.
package setting

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// Tree is the root of the file tree with the kernel's files.
type Tree string

// Host is the tree of this machine.
const Host Tree = "/"

// File is one of the kernel's files, by its path on the host, and the value to write to it.
type File struct{ Path, Value string }

// inotify is the limit of inotify instances that ForMany wants.
var inotify = File{"/proc/sys/fs/inotify/max_user_instances", "8192"}

// ForMany raises the limit of inotify instances, which the processes of one user share: the init and the daemons of a distribution take
// about seven, so the kernel's 128 are enough for eighteen containers (inotify(7)). A host that allows more keeps its limit.
func (t Tree) ForMany() ([]File, error) {
	text, err := proc.Setting(t.path(inotify))
	if err != nil {
		return nil, err
	}
	have, err := strconv.Atoi(text)
	if want, _ := strconv.Atoi(inotify.Value); err != nil || have >= want {
		return nil, err
	}
	return []File{inotify}, nil
}

const (
	pages     = "/sys/kernel/mm/transparent_hugepage/"
	addresses = "/proc/sys/kernel/randomize_va_space"
)

// chosen is a factor of a treatment with the files to write for each of its values.
var chosen = []struct {
	factor notebook.Factor
	files  map[string][]File
}{
	{notebook.FactorHugePages, map[string][]File{
		notebook.HugePagesMadvise: {{pages + "enabled", "madvise"}},
		notebook.HugePagesAlways:  {{pages + "enabled", "always"}},
		notebook.HugePagesLarge:   {{pages + "enabled", "never"}, {pages + "hugepages-64kB/enabled", "always"}}, // Linux 6.8
	}},
	{notebook.FactorAddresses, map[string][]File{
		notebook.AddressesFixed:  {{addresses, "0"}},
		notebook.AddressesRandom: {{addresses, "2"}},
	}},
}

// For are the files to write for a treatment; nil: its guests take the host as it is.
func For(t notebook.Treatment) (all []File) {
	for _, c := range chosen {
		all = append(all, c.files[c.factor.Of(t)]...)
	}
	return all
}

// Kind is the journal's kind for a file that was written; its target is the file.
const Kind = "kernel setting"

// earlierKind is what journals of earlier versions have in its place.
const earlierKind = "huge pages"

const detailFrom = "from"

func (t Tree) path(f File) string { return filepath.Join(string(t), f.Path) }

// Undo returns the function that undoes the journal entries of Set, for journal.Recover.
func (t Tree) Undo() map[string]journal.Undo {
	return map[string]journal.Undo{Kind: t.putBack, earlierKind: t.putBack}
}

func (t Tree) putBack(_ context.Context, e journal.Entry) error {
	if !t.has(e.Target) { // the path is from Tare's own journal, but Tare writes to no other file
		return fmt.Errorf("%s: %q is none of the kernel's files", Kind, e.Target)
	}
	if err := proc.Set(e.Target, e.Detail[detailFrom]); err != nil {
		return fmt.Errorf("%s: %w; echo '%s' >%s", Kind, err, e.Detail[detailFrom], e.Target)
	}
	return nil
}

// has reports whether the path is one of the files that Set writes.
func (t Tree) has(path string) bool {
	if path == t.path(inotify) {
		return true
	}
	for _, c := range chosen {
		for _, files := range c.files {
			for _, f := range files {
				if t.path(f) == path {
					return true
				}
			}
		}
	}
	return false
}

// Supports says why the host cannot be set so; nil if it can. It tries by writing the present value where that is another one.
func (t Tree) Supports(files []File) error {
	for _, f := range files {
		from, err := proc.Setting(t.path(f))
		if err == nil && from != f.Value {
			err = proc.WriteSetting(t.path(f), from)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("the kernel has no %s (Linux 6.8 or newer, with CONFIG_TRANSPARENT_HUGEPAGE)", t.path(f))
		case errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%w: run tare as root on the host itself", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// Set sets the host. It records the contents of the files that it changes in the journal before it changes any; Undo of the changes
// restores them. On error nothing is changed, or Set returns the changes that it could not undo.
func (t Tree) Set(ctx context.Context, j *journal.Journal, files []File) (*journal.Changes, error) {
	c := journal.NewChanges(j, t.Undo())
	var entries []journal.Entry
	var write []File
	for _, f := range files {
		from, err := proc.Setting(t.path(f))
		if err != nil {
			return nil, err
		}
		if from == f.Value {
			continue
		}
		write = append(write, f)
		entries = append(entries, journal.Entry{Kind: Kind, Target: t.path(f), Detail: map[string]string{detailFrom: from}})
	}
	if len(entries) == 0 {
		return nil, nil
	}
	if err := c.Announce(entries...); err != nil {
		return nil, err
	}
	for _, f := range write {
		if err := proc.Set(t.path(f), f.Value); err != nil {
			if uerr := c.Undo(ctx); uerr != nil {
				return c, errors.Join(err, uerr)
			}
			return nil, err
		}
	}
	return c, nil
}
