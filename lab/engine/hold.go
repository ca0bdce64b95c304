//go:build linux

package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

// HoldToCPUs makes the cgroups in which the kernel confines a program to the CPUs of the guest's spec, whatever affinity the
// program sets. StartRuler starts the guest in them. One has the CPU set and nothing else. Where version 1 counts CPU time in
// another hierarchy, there is also one there, without limits. An *UnsupportedError says why the host cannot do this. Nothing is
// needed where the host has no other CPU.
func (b *Base) HoldToCPUs() error {
	all, err := cgroup.Mounted()
	if err != nil {
		return err
	}
	hs, why := holding(all)
	if why != "" {
		online, err := proc.OnlineCPUs()
		if err != nil {
			return err
		}
		if len(proc.IntersectCPUs(online, b.Spec.CPUs)) < len(online) {
			return &UnsupportedError{Engine: notebook.BM, What: "CPUs of its own", Why: why}
		}
		b.free = true
		b.Notes = append(b.Notes, notebook.Say("cpus-not-held", "cause", why))
		return nil
	}
	b.groups, err = b.MakeGroups(hs, []string{"cpuset"}, func(h cgroup.Hierarchy) ([]Setting, error) { return CPUSet(h, b.Spec.CPUs) })
	b.cloned = hs[0].V2
	return err
}

// CanHoldToCPUs says why HoldToCPUs cannot confine a guest on this host; "" if it can, as far as is known in advance.
func CanHoldToCPUs() (why string, err error) {
	all, err := cgroup.Mounted()
	if err != nil {
		return "", err
	}
	_, why = holding(all)
	return why, nil
}

// holding returns the hierarchies in which HoldToCPUs makes cgroups, or why there are none.
func holding(all cgroup.Hierarchies) (hs []cgroup.Hierarchy, why string) {
	i := slices.IndexFunc(all, func(h cgroup.Hierarchy) bool { return h.Has("cpuset") })
	if i < 0 {
		return nil, "no mounted hierarchy of cgroups has the controller cpuset, and nothing else keeps a program on its CPUs; mount one (mount -t cgroup -o cpuset none /sys/fs/cgroup/cpuset), or take the other CPUs offline (other_cpus: offline)"
	}
	if all[i].V2 || all[i].Has("cpuacct") {
		return all[i : i+1], ""
	}
	count := all.V1("cpuacct")
	if count == nil {
		return nil, "no mounted hierarchy of cgroups has the controller cpuacct, which shows whether a program left its CPUs; mount one (mount -t cgroup -o cpuacct none /sys/fs/cgroup/cpuacct)"
	}
	return []cgroup.Hierarchy{all[i], *count}, ""
}

// CPUSet returns the settings that give a cgroup these CPUs, in a hierarchy with CPU sets; none in any other.
func CPUSet(h cgroup.Hierarchy, cpus []int) (set []Setting, err error) {
	if !h.Has("cpuset") {
		return nil, nil
	}
	set = []Setting{{"cpuset.cpus", notebook.FormatCPUList(cpus)}}
	if !h.V2 { // version 1 takes no process before its group has memory nodes: use all
		mems, err := os.ReadFile(filepath.Join(h.At, "cpuset.mems"))
		if err != nil {
			return nil, err
		}
		set = append(set, Setting{"cpuset.mems", strings.TrimSpace(string(mems))})
	}
	return set, nil
}

// entering makes cmd start in the guest's groups. In version 1 it is the child of a thread that setUp moves there; in version 2 it
// is started there with clone3(2). Neither waits for every CPU to pass through its scheduler, as moving a whole process does. Call
// done when the command has started.
func (b *Base) entering(cmd *exec.Cmd) (setUp []func() error, done func(), err error) {
	if len(b.groups) == 0 {
		return nil, func() {}, nil
	}
	if !b.cloned {
		for _, dir := range b.groups {
			setUp = append(setUp, func() error { return WriteSetting(filepath.Join(dir, "tasks"), "0") }) // 0: the writing thread
		}
		return setUp, func() {}, nil
	}
	dir, err := os.Open(b.groups[0])
	if err != nil {
		return nil, nil, err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return nil, func() { dir.Close() }, nil
}

// CountMemory makes a cgroup without limits, in which the kernel counts all memory that it has for the guest. The method StartTied
// starts the guest in it. Where no hierarchy of cgroups can count memory, it makes none.
func (b *Base) CountMemory() error {
	all, err := cgroup.Mounted()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(h cgroup.Hierarchy) bool { return h.Has("memory") })
	if i < 0 {
		return nil
	}
	b.groups, err = b.MakeGroups(all[i:i+1], []string{"memory"}, func(cgroup.Hierarchy) ([]Setting, error) { return nil, nil })
	b.cloned = all[i].V2
	if _, refused := errors.AsType[*UnsupportedError](err); refused {
		return nil
	}
	return err
}

// StartTied is the function StartTied in the guest's cgroups.
func (b *Base) StartTied(cmd *exec.Cmd) (*Process, error) {
	setUp, done, err := b.entering(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	return StartTied(cmd, setUp...)
}

// HeldToCPUs checks that the guest is in cgroups of its own with the CPU set of its spec, as made by HoldToCPUs.
func (b *Base) HeldToCPUs() error {
	if b.free {
		return nil
	}
	h, err := cgroup.HeldAt(b.PID)
	if err != nil {
		return err
	}
	if name := ContainerName(b.Spec.ID); filepath.Base(h.Set.Dir) != name || filepath.Base(h.Count.Dir) != name {
		return fmt.Errorf("its ruler is in the cgroups %q and %q, not in those called %s", h.Set.Dir, h.Count.Dir, name)
	}
	cpus, err := h.CPUs()
	if err == nil && !slices.Equal(cpus, b.Spec.sortedCPUs()) {
		err = errors.New("its cgroup has the CPUs " + notebook.FormatCPUList(cpus) + ", not " + notebook.FormatCPUList(b.Spec.CPUs))
	}
	return err
}

// sortedCPUs are the spec's CPUs in ascending order.
func (s Spec) sortedCPUs() []int { return slices.Sorted(slices.Values(s.CPUs)) }
