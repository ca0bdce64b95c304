//go:build linux

package memory

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// store has a scan's pages, and the lists for finding duplicates. They are in memory up to a limit, and beyond it in a file without
// a name. The kernel writes the file out, and keeps it in memory only as far as nobody else needs that. So the result is the same,
// but takes longer.
type store struct {
	most    int64 // limit of memory for everything, in bytes
	all     unsafe.Pointer
	ready   int64 // bytes of the range that are writable
	inside  int64 // bytes in memory, for pages and lists
	file    *os.File
	spilled int64 // bytes of the file in use
	largest int64 // the greatest number of these
}

const (
	reach     = 256 << 30 // bytes of addresses reserved for pages
	spillStep = 16 << 20  // by which the file grows
	spillFree = 0.05      // share of the disk that stays free
	tmpfs     = 0x01021994
	ramfs     = 0x858458f6
)

// newStore has room for pages in most bytes of memory, minus the room for lists of them.
func newStore(most int64) (*store, error) {
	if most < chunk*perPage {
		return nil, &Full{Most: most, Why: fmt.Errorf("%d KiB are the least", chunk*perPage>>10)}
	}
	s := &store{most: most}
	var err error
	// Not on the heap: untouched memory is not used, and the limit holds.
	if s.all, err = unix.MmapPtr(-1, 0, nil, reach, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE); err != nil {
		return nil, fmt.Errorf("memory for the pages: mmap: %w", err)
	}
	s.ready = min(most/perPage*int64(pageSize)&^(PageSize-1), reach)
	s.inside = s.ready
	if _, err := unix.MmapPtr(-1, 0, s.all, uintptr(s.ready), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
		return nil, errors.Join(fmt.Errorf("memory for the pages: mmap: %w", err), s.Close())
	}
	return s, nil
}

// pages returns n pages. Every call returns the same memory from the beginning.
func (s *store) pages(n int) ([]Page, error) {
	for int64(n)*int64(pageSize) > s.ready {
		if s.ready+spillStep > reach {
			return nil, &Full{Most: s.most, Why: errors.New("they are too many")}
		}
		if _, err := s.spill(unsafe.Add(s.all, s.ready), spillStep); err != nil {
			return nil, err
		}
		s.ready += spillStep
	}
	return unsafe.Slice((*Page)(s.all), n), nil
}

// list returns n zeros; free frees it.
func (s *store) list(n int) (list []uint32, free func() error, err error) {
	size := (4*int64(n) + PageSize) &^ (PageSize - 1)
	var at unsafe.Pointer
	inside := s.inside+size <= s.most
	if inside {
		at, err = unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	} else {
		at, err = s.spill(nil, size)
	}
	if err != nil {
		return nil, nil, err
	}
	if inside {
		s.inside += size
	} else {
		clear(unsafe.Slice((*uint32)(at), n)) // another list had this part of the file
	}
	end := s.spilled
	return unsafe.Slice((*uint32)(at), n), func() error {
		if inside {
			s.inside -= size
		} else if end == s.spilled { // otherwise the file keeps it to the end
			s.spilled -= size
		}
		return unix.MunmapPtr(at, uintptr(size))
	}, nil
}

// spill maps size more bytes of the file, at an address if one is given.
func (s *store) spill(at unsafe.Pointer, size int64) (unsafe.Pointer, error) {
	full := func(err error) (unsafe.Pointer, error) { return nil, &Full{Most: s.most, Why: err} }
	if s.file == nil {
		f, err := spillFile([]string{os.TempDir(), "/var/tmp"})
		if err != nil {
			return full(err)
		}
		s.file = f
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(s.file.Fd()), &fs); err != nil {
		return full(err)
	}
	if left := float64(fs.Bavail) * float64(fs.Bsize); left-float64(size) < spillFree*float64(fs.Blocks)*float64(fs.Bsize) {
		return full(fmt.Errorf("the disk of %s has %.0f MiB left, and Tare leaves %.0f %% of it free", s.file.Name(), left/(1<<20), 100*spillFree))
	}
	// Allocate the file's blocks before writing to them through memory, where a full disk would end the program.
	if err := unix.Fallocate(int(s.file.Fd()), 0, s.spilled, size); err != nil {
		return full(fmt.Errorf("%s: fallocate: %w", s.file.Name(), err))
	}
	flags := unix.MAP_SHARED
	if at != nil {
		flags |= unix.MAP_FIXED
	}
	p, err := unix.MmapPtr(int(s.file.Fd()), s.spilled, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return full(fmt.Errorf("%s: mmap: %w", s.file.Name(), err))
	}
	s.spilled += size
	s.largest = max(s.largest, s.spilled)
	return p, nil
}

// spillFile is a file without a name in the first of the folders that is on a disk.
func spillFile(dirs []string) (*os.File, error) {
	var errs []error
	for _, dir := range dirs {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", dir, err))
			continue
		}
		if fs.Type == tmpfs || fs.Type == ramfs {
			errs = append(errs, fmt.Errorf("%s is in memory itself", dir))
			continue
		}
		f, err := os.CreateTemp(dir, "tare-pages-")
		if err == nil {
			if err = os.Remove(f.Name()); err == nil {
				return f, nil
			}
			f.Close()
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Close frees everything.
func (s *store) Close() error {
	err := unix.MunmapPtr(s.all, reach)
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}
