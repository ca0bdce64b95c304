package engine

import (
	"strings"
	"testing"

	"tare/lab/journal"
)

// A journal's entry has engines forget only images from Tare's own registry.
func TestOwnImage(t *testing.T) {
	for target, own := range map[string]bool{
		"127.0.0.1:41234/tare/root@sha256:" + strings.Repeat("0a", 32):  true,
		"127.0.0.1:41234/tare/root":                                     false,
		"127.0.0.1:41234/tare/root@sha256:../../x":                      false,
		"127.0.0.1:41234/other/root@sha256:" + strings.Repeat("0a", 32): false,
		"10.0.0.1:5000/tare/root@sha256:" + strings.Repeat("0a", 32):    false,
		"postgres:16": false,
		"":            false,
	} {
		if err := OwnImage(journal.Entry{Target: target}); (err == nil) != own {
			t.Errorf("%q: %v, want own %v", target, err, own)
		}
	}
}
