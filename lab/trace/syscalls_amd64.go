package trace

import "golang.org/x/sys/unix"

// Calls that only older kinds of machines have.
func init() {
	for _, nr := range []int{unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT} {
		syscallReasons[nr] = forNetwork
	}
}
