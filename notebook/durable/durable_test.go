//go:build unix

package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A file is replaced whole or stays as it was, and no other file is left in its folder.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("one"), 0o640); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o640 || read(t, path) != "one" {
		t.Errorf("%v, %v, %q", st.Mode(), err, read(t, path))
	}
	mine := errors.New("mine")
	if err := Replace(path, 0o600, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return mine }); !errors.Is(err, mine) {
		t.Errorf("an error of write becomes %v", err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || read(t, path) != "one" {
		t.Errorf("in the folder are %v, %v, and the file says %q", files, err, read(t, path))
	}
}

// An error names the file that was to be written, and not the one that it is written to first.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none", "f")
	full := func(w io.Writer) error {
		return fmt.Errorf("row 7: %w", &fs.PathError{Op: "write", Path: w.(*os.File).Name(), Err: syscall.ENOSPC})
	}
	other := func(io.Writer) error { return &fs.PathError{Op: "read", Path: "trials.jsonl", Err: syscall.EIO} }
	nothing := func(io.Writer) error { return nil }
	for _, c := range []struct {
		path  string
		write func(io.Writer) error
		want  string
	}{
		{none, nothing, "cannot write " + none + ": no such file or directory"},
		{folder, nothing, "cannot write " + folder + ": file exists"},
		{folder + "2", full, "cannot write " + folder + "2: no space left on device"},
		{folder + "2", other, "cannot write " + folder + "2: read trials.jsonl: input/output error"},
	} {
		if err := Replace(c.path, 0o600, c.write); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	gone := filepath.Join(dir, "gone")
	if err := CheckDir(gone); err == nil || err.Error() != "cannot write in "+gone+": no such file or directory" {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := CheckDir(dir); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*"+PartSuffix)); err != nil || left != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

func lines(t *testing.T, path string, longest int) (*Lines, error) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return NewLines(f, longest)
}

// What a kill left of a line is cut off, and the next one follows the last whole one.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l")
	l, err := lines(t, path, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("123456789")), l.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("1234567890")); err == nil {
		t.Error("a line that is too long is taken")
	}
	if err := os.WriteFile(path, []byte("one\ntwo\nthr"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = lines(t, path, 10); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("four")); err != nil || read(t, path) != "one\ntwo\nfour\n" {
		t.Errorf("%v, %q", err, read(t, path))
	}
	// Where the file cannot be written any more the error names it, and stays.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Append([]byte("five")); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), path) {
			t.Errorf("a closed file: %v", err)
		}
	}
	if err := os.WriteFile(path, []byte("x\n12345678901"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lines(t, path, 10); err == nil || read(t, path) != "x\n12345678901" {
		t.Errorf("a file with a last line that is too long: %v, and it says %q", err, read(t, path))
	}
}

func TestLocks(t *testing.T) {
	root := folder(t, t.TempDir())
	path := filepath.Join(root.Name(), "lock")
	f, err := Claim(root, "lock")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Claim(root, "lock")
	if held := (*HeldError)(nil); !errors.As(err, &held) || held.By != strconv.Itoa(os.Getpid()) {
		t.Errorf("a second claim: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a lock that is held: %v", err)
	}
	time.AfterFunc(lockPoll, func() { f.Close() })
	unlock, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	g, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if ours, err := TryLockNamed(g); ours || err != nil {
		t.Errorf("the lock of a file that was removed: %v, %v", ours, err)
	}
}

// recorder is a file that says what was asked of it, and whose Sync can fail.
type recorder struct {
	*os.File
	did    []string
	broken error
}

func (r *recorder) WriteAt(b []byte, at int64) (int, error) {
	r.did = append(r.did, "write "+strings.TrimSpace(string(b)))
	return r.File.WriteAt(b, at)
}

func (r *recorder) Sync() error {
	r.did = append(r.did, "sync")
	return errors.Join(r.broken, r.File.Sync())
}

// A line is on the disk when Append returns, and what could not be brought there is taken back.
func TestLinesAreSynced(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "l"))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{File: f}
	l, err := NewLines(r, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("one"), []byte("two")); err != nil || !slices.Equal(r.did, []string{"write one\ntwo", "sync"}) {
		t.Errorf("Append did %q, %v", r.did, err)
	}
	r.broken = syscall.EIO
	if err := l.Append([]byte("three")); !errors.Is(err, syscall.EIO) || read(t, f.Name()) != "one\ntwo\n" {
		t.Errorf("a line that did not reach the disk: %v, and the file holds %q", err, read(t, f.Name()))
	}
}
