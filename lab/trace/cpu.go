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
	"tare/lab/proc"
	"tare/notebook"
)

// The tracer of CPU time, by its use, and of what interrupts and a hypervisor took.
var _ = add(tracer{name: notebook.TracerCPU, count: func(f files, c *counters, t counted) error {
	return errors.Join(f.cpu(c, t), f.interrupts(c, t))
}})

// cpuUsage is the total CPU time; its division into user and kernel time is only known from samples.
const cpuUsage = "usage_s"

// Names in the kernel's file, and the figures' names here.
var cpuV2 = map[string]string{"user_usec": "user_s", "system_usec": "system_s"}

// cpu reads user and system time: of the guest's own cgroup or, for a VM or without a cgroup, of the guest's processes.
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
	n := times("", u)
	if vcpus {
		var u proc.Usage
		for _, th := range t.Threads {
			if th.Role != notebook.RoleVCPU {
				continue
			}
			own, _, err := f.Usage(fmt.Sprintf("/proc/%d/task/%[1]d", th.ID)) // children belong to the process
			if err != nil {
				return fmt.Errorf("a virtual CPU's thread: %w", err)
			}
			u.Add(own)
		}
		maps.Copy(n, times(notebook.RoleVCPU+".", u))
	} else {
		delete(n, "guest_s") // no VM runs here
	}
	c.figures = append(c.figures, counts{notebook.TracerCPU, "the guest's processes", n, false})
	c.missing.add(notebook.TracerCPU, notebook.Say("times-in-steps", "figures", []string{"user_s", "system_s"}, "step", proc.Tick))
	return nil
}

// times are a usage as figures. The kernel counts time in a VM's code as user time, too; this function does not.
func times(before string, u proc.Usage) map[string]uint64 {
	return map[string]uint64{
		before + "user_s":   uint64(max(u.User, u.Guest) - u.Guest),
		before + "system_s": uint64(u.System),
		before + "guest_s":  uint64(u.Guest),
	}
}

// groupCPU reads the CPU time of the guest's own cgroup; n is nil if it has none.
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
			return nil, "", fmt.Errorf("%s/%s: %.60q: must be a number of ns", dir, file, text)
		}
	}
	return n, dir, nil
}

// interrupts reads what took time from the guest's CPUs without belonging to anyone.
func (f files) interrupts(c *counters, t counted) error {
	all, err := f.CPUTime(t.CPUs...)
	if err != nil {
		return err
	}
	c.figures = append(c.figures, counts{notebook.TracerCPU, "/proc/stat", map[string]uint64{
		"interrupt_s": uint64(all.Interrupts),
		"steal_s":     uint64(all.Stolen),
	}, false})
	c.missing.add(notebook.TracerCPU, notebook.Say("times-in-steps-by-cpu", "figures", []string{"interrupt_s", "steal_s"}, "step", proc.Tick))
	return nil
}
