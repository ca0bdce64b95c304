package notebook

import (
	"fmt"
	"slices"
	"strings"
)

// Disk is how the disk of a virtual machine, on which its root is, lies on the host.
type Disk struct {
	Format   string `json:"format"`    // of the guest's own file: "qcow2"
	Cache    string `json:"cache"`     // one of the cache modes
	AIO      string `json:"aio"`       // how QEMU reads and writes: AIOThreads, …
	IOThread bool   `json:"io_thread"` // requests are handled by a thread of their own
}

// The cache modes, by the names that QEMU and libvirt have for them. In all of them what the guest has flushed is on the host's disk;
// in directsync so is all that it has written.
const (
	CacheWriteback  = "writeback"  // through the host's page cache
	CacheNone       = "none"       // past it
	CacheDirectSync = "directsync" // past it, and flushed with every write
)

// The AIO engines.
const (
	AIOThreads = "threads"
	AIONative  = "native"
	AIOURing   = "io_uring"
)

// UsualDisk is the disk that a machine has where nothing else is asked for, and that advice asks for: QEMU's own defaults and
// libvirt's, and an I/O thread.
var UsualDisk = Disk{Format: "qcow2", Cache: CacheWriteback, AIO: AIOThreads, IOThread: true}

// Direct says whether the disk is read and written past the host's page cache (O_DIRECT).
func (d Disk) Direct() bool { return d.Cache != CacheWriteback }

// WriteCache says whether the guest's disk has a cache of its own, which the guest then flushes.
func (d Disk) WriteCache() bool { return d.Cache != CacheDirectSync }

// CacheMode is the cache mode with these two.
func CacheMode(writeCache, direct bool) string {
	for _, c := range []string{CacheWriteback, CacheNone, CacheDirectSync} {
		if d := (Disk{Cache: c}); d.WriteCache() == writeCache && d.Direct() == direct {
			return c
		}
	}
	return "writethrough" // which nobody can ask for
}

// noIOThread is the word for a disk without an I/O thread.
const noIOThread = "no-iothread"

// ParseDisk reads what Text writes: what differs from UsualDisk, as words. "usual" is that disk.
func ParseDisk(text string) (Disk, error) {
	d := UsualDisk
	if text == "" || text == "usual" {
		return d, nil
	}
	var seen []string
	for _, w := range strings.Fields(text) {
		var kind string
		switch {
		case slices.Contains([]string{CacheWriteback, CacheNone, CacheDirectSync}, w):
			kind, d.Cache = "cache mode", w
		case slices.Contains([]string{AIOThreads, AIONative, AIOURing}, w):
			kind, d.AIO = "AIO engine", w
		case w == noIOThread:
			kind, d.IOThread = w, false
		default:
			return Disk{}, fmt.Errorf("disk %q: unknown word %q; usual, or a cache mode (writeback, none, directsync), an AIO engine (threads, native, io_uring) and %s, each or none, were expected", text, w, noIOThread)
		}
		if slices.Contains(seen, kind) {
			return Disk{}, fmt.Errorf("disk %q: %s stands there twice", text, kind)
		}
		seen = append(seen, kind)
	}
	if d.AIO == AIONative && !d.Direct() {
		return Disk{}, fmt.Errorf("disk %q: AIO engine native works past the page cache alone: cache mode none or directsync was expected with it", text)
	}
	return d, nil
}

// Text is the disk in words that ParseDisk reads; "" for UsualDisk.
func (d Disk) Text() string {
	var words []string
	if d.Cache != UsualDisk.Cache {
		words = append(words, d.Cache)
	}
	if d.AIO != UsualDisk.AIO {
		words = append(words, d.AIO)
	}
	if !d.IOThread {
		words = append(words, noIOThread)
	}
	return strings.Join(words, " ")
}
