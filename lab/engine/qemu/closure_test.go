//go:build linux

package qemu

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
)

// What closure gathers is enough: the program runs in a root that holds nothing else.
func TestClosure(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to change the root")
	crun, err := exec.LookPath("crun")
	require.That(t, err == nil, "crun (apt-get install crun)")
	files, err := closure(t.Context(), crun, "usr/bin/crun")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, f.name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unshare, err := exec.LookPath("unshare")
	require.That(t, err == nil, "unshare (apt-get install util-linux)")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// crun reads /proc; mounts in a namespace of their own end with it.
	out, err := exec.CommandContext(ctx, unshare, "--mount", "--propagation", "private", "sh", "-c",
		`mkdir "$1/proc" && mount -t proc proc "$1/proc" && exec chroot "$1" /usr/bin/crun --version`, "sh", root).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "crun version") {
		t.Errorf("crun in a root of its own: %v: %s", err, out)
	}
	names := map[string]bool{}
	for _, f := range files {
		if names[f.name] {
			t.Errorf("%s is there twice", f.name)
		}
		names[f.name] = true
	}
}

func TestClosureErrors(t *testing.T) {
	if _, err := closure(t.Context(), "/etc/passwd", "x"); err == nil {
		t.Error("a file that is not a program has a closure")
	}
	crun, err := exec.LookPath("crun")
	require.That(t, err == nil, "crun (apt-get install crun)")
	text, err := os.ReadFile(crun)
	if err != nil {
		t.Fatal(err)
	}
	// A program that names a library which is not there.
	lacking := filepath.Join(t.TempDir(), "lacking")
	if err := os.WriteFile(lacking, bytes.Replace(text, []byte("libyajl.so.2"), []byte("libnone.so.2"), 1), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := closure(t.Context(), lacking, "x"); err == nil || !strings.Contains(err.Error(), "libnone.so.2") {
		t.Errorf("a library that is not there: %v, want its name", err)
	}
	if _, err := (&Driver{Crun: "/nonexistent/crun"}).runtime(t.Context()); err == nil {
		t.Error("a crun that is not there was accepted")
	}
}
