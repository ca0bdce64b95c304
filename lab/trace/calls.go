//go:build linux

package trace

import (
	"golang.org/x/sys/unix"

	"tare/notebook"
)

// The tracer of system calls, by kind. Every system call of the guest's threads pays for it, so it is not one of the deep ones.
var _ = add(tracer{
	name:     notebook.TracerCalls,
	on:       "the tracepoint of system calls (Linux 5.18 or later with BTF)",
	programs: []string{"called"},
	read:     (*Trace).readCalls,
})

// Kinds of system calls (bpf/calls.c).
const (
	callsSimple = iota
	callsDescriptor
	callsPath
	callsOpen
	callsEntry
	callsFile
	callsPipe
	callsSocket
	callsConnection
	callsMemory
	callsShared
	callsFutex
	callsPoll
	callsSleep
	callsProcess
	callsFork
	callsExec
	callsSync
	callsSignal
	callsRing
	callKinds

	callsSpawn = 251 // in two threads of execution, the new one of which returns 0
	callsClone = 252 // by whether the two share memory
	callsRead  = 253 // by what the descriptor is
	callsWrite = 254 // the same; a flush too, if the file was opened so
	callsMap   = 255 // by whether others can share the memory
)

// callFigures are the figures of the kinds. Those whose calls move bytes have a figure for them, too.
var callFigures = [callKinds]struct{ calls, bytes string }{
	callsSimple:     {calls: "simple_calls"},
	callsDescriptor: {calls: "descriptor_calls"},
	callsPath:       {calls: "path_calls"},
	callsOpen:       {calls: "open_calls"},
	callsEntry:      {calls: "entry_calls"},
	callsFile:       {calls: "file_calls", bytes: "file_bytes"},
	callsPipe:       {calls: "pipe_calls", bytes: "pipe_bytes"},
	callsSocket:     {calls: "socket_calls", bytes: "socket_bytes"},
	callsConnection: {calls: "connection_calls"},
	callsMemory:     {calls: "memory_calls"},
	callsShared:     {calls: "shared_memory_calls"},
	callsFutex:      {calls: "futex_calls"},
	callsPoll:       {calls: "poll_calls"},
	callsSleep:      {calls: "sleep_calls"},
	callsProcess:    {calls: "process_calls"},
	callsFork:       {calls: "fork_calls"},
	callsExec:       {calls: "exec_calls"},
	callsSync:       {calls: "sync_calls"},
	callsSignal:     {calls: "signal_calls"},
	callsRing:       {calls: "io_uring_calls"},
}

// kindsOfCalls are the kinds by the number of the call. All others are simple.
var kindsOfCalls = byNumber(map[uint8][]int{
	callsDescriptor: {unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_FCNTL, unix.SYS_LSEEK, unix.SYS_IOCTL,
		unix.SYS_FSTAT, unix.SYS_FSTATFS, unix.SYS_FLOCK, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FADVISE64, unix.SYS_READAHEAD,
		unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FCHDIR, unix.SYS_PIPE2, unix.SYS_EVENTFD2, unix.SYS_SIGNALFD4, unix.SYS_GETDENTS64},
	callsOpen: {unix.SYS_OPENAT, unix.SYS_OPENAT2},
	callsPath: {unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
		unix.SYS_READLINKAT, unix.SYS_CHDIR, unix.SYS_CHROOT, unix.SYS_GETCWD, unix.SYS_STATFS, unix.SYS_GETXATTR, unix.SYS_LGETXATTR,
		unix.SYS_LISTXATTR, unix.SYS_INOTIFY_ADD_WATCH},
	callsEntry: {unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_LINKAT,
		unix.SYS_SYMLINKAT, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE, unix.SYS_SETXATTR, unix.SYS_MOUNT,
		unix.SYS_UMOUNT2},
	callsRead: {unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_PREADV2, unix.SYS_SPLICE,
		unix.SYS_COPY_FILE_RANGE}, // the first descriptor of the last two is the one that they read
	callsWrite:  {unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_SENDFILE},
	callsSocket: {unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG},
	callsConnection: {unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
		unix.SYS_CONNECT, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT},
	callsMap:     {unix.SYS_MMAP},
	callsMemory:  {unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MLOCK, unix.SYS_MUNLOCK},
	callsShared:  {unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_SHMCTL, unix.SYS_MEMFD_CREATE},
	callsFutex:   {unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, futexWait, futexWait - 1, futexWait + 1},
	callsPoll:    {unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_CREATE1},
	callsSleep:   {unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_SETITIMER, unix.SYS_TIMER_SETTIME},
	callsClone:   {unix.SYS_CLONE},
	callsSpawn:   {unix.SYS_CLONE3},
	callsProcess: {unix.SYS_WAIT4, unix.SYS_WAITID},
	callsExec:    {unix.SYS_EXECVE, unix.SYS_EXECVEAT},
	callsSync:    {unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC, unix.SYS_SYNCFS, unix.SYS_SYNC_FILE_RANGE, unix.SYS_MSYNC},
	callsSignal: {unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND,
		unix.SYS_SIGALTSTACK, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL},
	callsRing: {unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_SETUP, unix.SYS_IO_SUBMIT, unix.SYS_IO_GETEVENTS},
})

// callKindOf is the kind of each system call, by its number.
type callKindOf [512]uint8

// byNumber turns a list of numbers for each kind into the kind of each number.
func byNumber(numbers map[uint8][]int) (kinds callKindOf) {
	kinds.add(numbers)
	return kinds
}

func (k *callKindOf) add(numbers map[uint8][]int) {
	for kind, of := range numbers {
		for _, nr := range of {
			k[nr] = kind
		}
	}
}

// spansOfCalls is what one CPU counted.
type spansOfCalls [spans]struct{ N, Bytes [callKinds]uint64 }

func (t *Trace) readCalls(p *notebook.Trace) error {
	var all []spansOfCalls
	if err := t.kit.coll.Maps["calls"].Lookup(uint32(0), &all); err != nil {
		return err
	}
	for kind, of := range callFigures {
		var n, bytes uint64
		for i := range all {
			last := &all[i][(t.look.Spans-1)%spans]
			n, bytes = n+last.N[kind], bytes+last.Bytes[kind]
		}
		p.Figures[of.calls] = float64(n)
		if of.bytes != "" {
			p.Figures[of.bytes] = float64(bytes)
		}
	}
	return nil
}
