//go:build linux

package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tare/lab/proc"
)

// In /proc/kpageflags, a frame of a file in the page cache has inCache and none of the flags in notFile. Shared memory and pages that can be swapped
// are not of a file.
const (
	inCache = uint64(kpfLRU)
	notFile = uint64(kpfSlab | kpfBuddy | kpfAnon | kpfSwapBacked | kpfHuge | kpfHWPoison | kpfNoPage | kpfKSM | kpfOffline | kpfZeroPage)
)

// cached reports whether a frame with these flags, which processes map count times, is a file's in the page cache that nobody maps.
func cached(flags, count uint64) bool { return flags&inCache != 0 && flags&notFile == 0 && count == 0 }

// ofCache reports whether the page is in the page cache and no process maps it.
func (s *Snapshot) ofCache(p *Page) bool { return s.cache > 0 && s.Region(p).Process == s.cache-1 }

// cacheFrames is the number of frames whose flags are read together.
const cacheFrames = 1 << 13

// readCache lists the frames of the host's page cache that no process maps and that share a piece with a process's page. A placeholder process with
// PID 0 owns them. Algorithm 2 of "virtualization-overheads" (section 6.2) reads every frame of the host.
func (s *scanner) readCache(ctx context.Context) (err error) {
	words, free, err := s.store.list(filterWords(8 * len(s.Pages)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	alike := filter(words)
	for i := range s.Pages {
		if h := s.Pages[i].hash; h != 0 {
			alike.add(h)
		}
	}
	s.Processes = append(s.Processes, Process{})
	s.cache, s.Cached = len(s.Processes), 0
	s.Regions = append(s.Regions, Region{Mapping: proc.Mapping{End: 1 << 63, Inode: 1, Path: "page cache"}, Process: s.cache - 1})
	var next atomic.Uint64 // the first frame that no worker has taken
	workers, ctx := errgroup.WithContext(ctx)
	for i := range runtime.GOMAXPROCS(0) {
		w := cacheWorker{scanner: s, nth: i, alike: alike, flags: make([]byte, 8*cacheFrames), counts: make([]byte, 8*cacheFrames), found: make([]uint64, 0, cacheFrames)}
		workers.Go(func() error {
			for ctx.Err() == nil {
				if over, err := w.look(next.Add(cacheFrames) - cacheFrames); over || err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return workers.Wait()
}

// cacheWorker is one of the goroutines that look for frames of the page cache, with its buffers.
type cacheWorker struct {
	*scanner
	nth           int
	alike         filter // of the pieces of processes' pages
	flags, counts []byte
	found         []uint64
}

// look checks cacheFrames frames, from first on. over says that the host has no frame with that number.
func (w *cacheWorker) look(first uint64) (over bool, err error) {
	n, err := w.scanner.flags.ReadAt(w.flags, int64(first)*8)
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("%s: frame %#x: %w", w.scanner.flags.Name(), first, err)
	}
	if n < 8 {
		return true, nil
	}
	w.found = w.found[:0]
	for i := 0; i+8 <= n; i += 8 {
		if cached(binary.NativeEndian.Uint64(w.flags[i:]), 0) {
			w.found = append(w.found, first+uint64(i/8))
		}
	}
	if len(w.found) == 0 {
		return false, nil
	}
	begin, end := w.found[0], w.found[len(w.found)-1]+1
	n, err = w.scanner.counts.ReadAt(w.counts[:8*(end-begin)], int64(begin)*8)
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("%s: frame %#x: %w", w.scanner.counts.Name(), begin, err)
	}
	w.found = slices.DeleteFunc(w.found, func(frame uint64) bool {
		at := int(frame-begin) * 8
		return at+8 > n || binary.NativeEndian.Uint64(w.counts[at:]) != 0
	})
	for of := range slices.Chunk(w.found, block) {
		if err := w.add(of); err != nil {
			return false, err
		}
	}
	return false, nil
}

// add lists the frames in found, at most a block, whose pieces a process's page may have.
func (w *cacheWorker) add(found []uint64) error {
	hashes := slices.Clone(found)
	if err := w.frames.hash(w.nth, hashes); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Cached += int64(len(found))
	for i, frame := range found {
		if hashes[i] == 0 || !w.alike.has(hashes[i]) {
			continue
		}
		n := len(w.Pages)
		pages, err := w.store.pages(n + 1)
		if err != nil {
			return err
		}
		pages[n] = Page{Frame: frame, hash: hashes[i], at: uint32(n), region: uint32(len(w.Regions) - 1), flags: kpfLRU | flagFile | flagInFile}
		w.Pages = pages
	}
	return nil
}

// leftCache sets moved for each page that has left the page cache, or that a process now maps.
func (s *scanner) leftCache(part []uint32, moved []bool) error {
	var flags, count [8]byte
	for i, k := range part {
		at := int64(s.Pages[k].Frame) * 8
		for file, to := range map[*kernelFile][]byte{s.flags: flags[:], s.counts: count[:]} {
			if _, err := file.ReadAt(to, at); err != nil {
				return fmt.Errorf("%s: frame %#x: %w", file.Name(), s.Pages[k].Frame, err)
			}
		}
		moved[i] = !cached(binary.NativeEndian.Uint64(flags[:]), binary.NativeEndian.Uint64(count[:]))
	}
	return nil
}

// frameContents returns the hashes of n frames' pieces and of their whole contents; 0 for one that cannot be read.
func (r *reader) frameContents(n int, frame func(i int) uint64) (pieces, wholes []uint64, err error) {
	r.unknown(n)
	for i := range n {
		if err := r.frames.whole(r.worker, frame(i), func(page []byte) { r.digest(i, page) }); err != nil {
			return nil, nil, err
		}
	}
	return r.some, r.full, nil
}
