//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
)

// KindFolder is the journal's kind for a guest's folder. Everything in it, all mounts below it, and all processes that have their
// root there or were started for it belong to the guest and are removed with it. One entry covers them all, because a driver mounts
// only below the folder.
const KindFolder = "guest-folder"

// guestsDir is the folder of the guests' folders, below the state folder.
const guestsDir = "guests"

// Undo returns the functions that undo the changes for any guest, for journal.Recover: its folder, its cgroups and its links.
func Undo() map[string]journal.Undo {
	all := network.Undo()
	maps.Copy(all, undoGroups())
	all[KindFolder] = removeFolder
	return all
}

// MakeShared makes an empty folder that several guests may share (Spec.Shared). Every user in a guest may write to it. Undoing the changes removes
// it; do that after the last guest is gone.
func MakeShared(j *journal.Journal, state, id string) (dir string, c *journal.Changes, err error) {
	return MakeFolder(j, state, id, 0o777|os.ModeSticky)
}

// MakeFolder makes an empty folder with this mode for something beside the guests. Undoing the changes removes it.
func MakeFolder(j *journal.Journal, state, id string, mode os.FileMode) (dir string, c *journal.Changes, err error) {
	c = journal.NewChanges(j, Undo())
	if dir, err = makeFolder(c, state, id, nil, nil); err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil {
		bounded, cancel := context.WithTimeout(context.Background(), undoTime)
		defer cancel()
		return "", nil, errors.Join(err, c.Undo(bounded))
	}
	return dir, c, nil
}

// makeFolder makes the folder of the guest with the given id below the state folder, and returns its path, absolute and without
// symbolic links. programs are those that will be started for the guest with a path below the folder as an argument; they end with
// the folder. more, if not nil, returns further entries that are written to the journal together with the folder's, before any of
// it is made.
func makeFolder(c *journal.Changes, state, id string, programs []string, more func(folder string) []journal.Entry) (string, error) {
	if !validID.MatchString(id) {
		return "", fmt.Errorf("guest id %q: must be 1 to 100 of a-z A-Z 0-9 . _ -, the first a letter or digit", id)
	}
	parent := filepath.Join(state, guestsDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(parent) // the kernel's lists of mounts and roots contain no links
	if err != nil {
		return "", err
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(state)
	if err != nil {
		return "", err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", err
	}
	if parent != filepath.Join(real, guestsDir) {
		return "", fmt.Errorf("%s is a link, but must be a folder: remove the link", filepath.Join(state, guestsDir))
	}
	path := filepath.Join(parent, id)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		// Check before the entry is written: otherwise undoing it would remove another guest's folder.
		return "", fmt.Errorf("a guest called %s has its folder already: %s (%v); `tare clean` removes what a dead run left", id, path, err)
	}
	entries := []journal.Entry{{Kind: KindFolder, Target: path, Detail: map[string]string{"programs": strings.Join(programs, "\n")}}}
	if more != nil {
		entries = append(entries, more(path)...)
	}
	if err := c.Announce(entries...); err != nil {
		return "", err
	}
	return path, os.Mkdir(path, 0o700)
}

// validID matches the names that a guest can have everywhere: as a folder, a cgroup, a container.
var validID = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$`)

// OwnFolder says why a path in a journal's entry is not a guest's folder below the state folder. Tare removes nothing else, and
// ends processes of no other folder, whatever the journal says.
func OwnFolder(e journal.Entry, path string) error {
	if e.State == "" || filepath.Dir(path) != filepath.Join(e.State, guestsDir) || !validID.MatchString(filepath.Base(path)) {
		return fmt.Errorf("%q is not a guest's folder below %q, and nothing else is Tare's to remove", path, e.State)
	}
	return nil
}

func removeFolder(ctx context.Context, e journal.Entry) error {
	if err := OwnFolder(e, e.Target); err != nil {
		return err
	}
	if err := proc.EndAll(ctx, e.Target, strings.Split(e.Detail["programs"], "\n")); err != nil {
		return err
	}
	mounts, err := proc.MountsBelow(e.Target)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if err := journal.Unmount(ctx, m); err != nil {
			return err
		}
	}
	return journal.RemoveDir(ctx, e.State, e.Target)
}
