//go:build linux

package ruler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcher is a running program of launcher/launcher.c: it starts and times a trial's process.
type launcher struct {
	pid int
	in  *os.File // where it waits for a byte
	out *os.File // its report
}

// Flags for what it changes for a trial's process, as in launcher.c.
const (
	changeCredentials = 1 << iota
	changePages
	changeMerging
)

// report is its report. The times are in nanoseconds, the first two on the monotonic clock.
type report struct {
	Began, Ended int64
	Status       int64
	Error        int64 // errno; 0: none
	Done         int64 // number of times that follow
	Usage        syscall.Rusage
}

// monotonic reads the launcher's clock: CLOCK_MONOTONIC, not CLOCK_MONOTONIC_RAW. The first runs at the corrected rate of time
// keeping, and is never set. The second runs at the crystal's own rate, which differs between host and guest.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil { // no such kernel exists
		panic(err)
	}
	return time.Duration(t.Nano())
}

// start starts a launcher that waits to run p n times. p without a path is the empty program, in memory.
func (g *guest) start(p *program, out *outputs, n int) (_ *launcher, err error) {
	become, err := p.credentials()
	if err != nil {
		return nil, err
	}
	groups := make([]string, len(p.groups))
	for i, g := range p.groups {
		groups[i] = strconv.FormatUint(uint64(g), 10)
	}
	path := ""
	if !p.restorable {
		path = g.launch.inMemory()
	}
	if path == "" {
		if path, err = g.launch.file(g.scratch.path); err != nil {
			return nil, err
		}
		defer os.Remove(path) // the folder is the trial's, and a running program needs no name
	}
	in, begin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the launcher: %w", err)
	}
	defer in.Close()
	said, end, err := os.Pipe()
	if err != nil {
		begin.Close()
		return nil, fmt.Errorf("making a pipe for the launcher: %w", err)
	}
	defer end.Close()
	l := &launcher{in: begin, out: said}
	files := []uintptr{g.stdin.Fd(), uintptr(out[0].w), uintptr(out[1].w), in.Fd(), end.Fd()}
	if g.empty.inMemory() != "" {
		files = append(files, g.empty.memory.Fd())
	}
	changes := 0
	if become {
		changes += changeCredentials
	}
	if p.small {
		changes += changePages
	}
	if p.mergeable {
		changes += changeMerging
	}
	args := []string{g.launch.name, p.dir, strconv.Itoa(changes), strconv.FormatUint(uint64(p.uid), 10), strconv.FormatUint(uint64(p.gid), 10),
		strings.Join(groups, ","), strconv.Itoa(n), p.path}
	g.setOOM(g.oomAdj) // its children inherit the score
	l.pid, err = syscall.ForkExec(path, append(args, p.argv...), &syscall.ProcAttr{
		Dir: "/", Env: p.env, Files: files, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	g.setOOM(unkillable)
	if err != nil {
		l.close()
		if errors.Is(err, syscall.E2BIG) {
			return nil, p.explain(err)
		}
		return nil, fmt.Errorf("starting the launcher: %w", err)
	}
	return l, nil
}

// begin lets it start the process.
func (l *launcher) begin() {
	syscall.Write(int(l.in.Fd()), []byte{0}) // if this fails the launcher is dead, which is noticed
}

// kill kills the launcher and, because it is the parent, what it started. Its number stays its own until it is reaped.
func (l *launcher) kill() { syscall.Kill(l.pid, syscall.SIGKILL) }

// report reads its report at its end, and the time of each process.
func (l *launcher) report() (r report, took []time.Duration, err error) {
	said, err := io.ReadAll(l.out)
	if err != nil {
		return r, nil, fmt.Errorf("reading the launcher's report: %w", err)
	}
	b := bytes.NewReader(said)
	err = binary.Read(b, binary.NativeEndian, &r)
	if err == nil && r.Error == 0 {
		took = make([]time.Duration, r.Done)
		err = binary.Read(b, binary.NativeEndian, took)
	}
	if err != nil {
		return r, nil, errors.New("the launcher, which starts a trial's process and waits for it, was killed")
	}
	return r, took, nil
}

func (l *launcher) close() {
	l.in.Close()
	l.out.Close()
}
