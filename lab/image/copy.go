package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"tare/lab/proc"
)

// Workspace is a temporary folder on the store's file system. Sweep removes one whose process has died.
type Workspace struct {
	Dir  string
	Lock *os.File // programs that work in the folder inherit it
	w    *workspace
}

// Workspace makes a workspace.
func (s *Store) Workspace() (*Workspace, error) {
	w, err := s.workspace()
	if err != nil {
		return nil, err
	}
	return &Workspace{Dir: w.dir, Lock: w.lock, w: w}, nil
}

// Close removes the folder and all in it.
func (w *Workspace) Close() error { return w.w.close() }

// Link makes a copy of a folder or file at another place: of the same inodes on the same file system, and copied elsewhere. Nobody
// may write to the files.
func Link(ctx context.Context, from, to string) error {
	said := &proc.Tail{}
	cp := func(how string) error {
		return run(ctx, func(cmd *exec.Cmd) { cmd.Stderr = said }, nil, "cp", "--archive", how, "--no-target-directory", from, to)
	}
	err := cp("--link")
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	said = &proc.Tail{}
	if err := cp("--reflink=auto"); err != nil {
		return errors.New(err.Error() + outputTail(said))
	}
	return nil
}

// Copy makes a store in the new folder to, with the trees with these digests and their records.
func (s *Store) Copy(ctx context.Context, to string, digests []string) error {
	other, err := OpenStore(to)
	if err != nil {
		return err
	}
	for _, digest := range digests {
		rec, err := s.find(digest)
		if err == nil && rec == nil {
			err = errors.New("the image store has no tree " + digest)
		}
		if err != nil {
			return err
		}
		kept := other.keptPath(digest)
		if _, err := os.Lstat(kept); err == nil {
			continue
		}
		if err := os.Mkdir(kept, 0o755); err != nil {
			return noSpace(err, to)
		}
		for _, name := range []string{treeName, recordName} { // disks can be made again
			if err := Link(ctx, filepath.Join(s.keptPath(digest), name), filepath.Join(kept, name)); err != nil {
				return noSpace(err, to)
			}
		}
	}
	entries, err := filepath.Glob(filepath.Join(s.root, indexDir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range entries {
		var e entry
		if err := readJSON(path, &e); err != nil || !slices.Contains(digests, e.Digest) {
			continue // a damaged one would not help there either
		}
		if err := Link(ctx, path, filepath.Join(to, indexDir, filepath.Base(path))); err != nil {
			return noSpace(err, to)
		}
	}
	return nil
}
