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

// Parts are the processes of a guest by what they are. The host sees no ruler in a VM, and QEMU is its work.
type Parts struct{ Work, Ruler, Engine []int }

// PartsOf finds those of a guest of the treatment; system says that its first process is its own init. A container's engine is what started its first process and waits for it: a shim, conmon, lxc-start or the runtime.
func PartsOf(g Guest, t notebook.Treatment, system bool) (p Parts, err error) {
	if p.Work, err = g.Processes(); err != nil || notebook.HasMachine(t.Platform) || len(p.Work) == 0 {
		return p, err
	}
	all := p.Work
	first := all[0] // of the guest, which its engine started
	p.Work = nil
	for _, pid := range all {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // empty of one that has ended
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
