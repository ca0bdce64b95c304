//go:build linux

package qemu

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/lab/engine/conformance"
)

// What closure gathers is enough: the program runs in a root that holds nothing else.
func TestClosure(t *testing.T) {
	conformance.Need(t, os.Geteuid() == 0, "root, to change the root")
	crun, err := exec.LookPath("crun")
	conformance.Need(t, err == nil, "crun (apt-get install crun)")
	files, err := closure(crun, "usr/bin/crun")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range files {
		data, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unshare, err := exec.LookPath("unshare")
	conformance.Need(t, err == nil, "unshare (apt-get install util-linux)")
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
		if names[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		names[f.Name] = true
	}
}

func TestClosureErrors(t *testing.T) {
	if _, err := closure("/etc/passwd", "x"); err == nil {
		t.Error("a file that is no program has a closure")
	}
	if _, err := find("libof-nothing.so.9", []string{"/lib", "/usr/lib"}, 2, 62); err == nil || !strings.Contains(err.Error(), "/usr/lib") {
		t.Errorf("a library that is not there: %v, want where it was looked for", err)
	}
	if _, err := (&Driver{Crun: "/nonexistent/crun"}).runtime(); err == nil {
		t.Error("a crun that is not there was accepted")
	}
}

func TestConfiguredDirs(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"ld.so.conf": "# comment\ninclude more/*.conf\n/opt/last # here\n", "more/a.conf": "/opt/a\n\n", "more/b.conf": "/opt/b\n",
		"ring.conf": "include ring.conf\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := configuredDirs(filepath.Join(dir, "ld.so.conf"), 0)
	if want := []string{"/opt/a", "/opt/b", "/opt/last"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := configuredDirs(filepath.Join(dir, "ring.conf"), 0); err == nil {
		t.Error("a file that includes itself was read")
	}
	if got, err := configuredDirs(filepath.Join(dir, "absent"), 0); err != nil || got != nil {
		t.Errorf("no configuration: %v, %v; want none", got, err)
	}
}
