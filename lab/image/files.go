package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// filesVersion is hashed first, so that a tree of files never has the digest of something else.
const filesVersion = "tare tree of files 1\n"

// Files makes a tree of the given files, by their names in the tree ("input/clip.mp4"), or finds it in the store. Files and folders
// belong to root, have modes 0755 (folders, and files with Exec) and 0644, and one fixed time. The digest covers only the sorted
// names, modes and contents.
func (s *Store) Files(ctx context.Context, files map[string]Source) (_ *Tree, err error) {
	names := slices.Sorted(maps.Keys(files))
	for _, n := range names {
		if !fs.ValidPath(n) || n == "." || strings.ContainsRune(n, 0) {
			return nil, fmt.Errorf(`tree of files: the name %q is not a relative path without "..", such as "input/clip.mp4"`, n)
		}
		if src := files[n]; src.Path != "" && src.Data != nil {
			return nil, fmt.Errorf("tree of files: %q has both a path and data", n)
		}
		for d := path.Dir(n); d != "."; d = path.Dir(d) {
			if _, both := files[d]; both {
				return nil, fmt.Errorf("tree of files: %q is a file and, for %q, a folder", d, n)
			}
		}
	}
	// First only compute the digest: most of the time the store has the tree, and nothing needs to be written.
	digest, size, err := hashFiles(ctx, names, files, nil)
	if err != nil {
		return nil, fmt.Errorf("tree of files: %w", err)
	}
	if rec, err := s.find(digest); err != nil {
		return nil, err
	} else if rec != nil {
		return s.tree(digest), nil
	}
	if err := room(s.root, size, s.limits.reserve); err != nil {
		return nil, fmt.Errorf("tree of files: %w", err)
	}
	w, err := s.workspace()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	dir := filepath.Join(w.dir, treeName)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, noSpace(err, s.root)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	// Hash again during the copy, because a file may have changed: the digest must be that of the written files.
	digest, size, err = hashFiles(ctx, names, files, func(n string) (io.WriteCloser, error) { return newFile(root, n, files[n].Exec) })
	if err != nil {
		return nil, noSpace(fmt.Errorf("tree of files: %w", err), s.root)
	}
	if err := fixTimes(root); err != nil {
		return nil, err
	}
	if err := s.keep(w, record{Digest: digest, Size: size}); err != nil {
		return nil, err
	}
	return s.tree(digest), nil
}

// Remember records that a tree in the store is the answer to the key: for trees whose making takes long, or gives different bytes
// each time.
func (s *Store) Remember(key string, t *Tree) error { return s.remember("tree: "+key, t.Digest) }

// Recall returns the tree that was remembered for the key; nil where there is none.
func (s *Store) Recall(key string) (*Tree, error) {
	_, rec, err := s.recall("tree: " + key)
	if rec == nil || err != nil {
		return nil, err
	}
	return s.tree(rec.Digest), nil
}

// hashFiles returns the digest of the tree and its size in bytes. It writes each file to the file that create makes for its name;
// with a nil create it only hashes.
func hashFiles(ctx context.Context, names []string, files map[string]Source, create func(string) (io.WriteCloser, error)) (digest string, size int64, err error) {
	sum := sha256.New()
	io.WriteString(sum, filesVersion)
	for _, n := range names {
		one := sha256.New()
		k, err := copySource(ctx, one, n, files[n], create)
		if err != nil {
			return "", 0, fmt.Errorf("%q: %w", n, err)
		}
		size += k
		mode := "0644"
		if files[n].Exec {
			mode = "0755"
		}
		fmt.Fprintf(sum, "%s\x00%s\x00%d\x00%x\n", n, mode, k, one.Sum(nil))
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), size, nil
}

func copySource(ctx context.Context, sum hash.Hash, name string, src Source, create func(string) (io.WriteCloser, error)) (n int64, err error) {
	var out io.Writer = sum
	if create != nil {
		f, err := create(name)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = io.MultiWriter(sum, f)
	}
	if src.Path == "" {
		k, err := out.Write(src.Data)
		return int64(k), err
	}
	in, err := openRegular(src.Path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return io.CopyBuffer(out, interruptible{ctx, in}, make([]byte, copyBuffer))
}

// openRegular opens a regular file of the host for reading.
func openRegular(path string) (*os.File, error) {
	// Not blocking: opening a named pipe would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file (%s)", path, fi.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// interruptible is a stream that ends with the context.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.Reader.Read(p)
}

// newFile makes a file of a tree, with its parent folders.
func newFile(root *os.Root, name string, exec bool) (io.WriteCloser, error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o644)
	if exec {
		mode = 0o755
	}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fixTimes sets the fixed time of everything in the tree, and the mode of folders.
func fixTimes(root *os.Root) error {
	epoch := time.Unix(0, 0)
	return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if err := root.Chmod(p, 0o755); err != nil { // sets the mode whatever the umask
				return err
			}
		}
		return root.Chtimes(p, epoch, epoch)
	})
}
