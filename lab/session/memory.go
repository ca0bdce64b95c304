//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/ksm"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/ruler/frames"
	"tare/lab/study"
	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
)

// Merge implements study.Lab.
func (l *Lab) Merge(_ context.Context, setting string) (study.Merging, error) {
	return ksm.Merge(l.env.Journal, setting)
}

// Resident implements study.Guest.
func (g guest) Resident() (sum int64, err error) {
	pids, err := g.Processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		r, err := proc.RollupOf(pid)
		if err != nil && !proc.Ended(err) {
			return 0, err
		}
		sum += r.RSS
	}
	return sum, nil
}

// parts are the processes of a guest by what they are. The host sees no ruler in a VM, and QEMU is its work.
type parts struct{ work, ruler, engine []int }

// parts finds them. A container's engine is what started its first process and waits for it: a shim, conmon, lxc-start or the runtime.
func (g guest) parts() (p parts, err error) {
	if p.work, err = g.Processes(); err != nil || g.machine || len(p.work) == 0 {
		return p, err
	}
	all := p.work
	first := all[0] // of the guest, which its engine started
	p.work = nil
	for _, pid := range all {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // empty of one that has ended
		switch {
		case pid == first && !g.system, g.system && exe == ruler.Program, strings.HasPrefix(exe, "/memfd:"+ruler.LauncherName):
			p.ruler = append(p.ruler, pid) // or waits for the work on the ruler's behalf
		default:
			p.work = append(p.work, pid)
		}
	}
	parent, err := proc.Parent(first)
	if err == nil && parent > 1 && parent != os.Getpid() && !slices.Contains(p.work, parent) {
		p.engine = []int{parent}
	}
	return p, err
}

// ram asks the guest, a virtual machine, what its memory is to it. why: it cannot tell.
func (g guest) ram(ctx context.Context) (r *memory.RAM, why string, err error) {
	m, ok := g.Guest.(engine.Machine)
	if !ok {
		return nil, "", fmt.Errorf("a %T, whose engine does not say where its memory is", g.Guest)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		return nil, "", errors.Join(err, errors.New("no process"))
	}
	r = &memory.RAM{PID: pids[0]}
	if r.Pieces, err = m.RAM(ctx); err != nil {
		return nil, "", err
	}
	if r.Codes, r.Kept, err = m.Ruler().Frames(ctx, ranges(r.Pieces)); told(err) {
		return nil, err.Error(), nil
	}
	return r, "", err
}

// kernelCopy finds the copy of its guest's kernel that a virtual machine's process keeps as long as it lives. QEMU reads the file into memory of its own for the
// firmware to fetch, and gives it back to nobody; a machine that boots from its disk has none.
func (g guest) kernelCopy() (pid int, of memory.Span, err error) {
	m, ok := g.Guest.(engine.Machine)
	if !ok {
		return 0, of, nil
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		return 0, of, err
	}
	image, err := os.ReadFile(m.KernelFile())
	if err != nil {
		return 0, of, err
	}
	kernel, err := memory.ProtectedMode(image)
	if err != nil { // a kernel in another form is copied in another way
		kernel = image
	}
	of, err = memory.FindCopy(pids[0], kernel)
	return pids[0], of, err
}

// told says whether an error is the guest's word that it cannot tell, and neither its end nor ours.
func told(err error) bool { var cannot *ruler.CannotTell; return errors.As(err, &cannot) }

func ranges(pieces []frames.Piece) (all []frames.Range) {
	for _, p := range pieces {
		all = append(all, p.Range)
	}
	return all
}

// askAgain asks the last guest again, after the scan: how many frames are something else to it by now; and if it is asked, of which files its page cache
// is, which goes into its RAM, and what was left out of that.
func askAgain(ctx context.Context, guests []study.Guest, groups []memory.Guest, asked study.Inside) (changed int64, out string, err error) {
	r := groups[len(groups)-1].RAM
	if r == nil {
		return 0, "", nil
	}
	client := guests[len(guests)-1].(guest).Guest.Ruler()
	again, _, err := client.Frames(ctx, ranges(r.Pieces))
	if err != nil {
		return 0, "", err
	}
	for i, c := range again {
		if c.Kind() != r.Codes[i].Kind() {
			changed += frames.Size
		}
	}
	if asked != study.FramesAndFiles {
		return changed, "", nil
	}
	if r.Files, out, err = client.Files(ctx); told(err) {
		return changed, err.Error(), nil
	}
	return changed, out, err
}

// mostFiles is how many files of a guest a weight lists.
const mostFiles = 40

// Weigh implements study.Lab.
func (l *Lab) Weigh(ctx context.Context, guests []study.Guest, asked study.Inside) (w memorykind.Weight, err error) {
	began := time.Now()
	var groups []memory.Guest // of each guest its work with its engine's process; and all rulers at the end
	rulers := memory.Guest{Name: "rulers", Kind: notebook.MemoryProcesses}
	var engines []int
	copies := map[int]memory.Span{} // of guests' kernels, by process
	why := ""                       // the last guest cannot tell what its memory is to it
	charged, told := int64(0), true // by the guests' cgroups with what the kernel has for them
	for i, each := range guests {
		g, ok := each.(guest)
		if !ok {
			return w, fmt.Errorf("guest %d cannot be weighed: it is a %T, not one of this host", i+1, each)
		}
		p, err := g.parts()
		if err != nil {
			return w, fmt.Errorf("guest %d: %w", i+1, err)
		}
		of := memory.Guest{Name: fmt.Sprintf("guest %d", i+1), Kind: notebook.MemoryContainer, PIDs: slices.Concat(p.engine, p.work)}
		if g.machine {
			of.Kind = notebook.MemoryVM
			pid, copied, err := g.kernelCopy()
			if err != nil {
				return w, fmt.Errorf("guest %d: its emulator's copy of the kernel: %w", i+1, err)
			}
			copies[pid] = copied
			if asked != study.Outside {
				if of.RAM, why, err = g.ram(ctx); err != nil {
					return w, fmt.Errorf("guest %d: %w", i+1, err)
				}
			}
		}
		for _, pid := range of.PIDs {
			tables, err := proc.PageTables(pid)
			if err != nil && !proc.Ended(err) {
				return w, err
			}
			w.Tables += tables
		}
		kernel, known, err := cgroup.KernelMemory(p.work)
		if err != nil {
			return w, err
		}
		if told = told && known; told {
			charged += kernel
		}
		groups, rulers.PIDs, engines = append(groups, of), append(rulers.PIDs, p.ruler...), append(engines, p.engine...)
	}
	if told {
		w.Kernel = &charged
	}
	pids, err := proc.All()
	if err != nil {
		return w, err
	}
	s, err := memory.Scan(ctx, pids, memory.Options{Contents: true})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	changed, out, err := askAgain(ctx, guests, groups, asked)
	if err != nil {
		return w, err
	}
	for pid, of := range copies {
		w.KernelCopy += s.Without(pid, of)
	}
	all := s.Account(append(groups, rulers))
	for i := range guests {
		g := &all[i]
		w.Add(g.MemoryWeight)
		w.Own += g.Own
		for _, k := range g.Kinds {
			if k.Name == memory.Anonymous.String() || k.Name == memory.Merged.String() {
				w.Anonymous += k.PSS
			} else {
				w.File += k.PSS
			}
		}
		for _, p := range g.Processes {
			if slices.Contains(engines, p.PID) {
				w.Engine.Add(p.MemoryWeight)
			}
		}
	}
	w.Ruler, w.Changed = all[len(guests)].MemoryWeight, s.Changed
	last := all[len(guests)-1]
	last.Files = last.Files[:min(len(last.Files), mostFiles)]
	if r := last.RAM; r != nil {
		r.Changed, r.Out = changed, out
		for _, f := range r.Files[min(len(r.Files), mostFiles):] {
			r.Fewer++
			r.Others.Add(f)
		}
		r.Files = r.Files[:len(r.Files)-r.Fewer]
	} else if why != "" {
		last.RAM = &notebook.MemoryRAM{Why: why}
	}
	w.Last, w.ScanS = &last, time.Since(began).Seconds()
	return w, nil
}
