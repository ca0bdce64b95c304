//go:build linux

package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything in a guest can read the workload's files, so Tare does not follow links that leave the workload's folder.
func TestLinksOutOfAWorkloadsFolder(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	folder := filepath.Join(dir, "wl")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write(secret, "root:x")
	write(filepath.Join(folder, "here.txt"), "mine")
	write(filepath.Join(folder, File), "name: wl\ntitle: a title\nimage: {suite: trixie, packages: [coreutils]}\ncommand: [cat, data.txt, inside.txt]\nfiles: [data.txt, inside.txt]\nmetric: {name: time, unit: s}\n")
	for link, target := range map[string]string{"data.txt": secret, "inside.txt": "here.txt"} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := ReadFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := w.file("data.txt"); err == nil || !strings.Contains(err.Error(), "data.txt is a link to something outside the workload's folder (") || !strings.HasSuffix(err.Error(), ": put the file itself there") {
		t.Errorf("a link out of the folder: %q, %v", text, err)
	}
	if text, err := w.file("inside.txt"); err != nil || string(text) != "mine" {
		t.Errorf("a link within the folder: %q, %v", text, err)
	}
}
