//go:build linux

package containerd

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What an ended container said is waited for while its shim has the file open, and no longer.
func TestWhatItSaid(t *testing.T) {
	dir := t.TempDir()
	if got := whatItSaid(t.Context(), dir, true); got != "" {
		t.Errorf("a container that never started: %q", got)
	}
	f, err := os.Create(filepath.Join(dir, said))
	if err != nil {
		t.Fatal(err)
	}
	if got := whatItSaid(t.Context(), dir, false); got != "" {
		t.Errorf("a living container that said nothing: %q", got)
	}
	if complete(f.Name()) {
		t.Skip("this file system grants leases for files that are open to write")
	}
	answer := make(chan string)
	go func() { answer <- whatItSaid(t.Context(), dir, true) }()
	select {
	case got := <-answer:
		t.Errorf("the shim has the file open, and the answer is %q already", got)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := f.WriteString("why\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got != "; it said: why" {
		t.Errorf("%q", got)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	start := time.Now()
	if got := whatItSaid(t.Context(), dir, true); got != "" || time.Since(start) >= shimTime {
		t.Errorf("a container that said nothing: %q after %v", got, time.Since(start))
	}
}
