//go:build linux

package proc

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Tick is the kernel's unit of CPU time for programs (USER_HZ), on every machine that Tare runs on.
const Tick = time.Second / 100

// CPUTime is what the CPUs of a machine together have spent since its start.
type CPUTime struct {
	All        time.Duration // including idle time
	Busy       time.Duration // with anything that runs here, including the kernel
	Interrupts time.Duration // part of Busy
	Stolen     time.Duration // used by others on the machine below this one, while something here was ready to run
}

// CPUTime reads it from /proc/stat (proc_stat(5)): for these CPUs, or for all if none is given.
func (t Tree) CPUTime(cpus ...int) (CPUTime, error) {
	text, err := t.Read("/proc/stat")
	if err != nil {
		return CPUTime{}, err
	}
	c, err := parseCPUTime(text, cpus)
	if err != nil {
		return CPUTime{}, fmt.Errorf("/proc/stat: %w", err)
	}
	return c, nil
}

func parseCPUTime(stat string, cpus []int) (c CPUTime, err error) {
	want := make(map[string]bool, len(cpus))
	for _, n := range cpus {
		want["cpu"+strconv.Itoa(n)] = true
	}
	if len(cpus) == 0 {
		want["cpu"] = true // the first line
	}
	for line := range strings.Lines(stat) {
		name, rest, _ := strings.Cut(line, " ")
		if !want[name] {
			continue
		}
		if err := c.add(rest); err != nil {
			return c, fmt.Errorf("%.100q: %w", line, err)
		}
		if delete(want, name); len(want) == 0 {
			return c, nil
		}
	}
	for name := range want {
		err = fmt.Errorf("no line of %s; is it online?", name)
	}
	return c, err
}

// add adds the numbers of a line.
func (c *CPUTime) add(numbers string) error {
	fields := strings.Fields(numbers)
	if len(fields) < 8 {
		return fmt.Errorf("%.60q: must be at least eight numbers", numbers)
	}
	// user, nice, system, idle, iowait, irq, softirq, steal. The rest is about VMs, and also included in user and nice.
	for i, text := range fields[:8] {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return fmt.Errorf("%.60q: must be a number", text)
		}
		d := time.Duration(n) * Tick
		c.All += d
		switch i {
		case 3, 4:
		case 7:
			c.Stolen += d
		case 5, 6:
			c.Interrupts += d
			c.Busy += d
		default:
			c.Busy += d
		}
	}
	return nil
}

// Usage is what a process or a thread has used.
type Usage struct {
	User, System time.Duration // CPU time
	Guest        time.Duration // part of User: in a VM's code
	MinorFaults  uint64
	MajorFaults  uint64
}

// Add adds the usage of another.
func (u *Usage) Add(v Usage) {
	u.User, u.System, u.Guest = u.User+v.User, u.System+v.System, u.Guest+v.Guest
	u.MinorFaults, u.MajorFaults = u.MinorFaults+v.MinorFaults, u.MajorFaults+v.MajorFaults
}

// Usage is what the process or thread with this folder in /proc has used itself, and what its waited-for children have used.
func (t Tree) Usage(dir string) (own, children Usage, err error) {
	of, err := t.stat(dir, 10, 11, 12, 13, 14, 15, 16, 17, 43, 44) // minflt, cminflt, majflt, cmajflt, utime, stime, cutime, cstime, guest_time, cguest_time
	if err != nil {
		return own, children, err
	}
	ticks := func(n uint64) time.Duration { return time.Duration(n) * Tick }
	own = Usage{ticks(of[4]), ticks(of[5]), ticks(of[8]), of[0], of[2]}
	children = Usage{ticks(of[6]), ticks(of[7]), ticks(of[9]), of[1], of[3]}
	return own, children, nil
}

// UsageOf is what these processes and their waited-for children have used. A process that has ended does not count.
func UsageOf(pids []int) (all Usage, err error) {
	for _, pid := range pids {
		own, children, err := Host.Usage(fmt.Sprintf("/proc/%d", pid))
		if Ended(err) {
			continue
		}
		if err != nil {
			return Usage{}, err
		}
		all.Add(own)
		all.Add(children)
	}
	return all, nil
}

// Used is the CPU time in UsageOf.
func Used(pids []int) (time.Duration, error) {
	u, err := UsageOf(pids)
	return u.User + u.System, err
}

// Demand is how much processes wanted from a machine.
type Demand struct {
	Ran    time.Duration // on a CPU
	Waited time.Duration // ready to run while another ran: waits that have ended (threads of a group beyond its quota do not count)
	Moved  int64         // bytes, from and to disks
	Slept  uint64        // how often a thread has gone to sleep
	Ready  bool          // a thread runs, or waits for a CPU
}

// Since is what was demanded since an earlier reading. Ready says that a thread has been ready all the time: none has gone to sleep, and
// one is ready now. Then what it neither ran nor waited is a wait that lasts, which the kernel counts at its end.
func (d Demand) Since(earlier Demand) Demand {
	return Demand{
		Ran: max(d.Ran-earlier.Ran, 0), Waited: max(d.Waited-earlier.Waited, 0), Moved: max(d.Moved-earlier.Moved, 0),
		Slept: d.Slept - min(d.Slept, earlier.Slept), Ready: d.Ready && d.Slept == earlier.Slept,
	}
}

// Demanded is what the present threads of these processes have demanded so far (/proc/PID/task/TID/schedstat and status), and what they
// and their waited-for children have moved (/proc/PID/io). A process that has ended does not count.
func Demanded(pids []int) (d Demand, err error) {
	for _, pid := range pids {
		tids, err := Threads(pid)
		if err != nil {
			return d, err
		}
		for _, tid := range tids {
			ran, waited, err := Host.runAndWait(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
			if Ended(err) {
				continue
			}
			if err != nil {
				return d, err
			}
			status, err := Host.Read(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
			if Ended(err) {
				continue
			}
			if err != nil {
				return d, err
			}
			slept, err := strconv.ParseUint(Field(status, "voluntary_ctxt_switches"), 10, 62)
			if err != nil {
				return d, fmt.Errorf("/proc/%d/task/%d/status: voluntary_ctxt_switches: %w", pid, tid, err)
			}
			d.Ran, d.Waited, d.Slept = d.Ran+ran, d.Waited+waited, d.Slept+slept
			d.Ready = d.Ready || strings.HasPrefix(Field(status, "State"), "R")
		}
		disk, err := Host.IO(fmt.Sprintf("/proc/%d", pid))
		if Ended(err) {
			continue
		}
		if err != nil {
			return d, err
		}
		d.Moved += int64(disk.Read + disk.Written)
	}
	return d, nil
}

// RunAndWait is how long a thread has run and how long it has waited for a core while it was ready (/proc/TID/schedstat).
func (t Tree) RunAndWait(tid int) (ran, waited time.Duration, err error) {
	return t.runAndWait(fmt.Sprintf("/proc/%d/task/%[1]d", tid))
}

// runAndWait does so for the thread with this folder in /proc.
func (t Tree) runAndWait(dir string) (ran, waited time.Duration, err error) {
	file := dir + "/schedstat"
	text, err := t.Read(file)
	if err != nil {
		return 0, 0, err
	}
	if ran, waited, err = parseSchedstat(text); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", file, err)
	}
	return ran, waited, nil
}

// Blocked is how long a thread has waited for block devices (proc_pid_stat(5), field 42). It is 0 unless kernel.task_delayacct is on.
func (t Tree) Blocked(tid int) (time.Duration, error) {
	const delayed = 42
	of, err := t.stat(fmt.Sprintf("/proc/%d/task/%[1]d", tid), delayed)
	if err != nil {
		return 0, err
	}
	return time.Duration(of[0]) * Tick, nil
}

// parseSchedstat parses the time on a CPU and the time waiting for one, in nanoseconds, and ignores the number of turns.
func parseSchedstat(text string) (ran, waited time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, 0, fmt.Errorf("%.60q: must be three numbers", text)
	}
	for i, to := range []*time.Duration{&ran, &waited} {
		n, err := strconv.ParseUint(fields[i], 10, 62)
		if err != nil {
			return 0, 0, err
		}
		*to = time.Duration(n)
	}
	return ran, waited, nil
}

// IO is how many bytes disks have read and written for a process and its waited-for children.
type IO struct {
	Read, Written uint64
	Cancelled     uint64 // part of Written: removed before it was written
}

// IO reads it, by the process's folder in /proc (proc_pid_io(5)).
func (t Tree) IO(dir string) (IO, error) {
	text, err := t.Read(dir + "/io")
	if err != nil {
		return IO{}, err
	}
	d, err := parseIO(text)
	if err != nil {
		return IO{}, fmt.Errorf("%s/io: %w", dir, err)
	}
	return d, nil
}

func parseIO(text string) (d IO, err error) {
	for _, f := range []struct {
		name string
		to   *uint64
	}{{"read_bytes", &d.Read}, {"write_bytes", &d.Written}, {"cancelled_write_bytes", &d.Cancelled}} {
		if *f.to, err = strconv.ParseUint(Field(text, f.name), 10, 61); err != nil {
			return IO{}, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return d, nil
}
