//go:build linux

package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/lab/ruler"
)

// Stream is the meeting with a ruler that is started on the host with its end of a pair of sockets.
type Stream struct {
	conn   net.Conn
	Theirs *os.File // the ruler's end; Meet and Close close it
}

// NewStream makes the pair.
func NewStream() (*Stream, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ruler"), os.NewFile(uintptr(fds[1]), "ruler's end")
	conn, err := net.FileConn(ours) // a copy
	if cerr := ours.Close(); err == nil && cerr != nil {
		conn.Close()
		err = cerr
	}
	if err != nil {
		theirs.Close()
		return nil, err
	}
	return &Stream{conn, theirs}, nil
}

// Meet implements Meeting. The stream ends with the process, so nobody need say that it died.
func (s *Stream) Meet(ctx context.Context, _ <-chan struct{}) (*ruler.Client, int, error) {
	s.Theirs.Close() // only the process's own copy may be left, or its end would not be seen
	c, err := ruler.Connect(ctx, s.conn)
	return c, 0, err
}

// Close implements Meeting.
func (s *Stream) Close() {
	s.Theirs.Close()
	s.conn.Close()
}

// Socket is the meeting with a ruler in a container, which connects to a socket that it finds there.
type Socket struct {
	l    *net.UnixListener
	Path string // on the host
}

// NewSocket makes the socket in the guest's folder.
func NewSocket(folder string) (*Socket, error) {
	dir, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	defer unix.Close(dir)
	// A socket's address holds 107 bytes, and a folder's path may be longer.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/ruler.sock", dir)})
	if err != nil {
		return nil, fmt.Errorf("making a socket in %s: %w", folder, err)
	}
	l.SetUnlinkOnClose(false) // by then the name means another folder, or none
	s := &Socket{l, filepath.Join(folder, "ruler.sock")}
	// The folder is root's alone; in the container whoever is root there may connect.
	if err := os.Chmod(s.Path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return s, nil
}

// Close implements Meeting.
func (s *Socket) Close() { s.l.Close() }

// Meet implements Meeting. The socket is closed then in any case: what runs in the container later finds nobody behind
// it.
func (s *Socket) Meet(ctx context.Context, died <-chan struct{}) (*ruler.Client, int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-died:
			cancel(errDied)
		case <-ctx.Done():
		}
	}()
	stop := context.AfterFunc(ctx, func() { s.l.Close() })
	defer stop()
	defer s.l.Close()
	conn, err := s.l.AcceptUnix()
	if err == nil {
		var pid int
		if pid, err = peer(conn); err != nil {
			conn.Close()
			return nil, 0, err
		}
		var c *ruler.Client
		if c, err = ruler.Connect(ctx, conn); err == nil {
			return c, pid, nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, 0, err
}

// peer asks the kernel which process, as the host numbers them, is at the other end. Nothing but the ruler runs in
// a container before its hello. (A runtime writes its pid file, and an engine its state, only afterwards.)
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if cerr != nil {
		return 0, fmt.Errorf("asking who connected to the ruler's socket: %w", cerr)
	}
	if cred.Pid < 1 {
		return 0, fmt.Errorf("who connected to the ruler's socket is process %d: it is in a pid namespace that this one cannot see; run tare on the host that the engine runs on", cred.Pid)
	}
	return int(cred.Pid), nil
}
