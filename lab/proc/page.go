//go:build linux

package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Page is a page of this process's own memory.
type Page struct {
	Content []byte // zeros, without a frame until something is written
	Address uint64
}

// NewPage maps a page. Close it.
func NewPage() (*Page, error) {
	content, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("a page of this process's own: mmap: %w", err)
	}
	p := &Page{content, uint64(uintptr(unsafe.Pointer(&content[0])))}
	// No part of a larger page, although the kernel joins mappings that lie side by side. A kernel without huge pages knows no such advice.
	if err := unix.Madvise(content, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, errors.Join(fmt.Errorf("a page of this process's own: madvise: %w", err), p.Close())
	}
	return p, nil
}

var errHidden = errors.New("the frame of a page is hidden: CAP_SYS_ADMIN is missing")

// Frame is the number of the page's frame now; 0: it has none, or is being moved. It is an error if the kernel hides frames.
func (p *Page) Frame() (uint64, error) {
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0, err
	}
	defer pagemap.Close()
	var entry [8]byte
	if _, err := pagemap.ReadAt(entry[:], int64(p.Address)/int64(os.Getpagesize())*8); err != nil {
		return 0, fmt.Errorf("/proc/self/pagemap: %w", err)
	}
	const present, number = 1 << 63, 1<<55 - 1
	switch e := binary.NativeEndian.Uint64(entry[:]); {
	case e&present == 0:
		return 0, nil
	case e&number == 0:
		return 0, errHidden
	default:
		return e & number, nil
	}
}

// Close unmaps the page.
func (p *Page) Close() error { return unix.Munmap(p.Content) }

// FindDirectMap finds where the kernel maps all of physical memory, which it does not publish. It starts from the address of a
// kernel structure in that map, and searches at most twice the size of memory before it, because memory has holes. is reports
// whether the map begins at an address; direct is 0 if it begins at none of those addresses.
func FindDirectMap(within uint64, is func(direct uint64) (bool, error)) (direct uint64, err error) {
	total, err := Host.Memory("MemTotal")
	if err != nil {
		return 0, err
	}
	const gib = 1 << 30
	for back := uint64(0); back <= 2*uint64(total)/gib+8; back++ {
		direct := within&^(gib-1) - back*gib
		if found, err := is(direct); err != nil || found {
			return direct, err
		}
	}
	return 0, nil
}
