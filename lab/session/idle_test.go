//go:build linux

package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tare/notebook"
)

// A measurement answers for as many guests, of the same engines, under the same kernel, for some months.
func TestWhatAnIdleCostCovers(t *testing.T) {
	now := time.Now()
	known := notebook.IdleCost{Time: now.Add(-time.Hour), Kernel: "6.1", Engines: []string{"bm", "cn docker"}, Guests: 4, Ratio: 1}
	wanted := notebook.IdleCost{Kernel: "6.1", Engines: []string{"bm", "cn docker"}, Guests: 4}
	if !covers(&known, wanted, now) || covers(nil, wanted, now) {
		t.Error("the same question: the record answers it, and none does not")
	}
	for what, change := range map[string]func(*notebook.IdleCost){
		"another kernel":  func(c *notebook.IdleCost) { c.Kernel = "6.2" },
		"another engine":  func(c *notebook.IdleCost) { c.Engines = []string{"cn crun"} },
		"more guests":     func(c *notebook.IdleCost) { c.Guests = 5 },
		"long afterwards": func(*notebook.IdleCost) { known.Time = now.Add(-idleAge) },
	} {
		other := wanted
		was := known
		change(&other)
		if covers(&known, other, now) {
			t.Errorf("%s: the record counts", what)
		}
		known = was
	}
}

// A missing or unreadable record is not an error: the host is measured again.
func TestReadIdle(t *testing.T) {
	for text, want := range map[string]bool{"": false, "{": false, `{"kernel":"6.1","guests":3}`: true} {
		file := filepath.Join(t.TempDir(), idleFile)
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c, err := readIdle(file); err != nil || (c != nil) != want {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}
