//go:build linux

package layers

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// inForce checks, by the kernel's own files, that the guest has its layers and none of the others.
func (g *guest) inForce(s engine.Spec) error {
	pid := g.Process.PID()
	var wrong []string
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	l, err := g.Limits()
	if err != nil {
		return err
	}
	want := notebook.Limits{CPUs: notebook.FormatCPUList(s.CPUs)}
	if g.has("quota") {
		want.Quota = s.Instance.Cores
	}
	if g.has("memory") {
		want.Memory = s.Instance.Memory
	}
	wrong = append(wrong, engine.Differences(l, want)...)
	for _, dir := range g.dirs {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(string(b)), strconv.Itoa(pid)) {
			say("no part in cgroup %s", dir)
		}
	}
	if err := g.HeldToCPUs(); err != nil {
		say("%v", err)
	}
	for _, n := range namespaces {
		ours, err := os.Readlink("/proc/self/ns/" + n.name)
		if err != nil {
			return err
		}
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, n.name))
		if err != nil {
			return err
		}
		if own := its != ours; own != g.owns(n.layer) {
			say("%s namespace %s and the host %s, where own: %t was to be", n.name, its, ours, g.owns(n.layer))
		}
	}
	ruler, err := statusOf(pid)
	if err != nil {
		return err
	}
	tare, err := statusOf(os.Getpid())
	if err != nil {
		return err
	}
	filters := tare.filters
	if g.has("seccomp") {
		filters++
	}
	if ruler.filters != filters {
		say("%d seccomp filters, not %d", ruler.filters, filters)
	}
	caps := tare.bounding
	if g.has("capabilities") {
		left, err := capabilities()
		if err != nil {
			return err
		}
		caps = 0
		for _, c := range left {
			caps |= 1 << c
		}
		caps &= tare.bounding
	}
	if ruler.bounding != caps || ruler.effective != caps {
		say("%d capabilities (%x, bounding %x), not %d (%x)", bits.OnesCount64(ruler.effective), ruler.effective, ruler.bounding, bits.OnesCount64(caps), caps)
	}
	if wrong != nil {
		return fmt.Errorf("the kernel's files (/proc/%d, %s) give the guest %s; is tare itself in a container or a cgroup with limits?", pid, l.Source, strings.Join(wrong, " and "))
	}
	return nil
}

// status is what /proc/PID/status says about a process's rights.
type status struct {
	filters             int // of seccomp
	effective, bounding uint64
}

func statusOf(pid int) (s status, err error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	text, err := proc.Host.Read(file)
	if err != nil {
		return s, err
	}
	filters := proc.Field(text, "Seccomp_filters")
	if filters == "" { // before Linux 5.10
		filters = map[string]string{"2": "1"}[proc.Field(text, "Seccomp")]
	}
	if filters != "" {
		s.filters, err = strconv.Atoi(filters)
	}
	effective, err1 := strconv.ParseUint(proc.Field(text, "CapEff"), 16, 64)
	bounding, err2 := strconv.ParseUint(proc.Field(text, "CapBnd"), 16, 64)
	if err := errors.Join(err, err1, err2); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	s.effective, s.bounding = effective, bounding
	return s, nil
}
