//go:build linux

package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/replay"
	"tare/notebook"
)

// A load's scratch folder is not trusted: what is not a regular file there is not read.
func TestWhatALoadLeaves(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("monotonic\n1 2 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		make func(path string) error
		want string // of the error
		n    int
	}{
		{"nothing", func(string) error { return nil }, "", 0},
		{"a record", func(path string) error { return os.WriteFile(path, []byte("realtime\n1 2 3\n2 3 4\n"), 0o600) }, "", 2},
		{"something else", func(path string) error { return os.WriteFile(path, []byte("ok\n"), 0o600) }, "must be realtime or monotonic", 0},
		{"a link out of it", func(path string) error { return os.Symlink(outside, path) }, "escapes", 0},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file", 0},
		{"a pipe", func(path string) error { return unix.Mkfifo(path, 0o600) }, "not a regular file", 0},
	} {
		r := &requests{record: filepath.Join(t.TempDir(), "requests"), ahead: leads()}
		if err := c.make(r.record); err != nil {
			t.Fatal(err)
		}
		all, err := r.recorded()
		if len(all) != c.n || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %d operations and %q", c.name, all, err, c.n, c.want)
		}
		if c.n > 0 {
			r.ahead += time.Hour
			if all, err := r.recorded(); all != nil || err == nil || !strings.Contains(err.Error(), "the realtime clock was set") {
				t.Errorf("after the clock was set: %v, %v", all, err)
			}
		}
	}
}

// What keeps the requests from being divided is said.
func TestRequestsThatCannotBeDivided(t *testing.T) {
	p := &notebook.Trace{}
	if why := (&requests{}).divide(p); !why.Equal(notebook.Say("no-requests-seen")) || p.Requests != nil {
		t.Errorf("without any: %v, %+v", why, p.Requests)
	}
	var events []replay.Event
	for i := range 10 { // a timer's
		at := time.Duration(i) * 100 * time.Millisecond
		events = append(events, replay.Event{At: at, Kind: replay.Wakes, Thread: 1}, replay.Event{At: at, Kind: replay.Enters, Thread: 1, State: replay.Waits, Wait: notebook.WallSleep},
			replay.Event{At: at + time.Millisecond, Kind: replay.Leaves, Thread: 1, State: replay.Waits})
	}
	if why := (&requests{events: events, record: "/nowhere/requests"}).divide(p); !why.Is("load-record") || p.Requests == nil || p.Requests.Of != notebook.RequestsWakes {
		t.Errorf("without the load's record: %v, %+v", why, p.Requests)
	}
	if why := (&requests{events: events, full: true}).divide(p); !why.Equal(notebook.Say("requests-full", "seconds", 0.901)) {
		t.Errorf("with a part of them: %v", why)
	}
}
