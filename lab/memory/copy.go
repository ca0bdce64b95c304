//go:build linux

package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Span is a range of addresses in a process; End is the first address after it.
type Span struct{ Start, End uint64 }

// FindCopy finds a copy of the content in a process's own memory, and returns the pages that contain nothing else. It compares the
// whole content. An empty span means that the process has no copy. It reads only pages that are in memory, the smallest mappings
// first.
func FindCopy(pid int, content []byte) (Span, error) {
	if int64(len(content)) < 2*PageSize {
		return Span{}, fmt.Errorf("a copy of %d bytes fills no page", len(content))
	}
	all, err := proc.Maps(pid)
	if err != nil {
		return Span{}, err
	}
	all = slices.DeleteFunc(all, func(m proc.Mapping) bool {
		return m.Perms != "rw-p" || m.Inode != 0 || m.End-m.Start < uint64(len(content))
	})
	slices.SortStableFunc(all, func(a, b proc.Mapping) int {
		return int(min(a.End-a.Start, 1<<40)) - int(min(b.End-b.Start, 1<<40))
	})
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return Span{}, err
	}
	defer memory.Close()
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return Span{}, err
	}
	defer pagemap.Close()
	for _, m := range all {
		runs, err := present(pagemap, m)
		if err != nil {
			return Span{}, err
		}
		for _, r := range runs {
			at, err := search(memory, r, content)
			if errors.Is(err, unix.EIO) {
				continue // it has been unmapped
			}
			if err != nil {
				return Span{}, err
			}
			if at != 0 {
				page := uint64(PageSize)
				return Span{(at + page - 1) / page * page, (at + uint64(len(content))) / page * page}, nil
			}
		}
	}
	return Span{}, nil
}

// present returns the parts of a mapping whose pages are in memory. Reading others would allocate pages.
func present(pagemap io.ReaderAt, m proc.Mapping) (runs []Span, err error) {
	const entry, inMemory = 8, 1 << 63
	entries := make([]byte, 1<<16)
	page := uint64(PageSize)
	for at := m.Start; at < m.End; {
		want := entries[:min(uint64(len(entries)), (m.End-at)/page*entry)]
		if _, err := pagemap.ReadAt(want, int64(at/page*entry)); err != nil {
			return nil, err
		}
		for ; len(want) > 0; want, at = want[entry:], at+page {
			if binary.NativeEndian.Uint64(want)&inMemory == 0 {
				continue
			}
			if n := len(runs); n > 0 && runs[n-1].End == at {
				runs[n-1].End += page
			} else {
				runs = append(runs, Span{at, at + page})
			}
		}
	}
	return runs, nil
}

// search returns the address of the content in a part of a process's memory; 0 if it is not there.
func search(memory io.ReaderAt, in Span, content []byte) (uint64, error) {
	const head = 64 // bytes to search for before comparing the whole content
	buffer := make([]byte, 1<<20)
	whole := []byte(nil)
	for at := in.Start; at+uint64(len(content)) <= in.End; at += uint64(len(buffer) - head + 1) {
		part := buffer[:min(uint64(len(buffer)), in.End-at)]
		if _, err := memory.ReadAt(part, int64(at)); err != nil {
			return 0, err
		}
		for from := 0; ; from++ {
			i := bytes.Index(part[from:], content[:head])
			if i < 0 {
				break
			}
			from += i
			found := at + uint64(from)
			if found+uint64(len(content)) > in.End {
				break
			}
			if whole == nil {
				whole = make([]byte, len(content))
			}
			if _, err := memory.ReadAt(whole, int64(found)); err != nil {
				return 0, err
			}
			if bytes.Equal(whole, content) {
				return found, nil
			}
		}
	}
	return 0, nil
}

// Without removes pages from the snapshot, and returns their size in bytes.
func (s *Snapshot) Without(pid int, of Span) (taken int64) {
	s.Pages = slices.DeleteFunc(s.Pages, func(p Page) bool {
		at := s.Address(&p)
		if at < of.Start || at >= of.End || s.Processes[s.Region(&p).Process].PID != pid || !p.Kind().resident() {
			return false
		}
		taken += PageSize
		return true
	})
	return taken
}

// ProtectedMode returns the kernel itself from a kernel's file, as a boot loader copies it: the part of a bzImage after its
// real-mode part, whose length the file says (the kernel's Documentation/arch/x86/boot.rst).
func ProtectedMode(image []byte) ([]byte, error) {
	const sectors, magic, sector = 0x1f1, 0x202, 512
	if len(image) < magic+4 || string(image[magic:magic+4]) != "HdrS" {
		return nil, errors.New("not a bzImage: it has no boot header")
	}
	n := int(image[sectors])
	if n == 0 {
		n = 4
	}
	if setup := (n + 1) * sector; setup < len(image) {
		return image[setup:], nil
	}
	return nil, errors.New("not a bzImage: it is not longer than the first part that its boot header describes")
}
