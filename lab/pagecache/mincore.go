//go:build linux

package pagecache

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// core is mincore(2): a byte for each page of the mapping, whose lowest bit says that the page is in memory.
func core(at, in []byte) error {
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&at[0])), uintptr(len(at)), uintptr(unsafe.Pointer(&in[0]))); errno != 0 {
		return errno
	}
	return nil
}
