//go:build linux

// Package pagecache makes files cold or warm: not in the host's page cache, or in it, and has the kernel say what it has of them.
//
// It is the files' pages alone. What the kernel remembers of names and inodes stays, and so do pages that a running program has mapped, which the
// kernel gives up for nobody.
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

// Evict takes the files, and those in the folders, out of the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED). What is left is in what it
// returns.
func Evict(ctx context.Context, paths []string) (notebook.Cached, error) {
	return each(ctx, paths, func(f *os.File, size int64) error {
		left, err := resident(f, size)
		if err != nil || left == 0 {
			return err
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return err
		}
		if left, err = resident(f, size); err != nil || left == 0 {
			return err
		}
		// The kernel keeps what is not on the disk yet.
		if err := f.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// Load reads the files, and those in the folders.
func Load(ctx context.Context, paths []string) (notebook.Cached, error) {
	return each(ctx, paths, func(f *os.File, size int64) error {
		in, err := resident(f, size)
		if err != nil || in >= size {
			return err
		}
		_, err = io.Copy(io.Discard, f)
		return err
	})
}

// each does something to each file, and counts what of it is in the cache afterwards.
func each(ctx context.Context, paths []string, do func(f *os.File, size int64) error) (c notebook.Cached, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NOATIME, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			st, err := f.Stat()
			if err != nil || st.Size() == 0 {
				return err
			}
			if err := do(f, st.Size()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			in, err := resident(f, st.Size())
			if err != nil {
				return err
			}
			c.Files, c.Bytes, c.Resident = c.Files+1, c.Bytes+st.Size(), c.Resident+min(in, st.Size())
			return nil
		})
		if err != nil {
			return c, fmt.Errorf("the page cache's part of %s: %w", path, err)
		}
	}
	return c, nil
}

// resident is how many bytes of a file are in the page cache, in whole pages: cachestat(2), or mincore(2) of a kernel before 6.5.
func resident(f *os.File, size int64) (int64, error) {
	page := int64(os.Getpagesize())
	var c unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &c, 0)
	if err == nil {
		return int64(c.Cache) * page, nil
	}
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EPERM) {
		return 0, fmt.Errorf("cachestat: %w", err)
	}
	return mincore(f, size)
}

// mincore counts them by a mapping.
func mincore(f *os.File, size int64) (int64, error) {
	page := int64(os.Getpagesize())
	at, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mapping: %w", err)
	}
	defer func() { _ = unix.Munmap(at) }() // a mapping of ours: it cannot fail
	in := make([]byte, (size+page-1)/page)
	if err := core(at, in); err != nil {
		return 0, fmt.Errorf("mincore: %w", err)
	}
	n := int64(0)
	for _, b := range in {
		n += int64(b & 1)
	}
	return n * page, nil
}
