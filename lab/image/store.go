package image

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tare/notebook/durable"

	"golang.org/x/sys/unix"
)

// A store's folder:
//
//	kept.v1/sha256-HEX/root       a tree, which never changes here.
//	kept.v1/sha256-HEX/tree.json  the tree's description (record).
//	kept.v1/sha256-HEX/diskN.ext4 the tree's disk, if a guest has needed one.
//	index/HEX.json                the digest for a request (entry).
//	locks/HEX                     a lock for the process that builds a request's tree, so that others wait and share.
//	tmp/NAME, tmp/NAME.lock       a running build, and the lock that its process holds while it lives.
//
// A tree is built in tmp, and one rename moves it into kept.v1 with its tree.json inside.
const (
	keptDir  = "kept.v1" // raise the number when trees are made in another way
	indexDir = "index"
	locksDir = "locks"
	tmpDir   = "tmp"

	treeName   = "root"
	recordName = "tree.json"
)

// maxRecord bounds the store's own JSON files, in bytes.
const maxRecord = 16 << 20

// record is what the store knows of a tree.
type record struct {
	Digest   string    `json:"digest"`
	Form     int       `json:"form,omitempty"` // for an OCI image: ociForm when it was made
	Config   Config    `json:"config"`
	Warnings []string  `json:"warnings,omitempty"`
	Size     int64     `json:"size"` // bytes of file content
	Made     time.Time `json:"made"`
}

// entry says what a recipe or reference gave the last time.
type entry struct {
	Key    string    `json:"key"`
	Digest string    `json:"digest"`
	Time   time.Time `json:"time"`
}

// OpenStore opens the store in the folder root, and makes it if necessary.
func OpenStore(root string) (*Store, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("image store %s: %w", root, err)
	}
	s := &Store{root: abs, limits: defaultLimits}
	for _, d := range []string{keptDir, indexDir, locksDir, tmpDir} {
		// Roots of images have setuid programs that nobody updates, so only root may reach them from outside.
		if err := os.MkdirAll(filepath.Join(abs, d), 0o700); err != nil {
			return nil, fmt.Errorf("image store %s cannot be made: %w", abs, err)
		}
	}
	return s, nil
}

// workspace is a temporary folder of a running build. Programs that write into it inherit the lock's file. So the lock is free, and
// Sweep removes the folder, only when they are gone too.
type workspace struct {
	dir  string
	lock *os.File
}

// workspace makes a temporary folder that Sweep does not touch while this process lives. The lock is made before the folder, so a
// folder without a lock file is never ours.
func (s *Store) workspace() (*workspace, error) {
	for {
		name := strings.ToLower(rand.Text()[:16])
		dir := filepath.Join(s.root, tmpDir, name)
		f, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("temporary folder in the image store: %w", err)
		}
		// Between the two calls a sweep may have taken the new file for a dead build's. Then it holds the lock, or the file is gone
		// from the folder. Another name will do.
		if ours, err := durable.TryLockNamed(f); err != nil {
			f.Close()
			return nil, err
		} else if !ours {
			f.Close()
			continue
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("temporary folder in the image store: %w", err), os.Remove(f.Name()), f.Close())
		}
		return &workspace{dir: dir, lock: f}, nil
	}
}

// close removes the folder and all in it.
func (w *workspace) close() error {
	err := os.RemoveAll(w.dir)
	if err == nil {
		err = os.Remove(w.lock.Name())
	}
	return errors.Join(err, w.lock.Close())
}

// Sweep removes what builds of dead processes left in the store's temporary folder, and returns the folders that it removed. Sweep
// does not touch a build whose process lives.
func (s *Store) Sweep() (removed []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sweep of the image store: %w", err)
		}
	}()
	locks, err := filepath.Glob(filepath.Join(s.root, tmpDir, "*.lock"))
	if err != nil {
		return nil, err
	}
	for _, name := range locks {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its build has ended
		}
		if err != nil {
			return removed, err
		}
		dead, err := durable.TryLockNamed(f)
		if err != nil {
			return removed, errors.Join(err, f.Close())
		}
		if !dead {
			f.Close()
			continue
		}
		dir := strings.TrimSuffix(name, ".lock")
		if _, err := os.Lstat(dir); err == nil {
			removed = append(removed, dir)
		}
		if err := (&workspace{dir: dir, lock: f}).close(); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// lock takes the lock of that name. It waits for another process or goroutine that makes the same. unlock releases it.
func (s *Store) lock(ctx context.Context, key string) (unlock func() error, err error) {
	unlock, err = durable.Lock(ctx, filepath.Join(s.root, locksDir, hashName(key)))
	if err != nil {
		return nil, fmt.Errorf("the image store, where another process makes the same image: %w", err)
	}
	return unlock, nil
}

func hashName(key string) string {
	h := sha256.Sum256([]byte(key))
	return hex.EncodeToString(h[:])
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (s *Store) keptPath(digest string) string {
	return filepath.Join(s.root, keptDir, strings.Replace(digest, ":", "-", 1))
}

// find returns the record of a tree in the store; nil if it is not there.
func (s *Store) find(digest string) (*record, error) {
	if !digestForm.MatchString(digest) {
		return nil, fmt.Errorf("digest %q is not sha256:… with 64 hexadecimal digits", digest)
	}
	path := filepath.Join(s.keptPath(digest), recordName)
	var r record
	err := readJSON(path, &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && r.Digest != digest {
		err = fmt.Errorf("it is about %q", r.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("image store: %s is damaged (%w); remove %s and it is made again", path, err, filepath.Dir(path))
	}
	return &r, nil
}

// findOCI is find for an OCI image. It ignores one that was made in an earlier way, which keep replaces.
func (s *Store) findOCI(digest string) (*record, error) {
	r, err := s.find(digest)
	if err != nil || r == nil || r.Form < ociForm {
		return nil, err
	}
	return r, nil
}

func (s *Store) tree(digest string) *Tree {
	return &Tree{Digest: digest, Dir: filepath.Join(s.keptPath(digest), treeName), store: s}
}

func (s *Store) image(ref, from string, rec *record) *Image {
	return &Image{Tree: *s.tree(rec.Digest), Reference: ref, From: from, Config: rec.Config, Warnings: rec.Warnings}
}

// keep moves the tree in w.dir/root into the store, under its digest. If another process was quicker, its tree stays and ours goes
// with the workspace. A tree that was made in an earlier way goes instead.
func (s *Store) keep(w *workspace, r record) error {
	shelf := filepath.Join(w.dir, "kept")
	if err := os.Mkdir(shelf, 0o755); err != nil {
		return noSpace(err, s.root)
	}
	if err := os.Rename(filepath.Join(w.dir, treeName), filepath.Join(shelf, treeName)); err != nil {
		return err
	}
	r.Made = time.Now().UTC()
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(shelf, recordName), b, 0o600); err != nil {
		return noSpace(err, s.root)
	}
	// Write it to the disk before it gets its name: a tree in the store is then whole even after a power failure, and no write-back
	// disturbs the trials that follow.
	if err := syncFS(shelf); err != nil {
		return noSpace(err, s.root)
	}
	if old, err := s.find(r.Digest); err != nil {
		return err
	} else if old != nil && old.Form < r.Form {
		if err := os.Rename(s.keptPath(r.Digest), filepath.Join(w.dir, "old")); err != nil {
			return err
		}
	}
	err = os.Rename(shelf, s.keptPath(r.Digest))
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

func syncFS(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync of the file system of %s: %w", path, err)
	}
	return nil
}

// remember records the digest that a recipe or reference gave.
func (s *Store) remember(key, digest string) error {
	b, err := json.Marshal(entry{Key: key, Digest: digest, Time: time.Now().UTC()})
	if err != nil {
		return err
	}
	return noSpace(durable.WriteFile(filepath.Join(s.root, indexDir, hashName(key)+".json"), b, 0o600), s.root)
}

// recall returns what remember recorded and the tree's record; both nil if the store does not have it.
func (s *Store) recall(key string) (*entry, *record, error) {
	path := filepath.Join(s.root, indexDir, hashName(key)+".json")
	var e entry
	err := readJSON(path, &e)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.Key != key {
		return nil, nil, nil
	}
	if err == nil && !digestForm.MatchString(e.Digest) {
		err = fmt.Errorf("digest %q", e.Digest)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("image store: %s is damaged (%w); remove it", path, err)
	}
	r, err := s.find(e.Digest)
	if r == nil || err != nil {
		return nil, nil, err
	}
	return &e, r, nil
}

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return err
	}
	if len(b) > maxRecord {
		return fmt.Errorf("must be at most %d bytes long", maxRecord)
	}
	return json.Unmarshal(b, v)
}

// The limits of files (inodes) and space that Tare leaves on a file system, because others need them too.
const (
	reserveInodes = 10_000
	reserveShare  = 20 // a share of a small file system: one in this many
)

// room returns an error where the file system of path would not keep reserve bytes free after more bytes, or has few inodes left.
func room(path string, more, reserve int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", path, err)
	}
	// A file system that makes inodes when needed reports none.
	if least := min(reserveInodes, st.Files/reserveShare); st.Ffree < least {
		return fmt.Errorf("%w in %s: %d more files can be made there (inodes) and Tare leaves %d: remove some, or use a store on another file system",
			ErrNoSpace, path, st.Ffree, least)
	}
	have := int64(st.Bavail) * st.Bsize
	if have-more >= reserve {
		return nil
	}
	wanted := ""
	if more > 0 {
		wanted = fmt.Sprintf(", %d MiB are wanted,", more>>20)
	}
	return fmt.Errorf("%w in %s: %d MiB are free%s and Tare leaves %d MiB: free some, or use a store on another file system",
		ErrNoSpace, path, have>>20, wanted, reserve>>20)
}

// ErrNoSpace is in the chain of every error that means: the store's file system is full, or as full as Tare may make it.
var ErrNoSpace = errors.New("no space left for images")

// noSpace gives ENOSPC and EDQUOT an error that says what to do, and returns other errors unchanged.
func noSpace(err error, root string) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w in %s (%w): free some, or use a store on another file system", ErrNoSpace, root, err)
	}
	return err
}
