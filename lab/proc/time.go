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
