//go:build linux

package fleet

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tare/notebook"
	"tare/notebook/durable"
)

const (
	mostFiles   = 10_000   // of a node's folder
	mostContent = 64 << 30 // bytes of them
	endMark     = ".end"   // the last member, because a stream that is cut off between two members looks whole
)

// Pack writes the folder of a node as a tar archive: regular files only, and none that is still being put in place. A run may append to them
// meanwhile: each file is written with its size at the start, and readers ignore a last line that is cut off.
func Pack(w io.Writer, dir, node string) error {
	at := notebook.NodeDir(dir, node)
	t := tar.NewWriter(w)
	err := filepath.WalkDir(at, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the run replaced it
		}
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(name, durable.PartSuffix) {
			return err
		}
		rel, err := filepath.Rel(at, name)
		if err != nil {
			return err
		}
		return pack(t, name, rel)
	})
	if err == nil {
		err = t.WriteHeader(&tar.Header{Name: endMark, Typeflag: tar.TypeReg, Mode: 0o644})
	}
	return errors.Join(err, t.Close())
}

func pack(t *tar.Writer, name, rel string) error {
	f, err := durable.OpenToRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read: a failing close loses nothing
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(rel), Mode: 0o644, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// Unpack replaces the folder of a node with what Pack wrote: whole, or not at all. No file of the archive can land outside the folder. It refuses
// results of another host or another study than those already there.
func Unpack(r io.Reader, dir, node string) (err error) {
	if err := notebook.CheckNode(node); err != nil {
		return err
	}
	at := notebook.NodeDir(dir, node)
	part, old := hidden(dir, node, durable.PartSuffix), hidden(dir, node, ".old")
	if err := restored(dir, node); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(part), os.RemoveAll(old), os.MkdirAll(part, 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	root, err := os.OpenRoot(part)
	if err != nil {
		return err
	}
	err = unpack(tar.NewReader(r), root)
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("the results of %s: %w", node, err)
	}
	if err := sameWork(notebook.NodeResults(dir, node), filepath.Join(part, filepath.Base(notebook.NodeResults(dir, node)))); err != nil {
		return fmt.Errorf("the results of %s: %w", node, err)
	}
	if err := os.Rename(at, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(part, at); err != nil {
		return errors.Join(err, os.Rename(old, at))
	}
	return errors.Join(durable.SyncDir(filepath.Dir(at)), os.RemoveAll(old))
}

// hidden is a folder next to that of a node, with a name that no node has.
func hidden(dir, node, suffix string) string {
	at := notebook.NodeDir(dir, node)
	return filepath.Join(filepath.Dir(at), "."+filepath.Base(at)+suffix)
}

// restored puts back the folder of a node where an Unpack was killed between its two renames.
func restored(dir, node string) error {
	at := notebook.NodeDir(dir, node)
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(hidden(dir, node, ".old"), at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func unpack(t *tar.Reader, root *os.Root) error {
	var files int
	var content int64
	for {
		h, err := t.Next()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("the archive is cut off or damaged: %w", err)
		}
		tooMuch := h.Size > mostContent-content
		files, content = files+1, content+h.Size
		switch name := h.Name; {
		case name == endMark:
			return nil
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("the archive holds %q, which is not a regular file", name)
		case files > mostFiles || tooMuch:
			return fmt.Errorf("the archive holds more than %d files or %d bytes", mostFiles, int64(mostContent))
		case !filepath.IsLocal(name) || path.Clean(name) != name:
			return fmt.Errorf("the archive holds %q, which is outside of the folder", name)
		}
		if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("the archive is cut off or damaged: %w", err)
		}
	}
}

// sameWork says why results cannot take the place of others.
func sameWork(old, new string) error {
	if !notebook.Exists(old) {
		return nil
	}
	was, err := notebook.Read(old)
	if err != nil {
		return err
	}
	is, err := notebook.Read(new)
	switch {
	case err != nil:
		return err
	case is.Study.Name != was.Study.Name:
		return fmt.Errorf("they are of the study %q, the earlier ones of %q", is.Study.Name, was.Study.Name)
	case is.Host.ID != was.Host.ID:
		return fmt.Errorf("they are of the host %s (%s), the earlier ones of the host %s (%s): another machine has taken the node's name", is.Host.ID, is.Host.Hostname, was.Host.ID, was.Host.Hostname)
	}
	return grown(old, new)
}

// grown says why a results folder is not a later state of another: its records are only ever appended to.
func grown(old, new string) error {
	records, err := filepath.Glob(filepath.Join(old, "*.jsonl"))
	if err != nil {
		return err
	}
	for _, name := range records {
		was, err := os.Stat(name)
		if err != nil {
			return err
		}
		is, err := os.Stat(filepath.Join(new, filepath.Base(name)))
		if err != nil {
			return err
		}
		if is.Size() < was.Size() {
			return fmt.Errorf("their %s has %d bytes, the one before %d: they are older", filepath.Base(name), is.Size(), was.Size())
		}
	}
	return nil
}
