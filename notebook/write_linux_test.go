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
		t.Errorf("reading beside a writer: %v", err)
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
