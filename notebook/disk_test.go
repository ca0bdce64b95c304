package notebook

import (
	"strings"
	"testing"
)

// A disk is written in the words that differ from the usual one's, and read back.
func TestParseDisk(t *testing.T) {
	for text, want := range map[string]Disk{
		"":                    UsualDisk,
		"usual":               UsualDisk,
		"writeback threads":   UsualDisk,
		"none":                {"qcow2", CacheNone, AIOThreads, true},
		"none native":         {"qcow2", CacheNone, AIONative, true},
		"io_uring directsync": {"qcow2", CacheDirectSync, AIOURing, true},
		"io_uring":            {"qcow2", CacheWriteback, AIOURing, true},
		"no-iothread  none":   {"qcow2", CacheNone, AIOThreads, false},
	} {
		d, err := ParseDisk(text)
		if err != nil || d != want {
			t.Errorf("%q: %+v, %v; want %+v", text, d, err, want)
		}
		if again, err := ParseDisk(d.Text()); err != nil || again != d {
			t.Errorf("%q, written as %q: %+v, %v", text, d.Text(), again, err)
		}
	}
	if text := UsualDisk.Text(); text != "" {
		t.Errorf("the usual disk is written %q, want nothing", text)
	}
	for text, want := range map[string]string{
		"native":           "cache mode none or directsync was expected",
		"writeback native": "cache mode none or directsync was expected",
		"unsafe":           `unknown word "unsafe"`,
		"none directsync":  "cache mode stands there twice",
		"none usual":       `unknown word "usual"`,
	} {
		if d, err := ParseDisk(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, d, err, want)
		}
	}
}
