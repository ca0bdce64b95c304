//go:build linux

package memory

import (
	"os"
	"testing"

	"tare/internal/require"
	"tare/notebook"
)

// A page that equals one of a file in the host's page cache, which no process maps, is a duplicate of the host's. That file is in nobody's
// account. Without the option it is not looked for.
func TestPagesOfTheHostsCache(t *testing.T) {
	r, err := openFrames(1, 1)
	require.That(t, err == nil, "a program that reads frames")
	r.Close()
	a := start(t)
	const n = 30
	path := file(t, n, 7700)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	address := a.ask("anon %d 7700 1", n)
	for _, cache := range []bool{false, true} {
		s := mustScan(t, Options{Contents: true, Cache: cache}, a.pid)
		for address, p := range at(s, a.pid, address, n) {
			if _, known := p.Hash(); !known {
				t.Errorf("the content of the page at %#x is not known", address)
			}
		}
		if known := s.Cached >= n; known != cache {
			t.Errorf("with the option %v: %d pages of the page cache", cache, s.Cached)
		}
		all := s.Account([]Guest{{Name: "a", PIDs: []int{a.pid}}})
		want := int64(0)
		if cache {
			want = n * PageSize
		}
		// What else the process has is its program, which may be in the page cache too.
		if got := all[0].Duplicates.Host.AnonFile; got < want || !cache && got != 0 {
			t.Errorf("with the option %v: %d bytes are also in the host's files, want %d", cache, got, want)
		}
		for _, g := range all {
			for _, p := range g.Processes {
				if p.PID == 0 {
					t.Errorf("the page cache is a process of %s", g.Name)
				}
			}
			for _, file := range g.Files {
				if file.Name == path {
					t.Errorf("the file that nobody maps is in the account of %s: %+v", g.Name, file)
				}
			}
			if g.Kind == notebook.MemoryHost && g.RSS != 0 {
				t.Errorf("the host has %d bytes, and none of its processes was scanned", g.RSS)
			}
		}
	}
}

// A page that a process maps at the second look has left the cache that nobody maps.
func TestCachedPagesThatGo(t *testing.T) {
	r, err := openFrames(1, 1)
	require.That(t, err == nil, "a program that reads frames")
	r.Close()
	a, b := start(t), start(t)
	const n = 12
	path := file(t, n, 8800)
	a.ask("anon %d 8800 1", n)
	s := mustScan(t, Options{Contents: true, Cache: true}, a.pid)
	own := map[uint64]bool{}
	for i := range s.Pages {
		if hash, known := s.Pages[i].Hash(); known && !s.ofCache(&s.Pages[i]) && s.Pages[i].Kind() == Anonymous {
			own[hash] = true
		}
	}
	var part []uint32
	for i := range s.Pages {
		if hash, known := s.Pages[i].Hash(); known && s.ofCache(&s.Pages[i]) && own[hash] {
			part = append(part, uint32(i))
		}
	}
	if len(part) < n {
		t.Fatalf("%d pages of the page cache are like the process's, want %d at least", len(part), n)
	}
	flags, err := openKernel("/proc/kpageflags")
	if err != nil {
		t.Fatal(err)
	}
	defer flags.Close()
	counts, err := openKernel("/proc/kpagecount")
	if err != nil {
		t.Fatal(err)
	}
	defer counts.Close()
	look := func() (gone int) {
		moved := make([]bool, len(part))
		if err := (&scanner{Snapshot: s, flags: flags, counts: counts}).leftCache(part, moved); err != nil {
			t.Fatal(err)
		}
		for _, m := range moved {
			if m {
				gone++
			}
		}
		return gone
	}
	if gone := look(); gone > len(part)-n {
		t.Errorf("%d of %d are gone before anything happened", gone, len(part))
	}
	b.ask("file %s %d", path, n)
	if gone := look(); gone < n {
		t.Errorf("%d are gone after a process has mapped all %d", gone, n)
	}
}
