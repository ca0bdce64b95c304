//go:build linux

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostOpen bounds the open files that are looked at of a process.
const mostOpen = 65536

// Listening returns the TCP ports on which processes listen, in order, in the network namespace of the first of them, and the inode of that
// namespace. Processes in other namespaces are left out.
func Listening(pids []int) (namespace uint64, ports []uint16, err error) {
	sockets := map[uint64]bool{}
	in := 0 // a process in that namespace
	for _, pid := range pids {
		var st unix.Stat_t
		err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &st)
		if err == nil && namespace != 0 && st.Ino != namespace {
			continue
		}
		if err == nil {
			err = socketsOf(pid, sockets)
		}
		if errors.Is(err, fs.ErrNotExist) || Ended(err) {
			continue
		}
		if err != nil {
			return 0, nil, fmt.Errorf("the sockets of process %d: %w", pid, err)
		}
		namespace, in = st.Ino, pid
	}
	if len(sockets) == 0 {
		return namespace, nil, nil
	}
	for _, name := range []string{"tcp", "tcp6"} {
		found, err := listening(fmt.Sprintf("/proc/%d/net/%s", in, name), sockets)
		if name == "tcp6" && errors.Is(err, fs.ErrNotExist) || Ended(err) {
			continue // the host has no IPv6, or the process has just ended
		}
		if err != nil {
			return 0, nil, err
		}
		ports = append(ports, found...)
	}
	slices.Sort(ports)
	return namespace, slices.Compact(ports), nil
}

// listening returns the ports of those of the sockets that a table lists as listening.
func listening(path string, sockets map[uint64]bool) (ports []uint16, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if ports, err = parseListening(f, sockets); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ports, nil
}

// socketsOf adds the inodes of a process's sockets.
func socketsOf(pid int, sockets map[uint64]bool) error {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(mostOpen)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, name := range names {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, name))
		if err != nil {
			continue // it is closed by now
		}
		if number, is := strings.CutPrefix(to, "socket:["); is {
			if n, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil {
				sockets[n] = true
			}
		}
	}
	return nil
}

// parseListening finds those of the sockets that listen, in a table of /proc/net/tcp.
func parseListening(table io.Reader, sockets map[uint64]bool) (ports []uint16, err error) {
	const (
		local, state, inode = 1, 3, 9 // columns
		listens             = "0A"
	)
	lines := bufio.NewScanner(table)
	for first := true; lines.Scan(); first = false {
		f := strings.Fields(lines.Text())
		if first || len(f) <= inode || f[state] != listens {
			continue
		}
		n, err := strconv.ParseUint(f[inode], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.60q: must be an inode", f[inode])
		}
		if !sockets[n] {
			continue
		}
		_, port, _ := strings.Cut(f[local], ":")
		p, err := strconv.ParseUint(port, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("%.60q: must end with a port", f[local])
		}
		ports = append(ports, uint16(p))
	}
	return ports, lines.Err()
}
