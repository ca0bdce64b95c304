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
	Content []byte
	Address uint64
	Frame   uint64 // number of its page frame; 0: the kernel hides it, as from processes without CAP_SYS_ADMIN
}

// NewPage maps a page, which has a frame from then on. Close it.
func NewPage() (p *Page, err error) {
	p = &Page{}
	if p.Content, err = unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("a page of this process's own: mmap: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	p.Address = uint64(uintptr(unsafe.Pointer(&p.Content[0])))
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, err
	}
	defer pagemap.Close()
	var entry [8]byte
	if _, err := pagemap.ReadAt(entry[:], int64(p.Address)/int64(os.Getpagesize())*8); err != nil {
		return nil, fmt.Errorf("/proc/self/pagemap: %w", err)
	}
	p.Frame = binary.NativeEndian.Uint64(entry[:]) & (1<<55 - 1)
	return p, nil
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
