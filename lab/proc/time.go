//go:build linux

package proc

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which the kernel gives CPU time to programs (USER_HZ), on every machine that Tare runs on.
const tick = time.Second / 100

// CPUTime is what the CPUs of a machine together have spent since it was started.
type CPUTime struct {
	All    time.Duration // idle time too
	Busy   time.Duration // with anything that runs here, the kernel too
	Stolen time.Duration // with others, on the machine below this one, while something here was ready to run
}

// CPUTime reads it.
func (t Tree) CPUTime() (CPUTime, error) {
	text, err := t.Read("/proc/stat")
	if err != nil {
		return CPUTime{}, err
	}
	return parseCPUTime(text)
}

func parseCPUTime(stat string) (c CPUTime, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return c, fmt.Errorf("/proc/stat begins with %.60q: cpu and eight numbers were expected", line)
	}
	// user, nice, system, idle, iowait, irq, softirq, steal; what follows is of VMs, and in user and nice too.
	for i, text := range fields[1:9] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return c, fmt.Errorf("/proc/stat: %w", err)
		}
		d := time.Duration(n) * tick
		c.All += d
		switch i {
		case 3, 4:
		case 7:
			c.Stolen = d
		default:
			c.Busy += d
		}
	}
	return c, nil
}

// Used is the CPU time that these processes have used, and those that they had started and waited for. One that has ended counts no more.
func Used(pids []int) (all time.Duration, err error) {
	for _, pid := range pids {
		of, err := stat(pid, 14, 15, 16, 17) // utime, stime, cutime, cstime
		if Ended(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, n := range of {
			all += time.Duration(n) * tick
		}
	}
	return all, nil
}

// Demand is how much processes wanted of a machine.
type Demand struct {
	Ran    time.Duration // on a CPU
	Waited time.Duration // ready to run, while another ran (the threads of a group beyond its quota do not count)
	Moved  int64         // bytes, from and to disks
}

// Demanded is what the threads that these processes have now have demanded so far (/proc/PID/task/TID/schedstat), and what they and those that they
// waited for have moved (/proc/PID/io). One that has ended counts no more.
func Demanded(pids []int) (d Demand, err error) {
	for _, pid := range pids {
		tids, err := Threads(pid)
		if err != nil {
			return d, err
		}
		for _, tid := range tids {
			text, err := Host.Read(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
			if Ended(err) {
				continue
			}
			if err != nil {
				return d, err
			}
			ran, waited, err := parseSchedstat(text)
			if err != nil {
				return d, fmt.Errorf("/proc/%d/task/%d/schedstat: %w", pid, tid, err)
			}
			d.Ran, d.Waited = d.Ran+ran, d.Waited+waited
		}
		text, err := Host.Read(fmt.Sprintf("/proc/%d/io", pid))
		if Ended(err) {
			continue
		}
		if err != nil {
			return d, err
		}
		moved, err := parseIO(text)
		if err != nil {
			return d, fmt.Errorf("/proc/%d/io: %w", pid, err)
		}
		d.Moved += moved
	}
	return d, nil
}

// parseSchedstat reads the time on a CPU and the time waiting for one, in nanoseconds, and ignores the number of turns.
func parseSchedstat(text string) (ran, waited time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, 0, fmt.Errorf("%.60q: three numbers were expected", text)
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

// parseIO reads how many bytes went from and to disks.
func parseIO(text string) (moved int64, err error) {
	for _, name := range []string{"read_bytes", "write_bytes"} {
		n, err := strconv.ParseUint(Field(text, name), 10, 61)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		moved += int64(n)
	}
	return moved, nil
}
