package engine

import (
	"testing"

	"tare/lab/journal"
)

// A journal's entry has engines forget only images from Tare's own registry.
func TestOwnImage(t *testing.T) {
	for target, own := range map[string]bool{
		"127.0.0.1:41234/tare/root:gzip-8-0123456789ab": true,
		"127.0.0.1:41234/tare/root":                     false,
		"127.0.0.1:41234/tare/root:a/../../x":           false,
		"127.0.0.1:41234/other/root:gzip-8-0123":        false,
		"10.0.0.1:5000/tare/root:gzip-8-0123":           false,
		"postgres:16":                                   false,
		"":                                              false,
	} {
		if err := OwnImage(journal.Entry{Target: target}); (err == nil) != own {
			t.Errorf("%q: %v, want own %v", target, err, own)
		}
	}
}
