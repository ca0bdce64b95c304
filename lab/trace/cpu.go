//go:build linux

package trace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/notebook"
)

// cpu is the tracer of CPU time by what it was spent in, and of what interrupts and a hypervisor took.
var cpu = tracer{name: notebook.TracerCPU, count: func(f files, c *counters, t counted) error {
	return errors.Join(f.cpu(c, t), f.interrupts(c, t))
}}

// cpuUsage is CPU time in all, of which only a sample is known to be in the code or in the kernel.
const cpuUsage = "usage_s"

// Names in the kernel's file, and what they are here.
var cpuV2 = map[string]string{"user_usec": "user_s", "system_usec": "system_s"}

// cpu reads user and system time: of the guest's own cgroup; of a VM, or where there is none, of the guest's processes.
func (f files) cpu(c *counters, t counted) error {
	vcpus := slices.ContainsFunc(t.Threads, func(t engine.Thread) bool { return t.Role == notebook.RoleVCPU })
	if !vcpus {
		n, from, err := f.groupCPU(t)
		if err != nil {
			return err
		}
		if n != nil {
			c.figures = append(c.figures, counts{notebook.TracerCPU, from, n, false})
			return nil
		}
	}
	u, err := f.used(t)
	if err != nil {
		return fmt.Errorf("user_s and system_s: %w", err)
	}
	if f.tick == 0 {
		return errors.New("user_s and system_s: the kernel does not say in what unit /proc gives times")
	}
	n := f.times("", u)
	if vcpus {
		var u usage
		for _, th := range t.Threads {
			if th.Role != notebook.RoleVCPU {
				continue
			}
			one, err := f.stat(fmt.Sprintf("/proc/%d/task/%[1]d", th.ID))
			if err != nil {
				return fmt.Errorf("a virtual CPU's thread: %w", err)
			}
			one.childUser, one.childSystem, one.childGuest = 0, 0, 0 // they are the process's
			u.add(one)
		}
		maps.Copy(n, f.times(notebook.RoleVCPU+".", u))
	} else {
		delete(n, "guest_s") // nothing here runs a VM
	}
	c.figures = append(c.figures, counts{notebook.TracerCPU, "the guest's processes", n, false})
	c.missing.add(notebook.TracerCPU, "user_s and system_s in steps of %v", f.tick)
	return nil
}

// times are a usage's as figures. Time in a VM's code is user time too for the kernel, and not here.
func (f files) times(before string, u usage) map[string]uint64 {
	tick, guest := uint64(f.tick), u.guest+u.childGuest
	return map[string]uint64{
		before + "user_s":   (max(u.user+u.childUser, guest) - guest) * tick,
		before + "system_s": (u.system + u.childSystem) * tick,
		before + "guest_s":  guest * tick,
	}
}

// groupCPU reads CPU time of the guest's own cgroup; n is nil where it has none.
func (f files) groupCPU(t counted) (n map[string]uint64, from string, err error) {
	dir, err := f.ownGroup(t, "cpuacct")
	if err != nil || dir == "" {
		return nil, "", err
	}
	n = map[string]uint64{}
	for file, name := range map[string]string{"cpuacct.usage": cpuUsage, "cpuacct.usage_user": "user_s", "cpuacct.usage_sys": "system_s"} {
		text, err := f.text(dir + "/" + file)
		if gone(err) { // version 2
			n, err = f.take(dir+"/cpu.stat", cpuV2, uint64(time.Microsecond))
			if gone(err) {
				return nil, "", nil
			}
			return n, dir, err
		}
		if err != nil {
			return nil, "", err
		}
		if n[name], err = strconv.ParseUint(strings.TrimSpace(text), 10, 63); err != nil {
			return nil, "", fmt.Errorf("%s/%s: %.60q: expected a number of ns", dir, file, text)
		}
	}
	return n, dir, nil
}

// interrupts reads what took time from the guest's CPUs without being of anyone.
func (f files) interrupts(c *counters, t counted) error {
	const file = "/proc/stat"
	if f.tick == 0 {
		return errors.New("interrupt_s and steal_s: the kernel does not say in what unit /proc gives times")
	}
	text, err := f.text(file)
	if err != nil {
		return err
	}
	interrupt, steal, err := parseCPUs(text, t.CPUs)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c.figures = append(c.figures, counts{notebook.TracerCPU, file, map[string]uint64{
		"interrupt_s": interrupt * uint64(f.tick),
		"steal_s":     steal * uint64(f.tick),
	}, false})
	c.missing.add(notebook.TracerCPU, "interrupt_s and steal_s in steps of %v for each CPU", f.tick)
	return nil
}

// parseCPUs reads from /proc/stat (proc_stat(5)), in ticks, the time of interrupts and what a hypervisor took, of the given CPUs; of
// all where none is given.
func parseCPUs(text string, cpus []int) (interrupt, steal uint64, err error) {
	want := make(map[string]bool, len(cpus))
	for _, c := range cpus {
		want["cpu"+strconv.Itoa(c)] = true
	}
	if len(cpus) == 0 {
		want["cpu"] = true
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || !want[f[0]] {
			continue
		}
		delete(want, f[0])
		if len(f) < 9 {
			return 0, 0, fmt.Errorf("%.100q: expected at least 8 numbers", line)
		}
		for i, to := range map[int]*uint64{6: &interrupt, 7: &interrupt, 8: &steal} {
			n, err := strconv.ParseUint(f[i], 10, 63)
			if err != nil || n > counterLimit {
				return 0, 0, fmt.Errorf("%.100q: number %d is not one", line, i)
			}
			*to += n
		}
	}
	for c := range want {
		return 0, 0, fmt.Errorf("no line of %s; is it online?", c)
	}
	return interrupt, steal, nil
}
