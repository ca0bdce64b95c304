package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/notebook/durable"
)

func TestDebianRecipe(t *testing.T) {
	s := newStore(t)
	for _, r := range []Recipe{
		{}, {Suite: "--help"}, {Suite: "a b"}, {Suite: "trixie", Packages: []string{"--aptopt=x"}}, {Suite: "trixie", Packages: []string{"a,b"}},
		{Suite: "trixie", Packages: []string{""}}, {Suite: "trixie", Packages: []string{"a b"}}, {Suite: "../x"},
	} {
		if _, err := s.Debian(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "is not the name of a Debian") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	a, err := Recipe{Suite: "trixie", Packages: []string{"bb", "aa", "bb"}}.key()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := (Recipe{Suite: "trixie", Packages: []string{"aa", "bb"}}).key(); err != nil || a != b {
		t.Errorf("the order of packages matters: %s, %s, %v", a, b, err)
	}
	if b, err := (Recipe{Suite: "bookworm", Packages: []string{"aa", "bb"}}).key(); err != nil || a == b {
		t.Errorf("the suite does not matter: %s, %v", b, err)
	}
}

// fakeTool puts a script in the place of mmdebstrap.
func fakeTool(t *testing.T, script string) {
	t.Helper()
	d := t.TempDir()
	if err := os.WriteFile(filepath.Join(d, "mmdebstrap"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", d+":"+os.Getenv("PATH"))
}

func TestDebianFails(t *testing.T) {
	s := newStore(t)
	half := filepath.Join(t.TempDir(), "half.tar")
	if err := os.WriteFile(half, archiveOf(t, file("f", strings.Repeat("x", 5000)))[:3000], 0o644); err != nil {
		t.Fatal(err)
	}
	evil := filepath.Join(t.TempDir(), "evil.tar")
	if err := os.WriteFile(evil, archiveOf(t, file("../f", strings.Repeat("x", 5000))), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ script, want string }{
		{"echo 'I: working' >&2; echo 'E: no such suite' >&2; exit 7", "mmdebstrap failed: exit status 7; its last words: I: working | E: no such suite"},
		{"cat " + half + "; echo 'E: disk on fire' >&2; exit 3", "exit status 3; its last words: E: disk on fire"},
		{"cat " + half + "; exit 0", "unexpected EOF"},
		{"cat " + evil + "; exec cat /dev/zero", "archive refused"},
		{"exit 0", "the archive is empty"},
	} {
		fakeTool(t, tt.script)
		if _, err := s.Debian(t.Context(), Recipe{Suite: "trixie"}, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.script, err, tt.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := s.Debian(t.Context(), Recipe{Suite: "trixie"}, nil); err == nil || !strings.Contains(err.Error(), "apt-get install mmdebstrap") {
		t.Errorf("without mmdebstrap: %v", err)
	}
}

// Whatever a build started ends with it, also what left its process group, and no mount of it is left.
func TestDebianCancelled(t *testing.T) {
	s := newStore(t)
	require.That(t, hasTool("setsid") && hasTool("mount"), "setsid and mount (Debian packages util-linux and mount)")
	pids := filepath.Join(t.TempDir(), "mark")
	// The stray process holds a lock as long as it lives.
	fakeTool(t, "mount -t tmpfs none \"$TMPDIR\" || exit 1; touch \"$TMPDIR/x\"; setsid flock "+pids+" sh -c 'echo locked > "+pids+"; exec sleep 300' & echo 'I: busy' >&2; wait")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("enough")
	deadline := time.Now().Add(time.Minute)
	go func() {
		// Nothing tells when the stray process has its lock; its file is looked at until it says so.
		for time.Now().Before(deadline) {
			if b, err := os.ReadFile(pids); err == nil && len(b) > 0 {
				cancel(why)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel(errors.New("the stray process never started"))
	}()
	start := time.Now()
	if _, err := s.Debian(ctx, Recipe{Suite: "trixie"}, nil); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if d := time.Since(start); d > killWait {
		t.Errorf("took %v", d)
	}
	unlockCtx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	unlock, err := durable.Lock(unlockCtx, pids)
	if err != nil {
		t.Fatalf("the stray process lives: %v", err)
	}
	unlock()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), s.root) {
		t.Errorf("a mount is left:\n%s", mounts)
	}
}

func hasTool(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// One real root, from real packages.
func TestDebian(t *testing.T) {
	s := newStore(t)
	require.That(t, hasTool("mmdebstrap"), "mmdebstrap (Debian package mmdebstrap)")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r := Recipe{Suite: "trixie", Packages: []string{"busybox-static"}}
	var said []string
	img, err := s.Debian(ctx, r, func(w string) { said = append(said, w) })
	if err != nil {
		t.Fatal(err)
	}
	if len(said) == 0 || len(img.Warnings) != 0 {
		t.Errorf("said %q, warned %q", said, img.Warnings)
	}
	out, err := exec.CommandContext(ctx, "chroot", img.Dir, "/bin/busybox", "sh", "-c", "cat /etc/debian_version && ls -d /.tare/scratch").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "13") || !strings.Contains(string(out), "/.tare/scratch") {
		t.Errorf("in the root: %v, %s", err, out)
	}
	if docs, err := filepath.Glob(filepath.Join(img.Dir, "usr/share/doc/*/copyright")); err != nil || len(docs) == 0 {
		t.Errorf("no licences: %v", err)
	}
	for _, pattern := range []string{"usr/share/man/*/*", "usr/share/locale/[^l]*", "usr/share/doc/*/changelog*"} {
		if left, err := filepath.Glob(filepath.Join(img.Dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("%s: %q, %v", pattern, left, err)
		}
	}
	again, err := s.Debian(ctx, r, func(w string) { t.Errorf("the second time it said %q, where nothing was to be made", w) })
	if err != nil || again.Digest != img.Digest {
		t.Errorf("the second time: %v, %v", again, err)
	}
}
