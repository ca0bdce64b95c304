//go:build linux

package pagecache

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"tare/lab/proc"
)

func TestWaiting(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal: 1 kB\nDirty:   20 kB\nWriteback:   4 kB\nWritebackTmp: 9 kB\n": 24 << 10,
		"Dirty: 20 kB\n":                    -1,
		"Dirty: many kB\nWriteback: 0 kB\n": -1,
		"":                                  -1,
	} {
		n, err := waiting(proc.Tree{FS: fstest.MapFS{"proc/meminfo": {Data: []byte(text)}}})
		if want < 0 && err == nil || want >= 0 && (n != want || err != nil) {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
}

// The host settles after a large write, and nobody waits once the run has ended.
func TestSettle(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 2*unwritten)); err != nil {
		t.Fatal(err)
	}
	if settled, err := Settle(t.Context()); err != nil || !settled {
		t.Fatalf("settled: %v, %v", settled, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Settle(ended); err != nil { // it does not wait, and that is not a failure
		t.Error(err)
	}
}
