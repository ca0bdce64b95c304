//go:build unix

package yamlfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Read refuses what is not a regular file, and what is too long. It neither waits for such a file nor reads all of it.
func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("whole.yaml"), []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("long.yaml"), make([]byte, MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", at("zero.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"whole.yaml": "", "long.yaml": "is longer than 1048576 bytes", "fifo.yaml": "is not a regular file", "zero.yaml": "is not a regular file",
		"folder.yaml": "is a directory", "none.yaml": "no such file",
	} {
		for which, read := range map[string]func() ([]byte, error){
			"a path":   func() ([]byte, error) { return Read(at(name)) },
			"a folder": func() ([]byte, error) { return ReadFS(os.DirFS(dir), name, MaxBytes) },
		} {
			done := make(chan error, 1)
			go func() { _, err := read(); done <- err }()
			select {
			case err := <-done:
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s of %s: %v, want %q", name, which, err, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("reading %s by %s did not return within a minute", name, which)
			}
		}
	}
}

// The decoder compares every key of a mapping with every other: 100,000 keys took 48 s.
func TestKeysAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: x\nparams:\n")
	for range 100_000 {
		text.WriteString("  k" + strings.Repeat("x", 2) + ": 1\n")
	}
	var v struct {
		Name   string
		Params map[string]int
	}
	began := time.Now()
	err := Decode("f.yaml", []byte(text.String()), &v)
	if want := "f.yaml:3: has 100000 keys here: at most 1000 are allowed"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to refuse it", took)
	}
}
