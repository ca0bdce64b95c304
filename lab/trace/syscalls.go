//go:build linux

package trace

import (
	"golang.org/x/sys/unix"

	"tare/notebook"
)

// The values are bpf/look.c's.
const (
	forOther = iota
	forBlock
	forNetwork
	forFutex
	forSleep
	reasonCount
	byFile = 7
)

// waits are the notebook's words for them.
var waits = [reasonCount]string{notebook.WallOther, notebook.WallBlock, notebook.WallNetwork, notebook.WallFutex, notebook.WallSleep}

// syscallReasons says what a thread waits for that sleeps in a system call. What waits for a file waits for what the file is. A
// wait for one of many files (poll, epoll) is taken for the network: that is what servers wait for in this way.
var syscallReasons = map[int]uint8{
	unix.SYS_READ: byFile, unix.SYS_WRITE: byFile, unix.SYS_READV: byFile, unix.SYS_WRITEV: byFile,
	unix.SYS_PREAD64: byFile, unix.SYS_PWRITE64: byFile, unix.SYS_PREADV: byFile, unix.SYS_PWRITEV: byFile,
	unix.SYS_PREADV2: byFile, unix.SYS_PWRITEV2: byFile, unix.SYS_SENDFILE: byFile, unix.SYS_SPLICE: byFile,
	unix.SYS_FSYNC: forBlock, unix.SYS_FDATASYNC: forBlock, unix.SYS_SYNC: forBlock, unix.SYS_SYNCFS: forBlock,
	unix.SYS_MSYNC: forBlock, unix.SYS_SYNC_FILE_RANGE: forBlock, unix.SYS_FALLOCATE: forBlock, unix.SYS_IO_GETEVENTS: forBlock,
	unix.SYS_ACCEPT: forNetwork, unix.SYS_ACCEPT4: forNetwork, unix.SYS_CONNECT: forNetwork,
	unix.SYS_RECVFROM: forNetwork, unix.SYS_RECVMSG: forNetwork, unix.SYS_RECVMMSG: forNetwork,
	unix.SYS_SENDTO: forNetwork, unix.SYS_SENDMSG: forNetwork, unix.SYS_SENDMMSG: forNetwork,
	unix.SYS_PPOLL: forNetwork, unix.SYS_PSELECT6: forNetwork, unix.SYS_EPOLL_PWAIT: forNetwork, unix.SYS_EPOLL_PWAIT2: forNetwork,
	unix.SYS_FUTEX: forFutex, unix.SYS_FUTEX_WAITV: forFutex, futexWait: forFutex,
	unix.SYS_NANOSLEEP: forSleep, unix.SYS_CLOCK_NANOSLEEP: forSleep,
}

// futexWait is futex_wait(2) of Linux 6.7; the number is the same on all machines.
const futexWait = 455
