//go:build linux

package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/ruler"
)

// diskSize is the size of a Disk; the file behind it is sparse.
const diskSize = 4 << 30

// Disk is a folder, for the length of the test, on a block device of its own: only the test flushes it. Its path is short, because
// Podman needs that.
func Disk(t *testing.T) string {
	t.Helper()
	require.Root(t)
	require.Program(t, "mount", "mke2fs")
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "d")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, diskSize); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mke2fs", "-q", "-F", "-t", "ext4", file).CombinedOutput(); err != nil {
		t.Fatalf("mke2fs: %v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", file, folder).CombinedOutput()
	require.That(t, err == nil, fmt.Sprintf("a file system in a file (mount -o loop: %v: %s)", err, out))
	t.Cleanup(func() {
		// What is mounted below it belongs to an engine that has ended.
		if err := journal.Unmount(context.Background(), folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// flushes is the number of finished flushes of the block device of a folder's file system (the kernel's
// Documentation/block/stat.rst).
func flushes(t *testing.T, folder string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	require.That(t, len(fields) > 15, "a kernel that counts flushes (Linux 5.5)")
	n, err := strconv.ParseInt(fields[15], 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return n
}

// synced is how often the suite syncs what it has written.
const synced = 50

// durable checks that what a guest syncs is on the host's disk: every fsync and fdatasync in it, of new and of overwritten blocks,
// is a flush of the disk that the host counts.
func (r *suite) durable(t *testing.T) {
	r.keeps(t, engine.NoFlush)
	disk := r.s.Disk
	if disk == "" {
		disk = Disk(t)
		r = prepare(t, r.s, r.e, newLab(t, filepath.Join(disk, "state")))
	}
	s := r.spec(t, r.e.Provisionings[0], 1)
	before := r.snapshot(t)
	g := r.provision(t, s)
	own, counts := g.(interface { // its own statistics, if it has its own disk
		Flushes(context.Context) (int64, error)
	})
	count := func() (host, guest int64) {
		t.Helper()
		if counts {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			var err error
			if guest, err = own.Flushes(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return flushes(t, disk), guest
	}
	for _, how := range []string{"fsync", "fdatasync", "write"} {
		hostBefore, guestBefore := count()
		res := r.order(t, g, ruler.Order{
			Argv: []string{"/bin/probe", fmt.Sprintf("%s-%d", how, synced), "durable"}, Timeout: r.e.patience(30 * time.Second), KeepScratch: true,
		})
		if res.Exit != 0 || res.Signal != "" {
			t.Fatalf("%s: exit %d %s: %s", how, res.Exit, res.Signal, res.Stderr)
		}
		host, guest := count()
		host, guest = host-hostBefore, guest-guestBefore
		t.Logf("%s, %d times in the guest: the host's disk was flushed %d times; the guest's own: %d", how, synced, host, guest)
		switch {
		case how == "write" && host >= synced:
			t.Error("the host's disk is flushed without a request")
		case how != "write" && host < synced:
			t.Errorf("%s, %d times in the guest: the host's disk was flushed %d times", how, synced, host)
		case how != "write" && counts && guest < synced:
			t.Errorf("%s, %d times in the guest: its own disk was flushed %d times", how, synced, guest)
		}
	}
	r.end(t, before, g, s)
}
