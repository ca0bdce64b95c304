//go:build linux

package ruler

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main is the program ruler, the first process of a guest: it prepares this process, serves, and returns the exit status.
// It is to be called before anything else is set up, since what a process has, its children get. On failure one
// line goes to standard error.
//
//	--connect PATH  serve on this Unix socket, which the host listens on
//	--fd N          serve on this open file: a connected socket, or a serial port; 0 is standard input, which is answered on standard output
//	--root DIR      first make DIR the root (bare metal: an image without a namespace). The socket and /proc are
//	                opened before.
//	--tracer N      the open file of the program that traces trials from inside the guest
//	--machine       this guest is a machine of its own: the hello says which
//	--init PROGRAM  become PROGRAM, a system's init, and serve from a child: process 1 is the system's own then
//	--hook PROGRAM  become PROGRAM, a hook of a container's, with the arguments after --, once standard input was read: see HookArgs
//	--power-off     that child's: end the machine, or the container, when the stream has ended
func Main(args []string) int {
	flags := flag.NewFlagSet("ruler", flag.ContinueOnError)
	connect := flags.String("connect", "", "Unix socket `PATH` of the host to serve on")
	fd := flags.Int("fd", -1, "open file `N` to serve on: a connected socket or a serial port; 0: standard input and output")
	root := flags.String("root", "", "first make `DIR` the root")
	tracer := flags.Int("tracer", -1, "open file `N` of the program that traces trials")
	machine := flags.Bool("machine", false, "describe this machine: its CPUs' features, sockets, cores and NUMA nodes")
	init := flags.String("init", "", "become `PROGRAM`, a system's init, with the ruler as its child")
	hook := flags.String("hook", "", "become `PROGRAM`, a container's hook, with the arguments after --, after reading standard input")
	powerOff := flags.Bool("power-off", false, "end the machine, or the container, when the stream has ended")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "The measuring process in a guest; tare starts it itself. For example:\n\n"+
			"  ruler --connect /.tare/run/ruler.sock\n\n")
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *hook != "":
		fmt.Fprintf(os.Stderr, "ruler: %v\n", becomeHook(*hook, flags.Args()))
		return 1
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "ruler: %q: only flags are allowed\n", flags.Arg(0))
		return 2
	case (*connect == "") == (*fd < 0):
		fmt.Fprintln(os.Stderr, "ruler: needs --connect PATH or --fd N to reach its host")
		return 2
	}
	if *init != "" {
		err := stepAside(*init, *connect, *fd, *tracer, *machine)
		fmt.Fprintf(os.Stderr, "ruler: %v\n", err)
		return 1
	}
	err := mainErr(*connect, *fd, *root, *tracer, *machine)
	if *powerOff {
		err = errors.Join(err, leave())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "ruler: %v\n", err)
		return 1
	}
	return 0
}

// stepAside leaves process 1 to a system's own init: it starts the ruler again as a child, and becomes init. It returns only on
// failure. The child is the first of the system's processes that init finds. systemd takes it for one of its own scope and does
// not touch it.
func stepAside(init, connect string, fd, tracer int, machine bool) error {
	args, files := []string{"ruler", "--power-off"}, []uintptr{0, 1, 2}
	hand := func(flag string, fd int) {
		args = append(args, flag, strconv.Itoa(len(files)))
		files = append(files, uintptr(fd))
	}
	if connect != "" {
		args = append(args, "--connect", connect)
	} else {
		hand("--fd", fd)
	}
	if tracer >= 0 {
		hand("--tracer", tracer)
	}
	if machine {
		args = append(args, "--machine")
	}
	if _, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true}, // init needs its own terminal
	}); err != nil {
		return fmt.Errorf("starting the ruler next to %s: %w", init, err)
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping open files from %s: %w", init, err)
	}
	return fmt.Errorf("becoming %s: %w", init, syscall.Exec(init, []string{init}, os.Environ()))
}

// leave ends the system of this process: a PID namespace, whose processes the kernel then kills, or the machine, at once and
// without writing anything to disk. A machine without ACPI cannot power off, but its reset ends it too.
func leave() error {
	how := syscall.LINUX_REBOOT_CMD_POWER_OFF
	if cmdline, err := os.ReadFile("/proc/cmdline"); err == nil && slices.Contains(strings.Fields(string(cmdline)), noACPI) {
		how = syscall.LINUX_REBOOT_CMD_RESTART
	}
	if err := syscall.Reboot(how); err != nil {
		return fmt.Errorf("ending the system: %w", err)
	}
	return nil
}

// noACPI on the kernel's command line turns ACPI off.
const noACPI = "acpi=off"

func mainErr(connect string, fd int, root string, tracer int, machine bool) error {
	if connect != "" {
		var err error
		if fd, err = dial(connect); err != nil {
			return fmt.Errorf("reaching the host: %w", err)
		}
	}
	stream, err := openStream(fd)
	if err != nil {
		return fmt.Errorf("the stream to the host, file %d: %w", fd, err)
	}
	// For the host, the guest runs from this byte on. The protocol begins when everything is prepared, and the host skips what
	// comes before.
	if _, err := stream.Write([]byte("\n")); err != nil {
		return fmt.Errorf("the stream to the host: %w", err)
	}
	o := Options{Machine: machine}
	if proc, err := os.OpenRoot("/proc"); err == nil {
		o.Proc = proc
	}
	if tracer >= 0 {
		o.Tracer = fmt.Sprintf("/proc/self/fd/%d", tracer)
	}
	if root != "" {
		if err := syscall.Chroot(root); err != nil {
			return fmt.Errorf("making %s the root: %w", root, err)
		}
	}
	// Also without --root: the trials must not inherit the folder in which the ruler was started.
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	// On every platform a trial has only its own groups. Where this is not allowed (a container without the capability) there are
	// none to drop.
	if groups, err := syscall.Getgroups(); err != nil || len(groups) > 0 { // dropping them interrupts every thread
		if err := syscall.Setgroups(nil); err != nil && !errors.Is(err, syscall.EPERM) {
			return fmt.Errorf("giving up groups: %w", err)
		}
	}
	// And it has the usual mask.
	syscall.Umask(0o022)
	return Serve(stream, o)
}

// dial connects to a Unix socket.
func dial(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

// openStream makes a stream from an open file. Readers notice at once when a socket or pipe ends; a virtual machine's serial port
// stays unchanged. (Package net, which could do this too, is a fifth of this program.)
func openStream(fd int) (io.ReadWriteCloser, error) {
	if fd == 0 { // mostly pipes: those of an ssh server, on a machine with a load
		in, err := openFile(0)
		if err != nil {
			return nil, err
		}
		// If its reader is gone, a write to standard output would end a Go program. Catch the signal instead of ignoring it,
		// because the trials' processes would inherit that.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		out, err := openFile(1)
		return stdio{in, out}, err
	}
	return openFile(fd)
}

// stdio is standard input and standard output as one stream.
type stdio struct{ in, out *os.File }

func (s stdio) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s stdio) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s stdio) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }

func openFile(fd int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFSOCK || kind == unix.S_IFIFO {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), "stream"), nil
}
