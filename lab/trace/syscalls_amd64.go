package trace

import "golang.org/x/sys/unix"

// Calls that only older kinds of machines have.
func init() {
	for _, nr := range []int{unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT} {
		syscallReasons[nr] = forNetwork
	}
	kindsOfCalls.add(map[uint8][]int{
		callsDescriptor: {unix.SYS_DUP2, unix.SYS_GETDENTS, unix.SYS_PIPE, unix.SYS_EVENTFD, unix.SYS_SIGNALFD},
		callsOpen:       {unix.SYS_OPEN, unix.SYS_CREAT},
		callsPath:       {unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK},
		callsEntry: {unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_MKNOD, unix.SYS_LINK, unix.SYS_SYMLINK,
			unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES},
		callsPoll:  {unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_CREATE},
		callsSleep: {unix.SYS_PAUSE, unix.SYS_ALARM},
		callsFork:  {unix.SYS_FORK},
		callsSpawn: {unix.SYS_VFORK},
	})
}
