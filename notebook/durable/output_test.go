//go:build unix

package durable

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What a user names for output stays what it is: a pipe and a device are written to, a symbolic link's target is replaced.
func TestOutputKeepsWhatIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, err := os.ReadFile(pipe)
		if err != nil {
			t.Error(err)
		}
		read <- string(text)
	}()
	if err := Output(pipe, 0o644, write); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "text" {
		t.Errorf("the pipe's reader got %q", got)
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for name, to := range map[string]string{link: "file", filepath.Join(dir, "null"): os.DevNull} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, filepath.Join(dir, "null")} {
		if err := Output(name, 0o644, write); err != nil {
			t.Error(err)
		}
		if is, err := os.Lstat(name); err != nil || is.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s was replaced: %v, %v", name, is, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("the link's target has %q, %v", text, err)
	}
	if is, err := os.Stat(os.DevNull); err != nil || is.Mode()&os.ModeDevice == 0 {
		t.Fatalf("%s: %v, %v", os.DevNull, is, err)
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "dangling"), dir} {
		if err := Output(name, 0o644, write); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}
