//go:build linux

package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/require"
)

// One tare at a time measures on a host, whatever their state folders.
func TestOneLockForAHost(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, whose folders they are")
	t.Setenv(testLock, filepath.Join(t.TempDir(), "host.lock"))
	first, err := takeHost(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("another tare (PID %d) is measuring on this host; wait for it or stop it", os.Getpid())
	if _, err := takeHost(filepath.Join(t.TempDir(), "b")); err == nil || err.Error() != want {
		t.Errorf("with another state folder: %v, want %s", err, want)
	}
	if err := release(first); err != nil {
		t.Fatal(err)
	}
	// And one at a time uses a state folder, whatever lock the host's is.
	state := filepath.Join(t.TempDir(), "c")
	if first, err = takeHost(state); err != nil {
		t.Fatal(err)
	}
	t.Setenv(testLock, filepath.Join(t.TempDir(), "other.lock"))
	if _, err := takeHost(state); err == nil || err.Error() != want {
		t.Errorf("with the same state folder: %v", err)
	}
	if err := release(first); err != nil {
		t.Fatal(err)
	}
}

// A state folder that somebody else could have filled is refused before anything in it is read or made.
func TestStateFoldersThatCannotBeTrusted(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to give files away")
	t.Setenv(testLock, filepath.Join(t.TempDir(), "host.lock"))
	const nobody = 65534
	for name, c := range map[string]struct {
		make func(state string) error
		want string
	}{
		"somebody's":       {func(s string) error { return os.Chown(s, nobody, nobody) }, "belongs to user 65534"},
		"for all to write": {func(s string) error { return os.Chmod(s, 0o777|os.ModeSticky) }, "can be written by others"},
		"somebody's journal": {func(s string) error {
			return errors.Join(os.Mkdir(s+"/journal", 0o700), os.Chown(s+"/journal", nobody, 0))
		}, "journal belongs to user 65534"},
		"programs for a group": {func(s string) error {
			return errors.Join(os.Mkdir(s+"/programs", 0o700), os.Chmod(s+"/programs", 0o775))
		}, "programs can be written by others"},
		"a lock that is a link": {func(s string) error { return os.Symlink("/dev/null", s+"/lock") }, "lock"},
	} {
		state := t.TempDir()
		if err := c.make(state); err != nil {
			t.Fatal(err)
		}
		locks, err := takeHost(state)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, c.want)
		}
		if err := release(locks); err != nil {
			t.Error(err)
		}
		if all, err := os.ReadDir(state); err != nil || len(all) > 1 {
			t.Errorf("%s: in it are %v, %v", name, all, err)
		}
	}
	for path, want := range map[string]string{"state": "must be an absolute path", "/x/st\xffx": "must be valid UTF-8"} {
		t.Setenv("TARE_STATE", path)
		if dir, err := stateDir(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\xff") {
			t.Errorf("TARE_STATE=%q: %q, %v; want %q", path, dir, err, want)
		}
	}
}
