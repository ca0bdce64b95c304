//go:build unix

package durable

import (
	"io/fs"
	"syscall"
)

// nonBlock keeps the opening of what is not a regular file from waiting.
const nonBlock = syscall.O_NONBLOCK

// owned gives who owns a file, and how many names it has.
func owned(info fs.FileInfo) (user int, links uint64, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), uint64(st.Nlink), true
}
