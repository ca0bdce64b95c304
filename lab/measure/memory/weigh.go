//go:build linux

package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tare/lab/cgroup"
	"tare/lab/crowd"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/ruler/frames"
	"tare/notebook"
	record "tare/notebook/kinds/memory"
)

// ramOf asks a VM how it uses its memory; why says that it cannot tell.
func ramOf(ctx context.Context, g crowd.Guest) (r *memory.RAM, why *notebook.Message, err error) {
	m, ok := g.Machine()
	if !ok {
		return nil, nil, &notebook.Error{Says: notebook.Say("memory-unsaid")}
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		return nil, nil, cmp.Or(err, error(&notebook.Error{Says: notebook.Say("no-process")}))
	}
	r = &memory.RAM{PID: pids[0]}
	if r.Pieces, err = m.RAM(ctx); err != nil {
		return nil, nil, err
	}
	if r.Codes, r.Kept, err = m.Ruler().Frames(ctx, ranges(r.Pieces)); told(err) {
		return nil, notebook.ErrorMessage(err), nil
	}
	return r, nil, err
}

// mappedOf is how much of a VM's memory the hypervisor's tables map; nil: nothing tells.
func mappedOf(ctx context.Context, g crowd.Guest) (*int64, error) {
	m, ok := g.Machine()
	if !ok {
		return nil, nil
	}
	bytes, known, err := m.Mapped(ctx)
	if err != nil || !known {
		return nil, err
	}
	return &bytes, nil
}

// kernelCopy finds the copy of the guest's kernel in the memory of a VM's process. QEMU reads the kernel file into its own memory,
// from which the firmware fetches it, and keeps that copy as long as it lives. A VM that boots from its disk has no such copy.
func kernelCopy(g crowd.Guest) (pid int, of memory.Span, err error) {
	m, ok := g.Machine()
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
	if err != nil { // a kernel in another format is copied in another way
		kernel = image
	}
	of, err = memory.FindCopy(pids[0], kernel)
	return pids[0], of, err
}

// told reports whether an error means only that the guest cannot tell, and neither that the guest is gone nor that Tare failed.
func told(err error) bool { var cannot *ruler.CannotTell; return errors.As(err, &cannot) }

func ranges(pieces []frames.Piece) (all []frames.Range) {
	for _, p := range pieces {
		all = append(all, p.Range)
	}
	return all
}

// askAgain asks the last guest again, after the scan. changed is the number of bytes in frames whose use has changed since. If
// files are asked for, the files in the guest's page cache go into r, and out says what r leaves out.
func askAgain(ctx context.Context, last crowd.Guest, r *memory.RAM, asked depth) (changed int64, out *notebook.Message, err error) {
	m, ok := last.Machine()
	if r == nil || !ok {
		return 0, nil, nil
	}
	client := m.Ruler()
	again, _, err := client.Frames(ctx, ranges(r.Pieces))
	if err != nil {
		return 0, nil, err
	}
	for i, c := range again {
		if c.Kind() != r.Codes[i].Kind() {
			changed += frames.Size
		}
	}
	if asked != framesAndFiles {
		return changed, nil, nil
	}
	files, left, err := client.Files(ctx)
	if r.Files = files; told(err) {
		return changed, notebook.ErrorMessage(err), nil
	}
	return changed, notebook.TextMessage(left), err
}

// mostFiles is the greatest number of a guest's files that a weight lists.
const mostFiles = 40

// hung is the processes of all guests, sorted for the scan.
type hung struct {
	groups  []memory.Guest // for each guest its work and its engine's process
	rulers  memory.Guest
	engines []int
	copies  map[int]memory.Span // of guests' kernels, by process
	why     *notebook.Message   // why the last guest cannot tell how it uses its memory
	kernel  int64               // bytes of kernel memory charged to the guests' cgroups
	told    bool                // all cgroups report that charge
	charged record.Charged      // all that they are charged
	charges bool                // all cgroups report that
	tables  int64
}

// ofGuest says why the memory of the nth guest cannot be measured.
func ofGuest(nth int, cause *notebook.Message) error {
	return &notebook.Error{Says: notebook.Say("of-guest", "guest", nth, "cause", cause)}
}

// add adds the nth guest of the treatment. system: the guest is a whole system with its own init.
func (h *hung) add(ctx context.Context, nth int, g crowd.Guest, t notebook.Treatment, system bool, asked depth) error {
	p, err := crowd.PartsOf(g, t, system)
	if err != nil {
		return ofGuest(nth, notebook.ErrorMessage(err))
	}
	of := memory.Guest{Name: fmt.Sprintf("guest %d", nth), Kind: notebook.MemoryContainer, PIDs: slices.Concat(p.Engine, p.Work)}
	if notebook.HasMachine(t.Platform) {
		of.Kind = notebook.MemoryVM
		pid, copied, err := kernelCopy(g)
		if err != nil {
			return ofGuest(nth, notebook.Say("kernel-copy", "cause", err))
		}
		h.copies[pid] = copied
		if asked != outside {
			if of.RAM, h.why, err = ramOf(ctx, g); err != nil {
				return ofGuest(nth, notebook.ErrorMessage(err))
			}
		}
	}
	for _, pid := range of.PIDs {
		tables, err := proc.PageTables(pid)
		if err != nil && !proc.Ended(err) {
			return err
		}
		h.tables += tables
	}
	kernel, known, err := cgroup.KernelMemory(p.Work)
	if err != nil {
		return err
	}
	if h.told = h.told && known; h.told {
		h.kernel += kernel
	}
	all, known, err := cgroup.Charged(p.Work)
	if err != nil {
		return err
	}
	if h.charges = h.charges && known; h.charges {
		h.charged.All, h.charged.Files = h.charged.All+all.All, h.charged.Files+all.Files
	}
	h.groups, h.rulers.PIDs, h.engines = append(h.groups, of), append(h.rulers.PIDs, p.Ruler...), append(h.engines, p.Engine...)
	return nil
}

// weigh reads the memory that all guests of a treatment together take from the host. Guests whose ruler the host can see are
// weighed without it. VMs are asked how they use their memory.
func (host) weigh(ctx context.Context, guests []crowd.Guest, t notebook.Treatment, as manner) (w record.Weight, err error) {
	began := time.Now()
	h := hung{rulers: memory.Guest{Name: "rulers", Kind: notebook.MemoryProcesses}, copies: map[int]memory.Span{}, told: true, charges: true}
	for i, g := range guests {
		if err := h.add(ctx, i+1, g, t, as.system, as.asked); err != nil {
			return w, err
		}
	}
	n := len(guests)
	var mapped *int64 // of the last guest
	if as.asked != outside {
		if mapped, err = mappedOf(ctx, guests[n-1]); err != nil {
			return w, ofGuest(n, notebook.ErrorMessage(err))
		}
	}
	if w.Tables = h.tables; h.told {
		w.Kernel = &h.kernel
	}
	if h.charges {
		w.Charged = &h.charged
	}
	pids, err := proc.All()
	if err != nil {
		return w, err
	}
	s, err := memory.Scan(ctx, pids, memory.Options{Contents: !as.sizes, Cache: as.cache})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Cached >= 0 {
		bytes := s.Cached * memory.PageSize
		w.PageCache = &bytes
	}
	changed, out, err := askAgain(ctx, guests[n-1], h.groups[n-1].RAM, as.asked)
	if err != nil {
		return w, err
	}
	for pid, of := range h.copies {
		w.KernelCopy += s.Without(pid, of)
	}
	all := s.Account(append(h.groups, h.rulers))
	for i := range all[:n] {
		h.sum(&w, &all[i])
	}
	w.Ruler, w.Changed = all[n].MemoryWeight, s.Changed
	if w.ScanS = time.Since(began).Seconds(); as.sizes {
		return w, nil
	}
	last := all[n-1]
	last.Files = last.Files[:min(len(last.Files), mostFiles)]
	if r := last.RAM; r != nil {
		r.Changed, r.Out, r.Mapped = changed, out, mapped
		for _, f := range r.Files[min(len(r.Files), mostFiles):] {
			r.Fewer++
			r.Others.Add(f)
		}
		r.Files = r.Files[:len(r.Files)-r.Fewer]
	} else if h.why != nil {
		last.RAM = &notebook.MemoryRAM{Why: h.why}
	}
	w.Last = &last
	return w, nil
}

// sum adds a guest to the total.
func (h *hung) sum(w *record.Weight, g *notebook.MemoryGuest) {
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
		if slices.Contains(h.engines, p.PID) {
			w.Engine.Add(p.MemoryWeight)
		}
	}
}
