//go:build linux

package engine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/lab/proc"
)

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "study-1.2_x": true, "": false, ".": false, "..": false, "a/b": false, "-x": false, "a b": false,
		"ä": false, "a\n": false, strings.Repeat("a", 100): true, strings.Repeat("a", 101): false,
	} {
		if got := validID.MatchString(id); got != want {
			t.Errorf("validID of %q is %t, want %t", id, got, want)
		}
	}
}

// TestFolderTakesAllWithIt mounts in a guest's folder, one over the other and under a name with a blank, and starts processes for
// it. It also starts another process, which must survive.
func TestFolderTakesAllWithIt(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to mount")
	sleep, err := exec.LookPath("sleep")
	require.That(t, err == nil, "sleep")
	tailProgram, err := exec.LookPath("tail")
	require.That(t, err == nil, "tail")
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	c := journal.NewChanges(j, Undo())
	// The test declares tail as one of the guest's programs, and not sleep.
	folder, err := makeFolder(c, state, "guest", []string{tailProgram}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := makeFolder(journal.NewChanges(j, Undo()), state, "guest", nil, nil); err == nil {
		t.Errorf("makeFolder takes an existing folder for a new guest's: %s", again)
	}
	for _, dir := range []string{"a b", "a b/inner"} {
		path := filepath.Join(folder, dir)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64k"); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, err := Start(exec.Command(tailProgram, "-f", file), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer ours.End(ctx, 0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	named := exec.Command("sh", "-c", "read x", folder) // names the folder, and is none of the guest's programs
	named.Stdin = r
	stranger, err := Start(named, nil)
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.End(ctx, 0)
	other, err := Start(exec.Command(sleep, "1000"), []int{0})
	if err != nil {
		t.Fatal(err)
	}
	defer other.End(ctx, 0)

	if mounts, err := proc.MountsBelow(folder); err != nil || len(mounts) != 4 {
		t.Fatalf("MountsBelow: %q, %v; want 4", mounts, err)
	}
	if _, err := makeFolder(journal.NewChanges(j, Undo()), state, "guest", nil, nil); err == nil {
		t.Error("a second guest of the same name got the first one's folder")
	}
	if err := c.Undo(ctx); err != nil {
		t.Fatal(err)
	}
	if mounts, err := proc.MountsBelow(folder); err != nil || len(mounts) != 0 {
		t.Errorf("after Undo: mounts %q, %v", mounts, err)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Undo: folder %v", err)
	}
	select {
	case <-ours.Done():
	case <-time.After(time.Minute):
		t.Error("the guest's process lives on")
	}
	for _, p := range []*Process{stranger, other} {
		select {
		case <-p.Done():
			t.Errorf("a stranger was killed: %s", p.Ended())
		default:
		}
	}
	if err := c.Undo(ctx); err != nil {
		t.Errorf("a second Undo: %v", err)
	}
}

// Whatever a journal says, only a guest's folder below the state folder is removed: what would be is not looked at before.
func TestOnlyGuestsFoldersAreRemoved(t *testing.T) {
	state, elsewhere := t.TempDir(), t.TempDir()
	for _, target := range []string{
		elsewhere, "/", state, filepath.Join(state, "guests"), filepath.Join(state, "images"), filepath.Join(state, "guests", "a", "b"),
		filepath.Join(state, "guests") + "/../" + filepath.Base(state), filepath.Join(state, "guests") + "/..", filepath.Join(state, "guests", ".hidden"),
	} {
		e := journal.Entry{Kind: KindFolder, Target: target, Detail: map[string]string{"state": filepath.Dir(elsewhere)}, State: state}
		if err := removeFolder(t.Context(), e); err == nil || !strings.Contains(err.Error(), "is not a guest's folder") {
			t.Errorf("%s: %v", target, err)
		}
	}
	for _, dir := range []string{state, elsewhere} {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
	if err := OwnFolder(journal.Entry{State: state}, filepath.Join(state, "guests", "a")); err != nil {
		t.Error(err)
	}
	if err := OwnFolder(journal.Entry{}, "/guests/a"); err == nil {
		t.Error("an entry without a state folder has one")
	}
}

// A journal that cannot be written makes no guest: the record comes first.
func TestNoFolderWithoutItsRecord(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, whose folders they are")
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if folder, err := makeFolder(journal.NewChanges(j, Undo()), state, "guest", nil, nil); err == nil {
		t.Errorf("%s was made", folder)
	}
	if left, err := os.ReadDir(filepath.Join(state, "guests")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestStartSetsAffinityBeforeTheFirstInstruction(t *testing.T) {
	p, err := Start(exec.Command("sh", "-c", "grep Cpus_allowed_list /proc/self/status; exit 3"), []int{0})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Ended(); !strings.Contains(got, "Cpus_allowed_list:\t0") || !strings.Contains(got, "exit status 3") {
		t.Errorf("it ended: %q; want only CPU 0 and exit status 3", got)
	}
	if _, err := Start(exec.Command("true"), []int{1023}); err == nil {
		t.Error("a process was started on a CPU that the host has not")
	}
}

// What is killed when Tare ends is not killed before: the thread that started it lives as long as it.
func TestStartTiedLetsLive(t *testing.T) {
	p, err := StartTied(exec.Command("sh", "-c", "sleep 0.3; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Ended(); !strings.Contains(got, "exit status 3") {
		t.Errorf("it ended: %q; want exit status 3", got)
	}
	if _, err := StartTied(exec.Command("/nonexistent")); err == nil {
		t.Error("a program that is not there was started")
	}
}
