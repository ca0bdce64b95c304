package notebook

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tare/internal/require"
)

// A full disk costs the record under way, with an error that says so, and nothing before it; with space again the same
// folder goes on.
func TestNoSpaceLeft(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to mount a small tmpfs")
	disk := t.TempDir()
	if err := syscall.Mount("tare-test", disk, "tmpfs", 0, "size=128k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(disk, "R")
	w, err := Create(dir, someStudy(), someHost())
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for ; whole < 1000; whole++ {
		if err = w.Trial(someTrial(whole)); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space is left") || !strings.Contains(err.Error(), trialsFile) {
		t.Fatalf("after %d trials: %v", whole, err)
	}
	if all, err := readTrials(dir); err != nil || len(all) != whole {
		t.Fatalf("%d trials read, %v; want %d", len(all), err, whole)
	}
	// A Create on a full disk leaves nothing that Open would take for a study.
	if _, err := Create(filepath.Join(disk, "S"), someStudy(), someHost()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Create on a full disk: %v", err)
	}
	if _, err := Open(filepath.Join(disk, "S")); err == nil {
		t.Error("what it left was opened")
	}
	if err := syscall.Mount("tare-test", disk, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Trial(someTrial(whole)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if all, err := readTrials(dir); err != nil || len(all) != whole+1 {
		t.Fatalf("%d trials read, %v; want %d", len(all), err, whole+1)
	}
}

func TestOneWriter(t *testing.T) {
	dir := written(t, 1)
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "is being written by process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second writer: %v", err)
	}
	if _, err := Create(dir, someStudy(), someHost()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second Create: %v", err)
	}
	if _, err := Read(dir); err != nil {
		t.Errorf("reading during a write: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, err = Open(dir)
	if err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Root neither begins a study nor goes on with one where somebody else decides what the names in the folder are, and follows no
// link that is in it. What was behind a link is as it was, and nothing is made in the folder.
func TestHostileFolders(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to give files away")
	const nobody = 65534
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious\ntorn"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", what, err, want)
		}
		if now, err := os.ReadFile(victim); err != nil || string(now) != "precious\ntorn" {
			t.Errorf("%s: the victim holds %q, %v", what, now, err)
		}
	}
	theirs := t.TempDir()
	if err := errors.Join(os.Symlink(victim, filepath.Join(theirs, lockFile)), os.Chown(theirs, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	_, err := Create(theirs, someStudy(), someHost())
	refused("a new study in somebody's folder", err, "belongs to user 65534")
	refused("before it is begun", Admits(theirs, "quick"), "belongs to user 65534")
	if err := os.Chown(theirs, 0, 0); err != nil { // as a tar that root unpacked
		t.Fatal(err)
	}
	_, err = Create(theirs, someStudy(), someHost())
	refused("a new study next to a lock that is a link", err, "lock is not a regular file")
	if names, err := os.ReadDir(theirs); err != nil || len(names) != 1 {
		t.Errorf("in the refused folder are %v, %v", names, err)
	}
	for _, name := range []string{lockFile, guestsFile, trialsFile, sessionsFile} {
		dir := written(t, 0)
		at := filepath.Join(dir, name)
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(victim, at); err != nil {
			t.Fatal(err)
		}
		w, err := Open(dir)
		if err == nil {
			w.Close()
		}
		refused(name+" is a link", err, "")
	}
	dir := written(t, 1)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	refused("a folder for all to write", err, "can be written by others")
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err != nil {
		t.Errorf("reading somebody else's folder: %v", err)
	}
}

// A FIFO in a folder, which a tar can hold, is refused at once by whoever reads the folder or goes on with it.
func TestAFIFOIsNotWaitedFor(t *testing.T) {
	for _, name := range []string{studyFile, hostFile, guestsFile, trialsFile, sessionsFile} {
		dir := written(t, 1)
		at := filepath.Join(dir, name)
		if err := errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, reading := Read(dir)
		w, writing := Open(dir)
		if writing == nil {
			w.Close()
		}
		for what, err := range map[string]error{"reading": reading, "going on": writing} {
			if err == nil || !strings.Contains(err.Error(), name+" is not a regular file") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, where %s is a FIFO: %v", what, name, err)
			}
		}
	}
}
