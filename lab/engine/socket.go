//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/lab/ruler"
)

// StartRuler starts a program that is the ruler, or becomes it, with its end of a pair of sockets as its file 3. It may use only
// the given CPUs, and is in the cgroups that HoldToCPUs has made.
func (b *Base) StartRuler(cmd *exec.Cmd, cpus []int) (Meeting, error) {
	conn, theirs, err := Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() // only the process's own copy may remain, or its end would go unnoticed
	cmd.Env = []string{} // the order sets a trial's environment
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs}
	setUp, started, err := b.entering(cmd)
	if err == nil {
		b.Process, err = Start(cmd, cpus, setUp...)
		started()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	b.PID = b.Process.PID()
	return stream{conn}, nil
}

// stream is the meeting with a ruler that has the other end. It ends with the process, so no other sign of its death is needed.
type stream struct{ conn net.Conn }

// Meet implements Meeting.
func (s stream) Meet(context.Context) (ruler.Stream, int, error) { return s.conn, 0, nil }

// Pair makes two connected sockets, one for this program and one for a child.
func Pair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a pair of sockets: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "our end"), os.NewFile(uintptr(fds[1]), "their end")
	defer ours.Close()
	conn, err := net.FileConn(ours) // FileConn makes a copy
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("a pair of sockets: %w", err)
	}
	return conn, theirs, nil
}

// Socket is the meeting with a ruler in a container. The ruler connects to a socket that it finds there.
type Socket struct {
	l *net.UnixListener
	// Dir is the folder on the host with the socket and the ruler's program. The container has it at ruler.RunDir, read-only. (Two
	// mounts instead of one would need files as mount points, which no image has, and which an overlay makes slowly.)
	Dir string
	// Died is closed when the ruler can no longer come. Set it before Meet.
	Died <-chan struct{}
}

// NewSocket makes the socket in the guest's folder, next to the program. The guest's end closes it at the latest.
func (b *Base) NewSocket(program string) (*Socket, error) {
	s := &Socket{Dir: filepath.Join(b.Folder, "run")}
	if err := errors.Join(os.Mkdir(s.Dir, 0o700), os.Chmod(s.Dir, 0o755)); err != nil { // the umask reduces mkdir's mode
		return nil, err
	}
	// All guests use the same file, so that they share its pages.
	own := filepath.Join(s.Dir, filepath.Base(ruler.Program))
	if os.Link(program, own) != nil { // it is on another file system, or this one has no links
		text, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.WriteFile(own, text, 0o755), os.Chmod(own, 0o755)); err != nil {
			return nil, err
		}
	}
	dir, err := unix.Open(s.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Dir, err)
	}
	defer unix.Close(dir)
	// A socket's address holds 107 bytes, but a folder's path may be longer.
	name := filepath.Base(ruler.Socket)
	if s.l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)}); err != nil {
		return nil, fmt.Errorf("making a socket in %s: %w", s.Dir, err)
	}
	s.l.SetUnlinkOnClose(false) // by then the name means another folder, or none
	// Only root can enter the guest's folder. In the container, root there may connect.
	if err := os.Chmod(filepath.Join(s.Dir, name), 0o666); err != nil {
		s.l.Close()
		return nil, err
	}
	b.socket = s
	return s, nil
}

// Meet implements Meeting. It closes the socket in any case, so that programs that run in the container later cannot connect.
func (s *Socket) Meet(ctx context.Context) (ruler.Stream, int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.Died:
			cancel(errDied)
		case <-ctx.Done():
		}
	}()
	stop := context.AfterFunc(ctx, func() { s.l.Close() })
	defer stop()
	defer s.l.Close()
	conn, err := s.l.AcceptUnix()
	if err == nil {
		pid, err := peer(conn)
		if err != nil {
			conn.Close()
			return nil, 0, err
		}
		return conn, pid, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, 0, err
}

// peer asks the kernel for the host's id of the process at the other end. Only the ruler runs in a container before its hello. (A
// runtime writes its pid file, and an engine its state, only later.)
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
		return 0, fmt.Errorf("the program at the ruler's socket (process %d) is in a PID namespace that is not visible from here; run tare on the engine's host", cred.Pid)
	}
	return int(cred.Pid), nil
}
