package crowd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// Parts are the processes of a guest, by role. In a VM the host cannot see the ruler, and QEMU counts as the work.
type Parts struct{ Work, Ruler, Engine []int }

// PartsOf finds the parts of a guest of the treatment. system says that the guest's first process is its own init. The engine of a
// container is the process that started the container's first process and waits for it: a shim, conmon, lxc-start or the runtime.
func PartsOf(g Guest, t notebook.Treatment, system bool) (p Parts, err error) {
	if p.Work, err = g.Processes(); err != nil || notebook.HasMachine(t.Platform) || len(p.Work) == 0 {
		return p, err
	}
	all := p.Work
	first := all[0] // of the guest; its engine started it
	p.Work = nil
	for _, pid := range all {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // empty if it has ended
		switch {
		case pid == first && !system, system && exe == ruler.Program, strings.HasPrefix(exe, "/memfd:"+ruler.LauncherName):
			p.Ruler = append(p.Ruler, pid) // or waits for the work on the ruler's behalf
		default:
			p.Work = append(p.Work, pid)
		}
	}
	parent, err := proc.Parent(first)
	if err == nil && parent > 1 && parent != os.Getpid() && !slices.Contains(p.Work, parent) {
		p.Engine = []int{parent}
	}
	return p, err
}
