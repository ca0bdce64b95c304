//go:build linux

package ruler

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/ruler/remains"
	"tare/notebook"
)

// guest carries out orders for real.
type guest struct {
	proc    *os.Root // nil without /proc: the ruler still measures, and reports what it cannot do when that matters
	scratch scratch
	stdin   *os.File
	oom     *os.File // its own oom_score_adj, open for writing; nil where the ruler cannot be protected
	oomAdj  []byte   // the earlier value, which a trial's processes get
	empty   tiny
	launch  tiny
	buffers [2][]byte // for reading the two outputs
	tracer  string
	machine bool
	remains remains.Remains
	child   chan os.Signal // a signal has come since the last read: a child may have ended
}

// newGuest prepares this process, until it ends.
func newGuest(o Options) (g *guest, err error) {
	g = &guest{
		proc: o.Proc, tracer: o.Tracer, machine: o.Machine,
		empty: tiny{name: "empty", code: exits[runtime.GOARCH]}, launch: tiny{name: LauncherName, code: launcherCode},
		child: make(chan os.Signal, 1),
	}
	signal.Notify(g.child, syscall.SIGCHLD) // before the first child
	// The trials must not see the files that the engine left open in this process. On a kernel that cannot do this (before 5.11, or
	// a sandbox) they stay open.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) &&
		!errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return g, fmt.Errorf("keeping open files from the trials: %w", err)
	}
	if g.scratch, err = openScratch(o.Scratch); err != nil {
		return g, err
	}
	if g.stdin, err = openStdin(); err != nil {
		return g, err
	}
	if os.Getpid() != 1 { // process 1 is their parent anyway, and user-mode QEMU 7.2 refuses the call
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return g, fmt.Errorf("becoming the parent of orphaned processes (PR_SET_CHILD_SUBREAPER): %w", err)
		}
	}
	if err := heedSignals(); err != nil {
		return g, err
	}
	for i := range g.buffers {
		g.buffers[i] = make([]byte, 64<<10)
	}
	g.protect()
	return g, nil
}

// openStdin opens an empty standard input for a trial's process. An image may lack /dev/null.
func openStdin() (*os.File, error) {
	f, err := os.Open("/dev/null")
	if err == nil {
		if st, serr := f.Stat(); serr == nil && st.Mode()&os.ModeCharDevice != 0 {
			return f, nil
		}
		f.Close() // another file of that name
	}
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making an empty standard input: %w", err)
	}
	syscall.Close(p[1])
	return os.NewFile(uintptr(p[0]), "empty input"), nil
}

// unkillable is the score of a process that the kernel never kills when memory is out.
var unkillable = []byte("-1000")

// protect keeps the ruler alive when the guest's memory is out, so that it can report that. A trial's processes get the ruler's
// earlier score. Where this is not allowed (a container without CAP_SYS_RESOURCE) the ruler is still one of the smallest processes.
func (g *guest) protect() {
	if g.proc == nil {
		return
	}
	f, err := g.proc.OpenFile("self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return
	}
	adj := make([]byte, len("-1000\n"))
	n, err := syscall.Pread(int(f.Fd()), adj, 0)
	if err == nil {
		_, err = syscall.Pwrite(int(f.Fd()), unkillable, 0)
	}
	if err != nil {
		f.Close()
		return
	}
	g.oom, g.oomAdj = f, adj[:n]
}

// setOOM writes the score that children inherit. It cannot fail if protect has succeeded, and nothing could be done about a
// failure.
func (g *guest) setOOM(adj []byte) {
	if g.oom != nil {
		syscall.Pwrite(int(g.oom.Fd()), adj, 0)
	}
}

func (g *guest) hello() (Hello, error) {
	h := Hello{Version: ProtocolVersion, PID: os.Getpid()}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return h, fmt.Errorf("asking for the kernel's release: %w", err)
	}
	h.Kernel = strings.ToValidUTF8(unix.ByteSliceToString(u.Release[:]), "?")
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return h, fmt.Errorf("asking for the CPUs that may be used: %w", err)
	}
	for i, mask := range set { // nearly all are 0
		for m := uint(mask); m != 0; m &= m - 1 {
			h.CPUs = append(h.CPUs, i*bits.UintSize+bits.TrailingZeros(m))
		}
	}
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return h, fmt.Errorf("asking for the memory's size: %w", err)
	}
	h.Memory = int64(si.Totalram) * int64(si.Unit)
	if g.machine && g.proc != nil {
		if info, err := g.proc.ReadFile("cpuinfo"); err == nil {
			h.CPUFlags = cpuFlags(string(info))
			h.Sockets, h.Threads = sockets(string(info))
		}
		if info, err := g.proc.ReadFile("buddyinfo"); err == nil {
			h.Nodes = nodes(string(info))
		}
		if line, err := g.proc.ReadFile("cmdline"); err == nil {
			h.Cmdline = strings.ToValidUTF8(strings.TrimSpace(string(line[:min(len(line), maxText)])), "?")
		}
	}
	return h, nil
}

// cpuFlags finds the first CPU's features in /proc/cpuinfo.
func cpuFlags(info string) []string {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); name == "flags" || name == "Features" {
			return strings.Fields(strings.ToValidUTF8(value, "?"))
		}
	}
	return nil
}

// sockets counts the sockets in /proc/cpuinfo, and the threads of the first core. A kernel for one CPU lists neither.
func sockets(info string) (sockets, threads int) {
	seen := map[string]bool{}
	siblings := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		n, _ := strconv.Atoi(value) // a value that is not a number counts nothing
		switch strings.TrimSpace(name) {
		case "physical id":
			seen[value] = true
		case "siblings": // threads of the socket
			siblings = n
		case "cpu cores":
			if n > 0 && threads == 0 {
				threads = siblings / n
			}
		}
	}
	return max(1, len(seen)), max(1, threads)
}

// nodes counts the NUMA nodes in /proc/buddyinfo, which has a line for each zone of each.
func nodes(info string) int {
	seen := map[string]bool{}
	for line := range strings.Lines(info) {
		if node, _, ok := strings.Cut(line, ","); ok {
			seen[node] = true
		}
	}
	return len(seen)
}

// oomKills is the number of processes that the kernel has killed for memory since its start; 0 where it does not count.
func (g *guest) oomKills() int64 {
	if g.proc == nil {
		return 0
	}
	return OOMKills(g.proc.FS())
}

func (g *guest) run(o *Order, c *control, ready func() bool, ended func(lead, late time.Duration)) Result {
	failed := func(err error) Result { return Result{Error: err.Error()} }
	if err := g.sweep(nil); err != nil {
		return failed(fmt.Errorf("of an earlier trial: %w", err))
	}
	if !o.KeepScratch {
		if err := g.scratch.empty(c.stopped); err != nil {
			return failed(err)
		}
	}
	p, err := g.program(o)
	if err != nil {
		return failed(err)
	}
	out, err := newOutputs(g.buffers, o.OutputLimit)
	if err != nil {
		return failed(err)
	}
	defer out.close()
	var look *remains.Look
	if o.Remains {
		look = g.remains.Before(remains.Work{Env: o.Env, Dir: o.Dir, Scratch: g.scratch.path})
	}
	oomBefore := g.oomKills()
	trace := g.trace(o.Tracers)
	l, err := g.start(p, out, max(o.Times, 1))
	if err != nil {
		trace.close(0)
		return failed(err)
	}
	defer l.close()
	// Now, so that it does not come later: the collector does not run by itself.
	runtime.GC()
	// The clock of the time limit starts here rather than with the process, because setting it wakes a thread.
	timer := time.AfterFunc(o.Timeout, func() { c.stop(timedOut) })
	defer timer.Stop()
	if !ready() {
		trace.close(0)
		return failed(fmt.Errorf("not started: %s", orElse(c.why(), "the host did not say go")))
	}
	said := monotonic()
	r := g.trial(l, p, c, trace.process(), func(began, over time.Duration) { ended(began-said, monotonic()-over) })
	r.Trace = trace.close(r.Elapsed)
	if o.Times == 0 {
		r.Took = nil // equal to Elapsed
	}
	var left usageSum
	if err := g.sweep(&left); err != nil {
		r.Error = err.Error()
	}
	r.LeftS = (left.user + left.system).Seconds()
	if look != nil {
		r.Found = look.After(r.Error == "" && r.Exit == 0 && r.Signal == "" && !r.TimedOut)
	}
	r.Stdout, r.Stderr, r.Truncated = out.finish()
	r.OOMKills = max(0, g.oomKills()-oomBefore)
	return r
}

// program finds the order's program.
func (g *guest) program(o *Order) (*program, error) {
	if len(o.Argv) > 0 {
		return newProgram(o, g.scratch.path)
	}
	if g.empty.inMemory() != "" {
		return &program{argv: []string{"empty"}, dir: g.scratch.path}, nil
	}
	path, err := g.empty.file(g.scratch.path)
	if err != nil {
		return nil, err
	}
	return newProgram(&Order{Argv: []string{path}}, g.scratch.path)
}

// trial runs one process and measures it. Everything possible is done before the clock starts, or after it has stopped. As soon as
// the process is reaped, trial calls ended with the times of its start and its end. tracer is the process that traces it, or 0.
func (g *guest) trial(l *launcher, p *program, c *control, tracer int, ended func(began, over time.Duration)) (r Result) {
	var (
		status syscall.WaitStatus
		usage  syscall.Rusage
		total  = usageSum{tracer: tracer}
		err    error
	)
	began := monotonic()
	c.running(l.kill)
	l.begin()
	for {
		// Any child: an orphan of the trial is reaped as soon as it ends; otherwise dead processes would accumulate.
		var got int
		got, err = syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		if got == l.pid || err != nil && err != syscall.EINTR {
			break
		}
		switch {
		case err != nil:
		case got > 0:
			total.reaped(got, &usage)
		default:
			<-g.child // not in wait4: see Serve
		}
	}
	why := c.over()
	if err != nil {
		return Result{Error: fmt.Sprintf("waiting for the trial's launcher: %v", err)}
	}
	report, took, err := l.report()
	switch {
	case err == nil && report.Error != 0:
		return Result{Error: p.explain(syscall.Errno(report.Error)).Error()}
	case err == nil:
		ended(time.Duration(report.Began), time.Duration(report.Ended))
		r.Elapsed = time.Duration(report.Ended - report.Began)
		r.Took = took
		total.add(&report.Usage)
		status = syscall.WaitStatus(report.Status)
	case why == "":
		return Result{Error: err.Error()}
	default:
		// The launcher was killed, as why says, and with it the process, whose parent it was.
		r.Elapsed = monotonic() - began
		ended(began, began+r.Elapsed)
		if err := g.sweep(&total); err != nil {
			return Result{Error: err.Error()}
		}
	}
	r.Usage = total.usage()
	if r.Signal = signalName(status); r.Signal == "" {
		r.Exit = status.ExitStatus()
	}
	switch why {
	case "":
	case timedOut:
		r.TimedOut = true
	default:
		r.Error = why
	}
	return r
}

// signalName names the signal that ended a process; "" if none did.
func signalName(s syscall.WaitStatus) string {
	if !s.Signaled() {
		return ""
	}
	if name := unix.SignalName(s.Signal()); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s.Signal())) // real-time signals have no names
}

// usageSum adds up the kernel's accounts of reaped processes.
type usageSum struct {
	user, system time.Duration
	rest         notebook.Usage

	tracer int // process that traces the trial, until it is reaped; its usage is not the trial's
}

// reaped adds the usage of a process of the trial.
func (s *usageSum) reaped(pid int, u *syscall.Rusage) {
	if pid == s.tracer {
		s.tracer = 0 // another process may get the number
		return
	}
	s.add(u)
}

func (s *usageSum) add(u *syscall.Rusage) {
	s.user += time.Duration(u.Utime.Nano())
	s.system += time.Duration(u.Stime.Nano())
	s.rest.MaxRSS = max(s.rest.MaxRSS, int64(u.Maxrss)*1024)
	s.rest.MinFlt += int64(u.Minflt)
	s.rest.MajFlt += int64(u.Majflt)
	s.rest.VCSw += int64(u.Nvcsw)
	s.rest.IVCSw += int64(u.Nivcsw)
}

// usage is the sum.
func (s *usageSum) usage() notebook.Usage {
	u := s.rest
	u.UserS, u.SystemS = s.user.Seconds(), s.system.Seconds()
	return u
}

// sweep kills and reaps every process that descends from this one, and adds their usage to total, if it is not nil. It kills only
// children: a child's id cannot become another's before it is reaped here. When a child dies, its own children become children of
// this process, the subreaper. So a few rounds reach everything, and nothing else is ever hit.
func (g *guest) sweep(total *usageSum) error {
	if none, _ := reap(total); none {
		return nil
	}
	deadline := time.NewTimer(sweepTime)
	defer deadline.Stop()
	for {
		killErr := g.killChildren()
		// Reap after killing: an earlier death leaves no signal to wait for.
		none, reaped := reap(total)
		if none {
			return nil
		}
		if reaped {
			continue // their children may now be ours
		}
		if killErr != nil {
			return killErr
		}
		select {
		case <-g.child:
		case <-deadline.C:
			return fmt.Errorf("processes that the trial started did not die within %v of SIGKILL (they are in uninterruptible sleep,  "+
				"or started faster than they can be killed); destroy the guest", sweepTime)
		}
	}
}

// reap reaps dead children. It reports whether no child is left, and whether it reaped one.
func reap(total *usageSum) (none, reaped bool) {
	for {
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, &usage)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD, the only other error
			return true, reaped
		case pid == 0:
			return false, reaped
		default:
			reaped = true
			if total != nil {
				total.reaped(pid, &usage)
			}
		}
	}
}

// killChildren kills every child of this process.
func (g *guest) killChildren() error {
	self := os.Getpid()
	if self == 1 {
		// Everything in this namespace (or this VM) at once. On a host the ruler is never process 1.
		if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("killing what the trial left: %w", err)
		}
		return nil
	}
	if g.proc == nil {
		return errors.New("the trial left processes behind, and without /proc they cannot be found; mount it in the guest")
	}
	dir, err := g.proc.Open(".")
	if err != nil {
		return fmt.Errorf("looking for what the trial left: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("looking for what the trial left: %w", err)
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := g.proc.ReadFile(name + "/stat")
		if err != nil {
			continue // it is gone
		}
		if parentOf(string(stat)) == self {
			syscall.Kill(pid, syscall.SIGKILL) // it may fail only because the process is dead
		}
	}
	return nil
}

// parentOf finds the parent in a /proc/PID/stat; 0 if the text is not one. The command's name, in parentheses, may contain
// anything.
func parentOf(stat string) int {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return 0
	}
	fields := strings.Fields(stat[i+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pid
}

func (g *guest) finish() error {
	defer signal.Stop(g.child)
	return g.sweep(nil)
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// outputs are a trial's standard output and standard error.
type outputs [2]*output

func newOutputs(buffers [2][]byte, limit int) (*outputs, error) {
	var out outputs
	for i := range out {
		o, err := newOutput(buffers[i], limit)
		if err != nil {
			out.close()
			return nil, err
		}
		out[i] = o
	}
	return &out, nil
}

func (out *outputs) close() {
	for _, o := range out {
		if o != nil {
			o.close()
		}
	}
}

// finish ends the collection and returns the end of each output, and whether some is missing.
func (out *outputs) finish() (stdout, stderr []byte, truncated bool) {
	out.close()
	return out[0].last(), out[1].last(), out[0].cut || out[1].cut
}

// output reads what a trial's process prints and keeps the end. This process holds the pipe's writing end open until the trial is
// over, so that the end of the process wakes no reader while the clock runs.
type output struct {
	r     *os.File
	w     int
	limit int
	tail  []byte
	cut   bool
	done  chan struct{}
}

func newOutput(buf []byte, limit int) (*output, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making a pipe for the trial's output: %w", err)
	}
	// Only the reading end: the writing end must block, as programs expect.
	if err := syscall.SetNonblock(p[0], true); err != nil {
		syscall.Close(p[0])
		syscall.Close(p[1])
		return nil, fmt.Errorf("preparing a pipe for the trial's output: %w", err)
	}
	o := &output{r: os.NewFile(uintptr(p[0]), "output"), w: p[1], limit: limit, done: make(chan struct{})}
	go o.collect(buf)
	return o, nil
}

func (o *output) collect(buf []byte) {
	defer close(o.done)
	for {
		n, err := o.r.Read(buf)
		o.tail = append(o.tail, buf[:n]...)
		if over := len(o.tail) - o.limit; over > 0 {
			o.cut = true
			if over >= o.limit { // rarely, so that a flood is not copied at each read
				o.tail = append(o.tail[:0], o.tail[over:]...)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				o.cut = true
			}
			return
		}
	}
}

// last is the kept output, after close.
func (o *output) last() []byte { return o.tail[max(0, len(o.tail)-o.limit):] }

// close ends the collection. All writers are dead, so the pipe ends when this process closes its end; if one did not die, a
// deadline ends it. close may be called more than once.
func (o *output) close() {
	if o.w < 0 {
		return
	}
	syscall.Close(o.w)
	o.w = -1
	o.r.SetReadDeadline(time.Now().Add(drainTime)) // a pipe always supports deadlines
	<-o.done
	o.r.Close()
}
