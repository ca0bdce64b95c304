//go:build linux

// Package pagecache makes files cold (not in the host's page cache) or warm (in it), and asks the kernel how much of them is cached.
//
// It handles only the files' pages. The kernel's cache of names and inodes stays, and so do pages that a running program maps,
// which the kernel never drops.
package pagecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/notebook"
)

// Evict drops the files, and those in the folders, from the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED). It returns how much
// is still cached.
func Evict(ctx context.Context, paths []string) (notebook.Cached, error) {
	return each(ctx, paths, func(f file) error {
		left, err := f.resident()
		if err != nil || left == 0 {
			return err
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return err
		}
		if left, err = f.resident(); err != nil || left == 0 {
			return err
		}
		// The kernel keeps what is not yet on the disk.
		if err := f.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// Load reads the files, and those in the folders.
func Load(ctx context.Context, paths []string) (notebook.Cached, error) {
	return each(ctx, paths, func(f file) error {
		in, err := f.resident()
		if err != nil || in >= f.size() {
			return err
		}
		for _, d := range f.data {
			if _, err := io.Copy(io.Discard, io.NewSectionReader(f, d.at, d.bytes)); err != nil {
				return err
			}
		}
		return nil
	})
}

// file is a file with its data: a disk image consists mostly of holes, which nobody reads.
type file struct {
	*os.File
	data []extent
}

type extent struct{ at, bytes int64 }

// size is the size of the data.
func (f file) size() (n int64) {
	for _, d := range f.data {
		n += d.bytes
	}
	return n
}

// dataOf finds a file's data (lseek(2), SEEK_DATA).
func dataOf(f *os.File, size int64) (all []extent, err error) {
	for at := int64(0); at < size; {
		from, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // no more data
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		to, err := f.Seek(from, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		all = append(all, extent{from, to - from})
		at = to
	}
	return all, nil
}

// each applies do to each file, and then counts how much of it is cached.
func each(ctx context.Context, paths []string, do func(file) error) (c notebook.Cached, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			opened, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NOATIME, 0)
			if err != nil {
				return err
			}
			defer opened.Close()
			st, err := opened.Stat()
			if err != nil {
				return err
			}
			f := file{File: opened}
			if f.data, err = dataOf(opened, st.Size()); err != nil || len(f.data) == 0 {
				return err
			}
			if err := do(f); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			in, err := f.resident()
			if err != nil {
				return err
			}
			c.Files, c.Bytes, c.Resident = c.Files+1, c.Bytes+f.size(), c.Resident+min(in, f.size())
			return nil
		})
		if err != nil {
			return c, fmt.Errorf("the cached part of %s: %w", path, err)
		}
	}
	return c, nil
}

// resident is the number of bytes of the data in the page cache, in whole pages: by cachestat(2), or mincore(2) on a kernel before
// 6.5.
func (f file) resident() (n int64, err error) {
	page := int64(os.Getpagesize())
	for _, d := range f.data {
		var c unix.Cachestat_t
		err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Off: uint64(d.at), Len: uint64(d.bytes)}, &c, 0)
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
			var in int64
			in, err = f.mincore(d)
			c.Cache = uint64(in)
		}
		if err != nil {
			return 0, fmt.Errorf("asking how much of it is cached: %w", err)
		}
		n += int64(c.Cache) * page
	}
	return n, nil
}

// mincore counts the pages of a part with a mapping.
func (f file) mincore(d extent) (n int64, err error) {
	page := int64(os.Getpagesize())
	from := d.at / page * page
	at, err := unix.Mmap(int(f.Fd()), from, int(d.at+d.bytes-from), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mapping: %w", err)
	}
	defer func() { _ = unix.Munmap(at) }() // a mapping of ours, so it cannot fail
	in := make([]byte, (int64(len(at))+page-1)/page)
	if err := core(at, in); err != nil {
		return 0, fmt.Errorf("mincore: %w", err)
	}
	for _, b := range in {
		n += int64(b & 1)
	}
	return n, nil
}
