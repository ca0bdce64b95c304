//go:build unix

package durable

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/require"
)

func folder(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// victim is a file that nothing may change, and a check that nothing did.
func victim(t *testing.T) (path string, untouched func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(path, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		t.Helper()
		if got := read(t, path); got != "precious\n" {
			t.Errorf("the victim now holds %q", got)
		}
	}
}

// No lock and no file is opened through a link, by a second name, or where there is no regular file; none of these is changed.
func TestOnlyRegularFilesOfTheFolder(t *testing.T) {
	path, untouched := victim(t)
	absent := filepath.Join(t.TempDir(), "absent")
	for name, c := range map[string]struct {
		make func(at string) error
		want string
	}{
		"a link":          {func(at string) error { return os.Symlink(path, at) }, "not a regular file"},
		"a link to none":  {func(at string) error { return os.Symlink(absent, at) }, "not a regular file"},
		"a link within":   {func(at string) error { return os.Symlink("other", at) }, "not a regular file"},
		"a second name":   {func(at string) error { return os.Link(path, at) }, "has 2 names"},
		"a FIFO":          {func(at string) error { return syscall.Mkfifo(at, 0o644) }, "not a regular file"},
		"a folder":        {func(at string) error { return os.Mkdir(at, 0o755) }, "not a regular file"},
		"somebody's text": {func(at string) error { return os.WriteFile(at, []byte("root:x:0:0\n"), 0o644) }, "does not hold a process ID"},
		"a longer number": {func(at string) error { return os.WriteFile(at, []byte(strings.Repeat("7", 40)), 0o644) }, "does not hold a process ID"},
	} {
		root := folder(t, t.TempDir())
		if err := c.make(filepath.Join(root.Name(), "lock")); err != nil {
			t.Fatal(err)
		}
		if _, err := Claim(root, "lock"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as a lock: %v, want %q", name, err, c.want)
		}
		if info, err := os.Lstat(filepath.Join(root.Name(), "lock")); err == nil && info.Mode().IsRegular() && info.Size() < 9 {
			t.Errorf("%s was cut to %d bytes", name, info.Size())
		}
		untouched()
	}
	if _, err := os.Lstat(absent); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made behind a link: %v", err)
	}
}

// What an earlier process left in its lock is replaced.
func TestAnOldLockIsTaken(t *testing.T) {
	for _, held := range []string{"", "4711\n", "4711", "\x00\x00\x00\x00\x00"} {
		root := folder(t, t.TempDir())
		if err := os.WriteFile(filepath.Join(root.Name(), "lock"), []byte(held), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Claim(root, "lock")
		if err != nil {
			t.Fatalf("%q: %v", held, err)
		}
		f.Close()
	}
}

// A process that was killed may leave its lock for a moment to a child that it had just forked. Claim waits for that, and not for a
// process that lives.
func TestTheLockOfADeadProcess(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{dead.Process.Pid: true, os.Getpid(): false} {
		root := folder(t, t.TempDir())
		path := filepath.Join(root.Name(), "lock")
		if err := os.WriteFile(path, []byte(strconv.Itoa(pid)), 0o644); err != nil {
			t.Fatal(err)
		}
		child, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if locked, err := TryLock(child); !locked || err != nil {
			t.Fatal(locked, err)
		}
		time.AfterFunc(4*lockPoll, func() { child.Close() })
		f, err := Claim(root, "lock")
		if held := (*HeldError)(nil); (err == nil) != want || err != nil && !errors.As(err, &held) {
			t.Errorf("the lock of process %d: %v", pid, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

// Root writes only into what is its own; others are left to the kernel.
func TestOwnFolders(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to give files away")
	const nobody = 65534
	theirs := func(mode os.FileMode, owner int) func(string) error {
		return func(at string) error {
			return errors.Join(os.Mkdir(at, 0o755), os.Chmod(at, mode), os.Chown(at, owner, owner))
		}
	}
	link := func(owner int) func(string) error {
		return func(at string) error {
			return errors.Join(os.Mkdir(at+".target", 0o755), os.Symlink(at+".target", at), os.Lchown(at, owner, owner))
		}
	}
	for name, c := range map[string]struct {
		make func(at string) error
		want string
	}{
		"own":                 {theirs(0o755, 0), ""},
		"own, private":        {theirs(0o700, 0), ""},
		"somebody else's":     {theirs(0o755, nobody), "belongs to user 65534"},
		"for all to write":    {theirs(0o777|os.ModeSticky, 0), "can be written by others"},
		"for a group":         {theirs(0o775, 0), "can be written by others"},
		"own link":            {link(0), ""},
		"somebody's link":     {link(nobody), "is a link of user 65534"},
		"a link of another's": {func(at string) error { return errors.Join(theirs(0o755, nobody)(at+".t"), os.Symlink(at+".t", at)) }, "belongs to user 65534"},
	} {
		at := filepath.Join(t.TempDir(), "R")
		if err := c.make(at); err != nil {
			t.Fatal(err)
		}
		err := CheckFolder(at + "/")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if root, err := openFolder(at, 1000); err != nil {
			t.Errorf("%s, for a user who is not root: %v", name, err)
		} else {
			root.Close()
		}
	}
}

// A folder in a folder is not a link, and has the same owner.
func TestFoldersInFolders(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to give files away")
	root, elsewhere := folder(t, t.TempDir()), t.TempDir()
	for range 2 {
		in, err := MakeFolderIn(root, "figures", 0o755)
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
	}
	at := func(name string) string { return filepath.Join(root.Name(), name) }
	if err := errors.Join(os.Symlink(elsewhere, at("out")), os.Symlink("figures", at("in")), os.Mkdir(at("theirs"), 0o755), os.Chown(at("theirs"), 65534, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const link = " is a link, and Tare writes nothing through links: remove the link"
	for name, want := range map[string]string{"out": link, "in": link, "theirs": "belongs to user 65534", "file": " is a file, and Tare needs a folder of this name"} {
		if in, err := MakeFolderIn(root, name, 0o755); err == nil {
			t.Errorf("%s was opened", in.Name())
		} else if said := err.Error(); !strings.HasPrefix(said, at(name)) || !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %q", name, said, want)
		}
	}
}
