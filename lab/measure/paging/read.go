//go:build linux

package paging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/fault"
	"tare/lab/memory"
	"tare/lab/pagetable"
	"tare/lab/proc"
	"tare/lab/programs"
	"tare/lab/trace"
	"tare/notebook"
)

// host reads on this host.
type host struct{}

// rulerOf is the process ID, on the host, of the ruler in the nth guest. The guest's work descends from it.
func rulerOf(nth int, g crowd.Guest) (pid int, err error) {
	pids, err := g.Processes()
	cause := notebook.ErrorMessage(err)
	if err == nil && len(pids) == 0 {
		cause = notebook.Say("no-processes")
	} else if err == nil && proc.Name(pids[0]) != programs.Ruler {
		cause = notebook.Say("processes-hidden", "first", proc.Name(pids[0]))
	}
	if cause != nil {
		return 0, &notebook.Error{Says: notebook.Say("of-guest", "guest", nth, "cause", cause)}
	}
	return pids[0], nil
}

// partsOf are the processes of each guest: those of its work, and those of its engine.
func partsOf(guests []crowd.Guest, of notebook.Treatment, system bool) (work, engines []memory.Guest, err error) {
	for i, g := range guests {
		if _, err := rulerOf(i+1, g); err != nil {
			return nil, nil, err
		}
		p, err := crowd.PartsOf(g, of, system)
		if err != nil {
			return nil, nil, &notebook.Error{Says: notebook.Say("of-guest", "guest", i+1, "cause", err)}
		}
		name := fmt.Sprintf("guest %d", i+1)
		work = append(work, memory.Guest{Name: name, Kind: notebook.MemoryContainer, PIDs: p.Work})
		engines = append(engines, memory.Guest{Name: name, Kind: notebook.MemoryContainer, PIDs: p.Engine})
	}
	return work, engines, nil
}

// pidsOf are all processes of the groups.
func pidsOf(groups []memory.Guest) (all []int) {
	for _, g := range groups {
		all = append(all, g.PIDs...)
	}
	return all
}

// using sees the uses of page-table entries on this host.
type using struct{ *pagetable.Reader }

// uses implements eyes.
func (host) uses() (uses, error) {
	r, err := pagetable.Open()
	if err != nil {
		return nil, err
	}
	return using{r}, nil
}

// Since implements uses.
func (u using) Since(guests []crowd.Guest, of notebook.Treatment, system bool) (pagetable.Used, error) {
	work, _, err := partsOf(guests, of, system)
	if err != nil {
		return nil, err
	}
	return u.Reader.Since(pidsOf(work))
}

// tables reads the page tables of all guests' work together, and of the engine's processes for the guests.
func (host) tables(ctx context.Context, guests []crowd.Guest, of notebook.Treatment, system bool, uses *memory.Uses) (t notebook.PageTables, err error) {
	work, engines, err := partsOf(guests, of, system)
	if err != nil {
		return t, err
	}
	var resident, accessed int64
	for _, pid := range pidsOf(work) { // before the scan, which accesses only the kernel's own memory
		r, err := proc.RollupOf(pid)
		if err != nil && !proc.Ended(err) {
			return t, err
		}
		resident, accessed = resident+r.RSS, accessed+r.Referenced
	}
	s, err := memory.Scan(ctx, append(pidsOf(work), pidsOf(engines)...), memory.Options{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t = s.Tables(work, uses)
	e := s.Tables(engines, nil)
	t.Engine = notebook.TablePart{Entries: e.Entries, Active: e.Active, Groupable: e.Groupable}
	t.Resident, t.Changed = resident, s.Changed
	if uses == nil {
		t.Accessed = accessed
	}
	t.Accessed = min(t.Accessed, resident) // of which some pages of the kernel's are no part
	return t, nil
}

// watched is a watch and its tally. The tally belongs to the watch until the watch has stopped.
type watched struct {
	*fault.Watch
	tally        *fault.Tally
	guests       int
	instructions *trace.Instructions // nil: the CPU does not count them
}

// faults starts observing the page faults of the guests' work, from the beginning of the work. Translations that the guests have at
// the start count as made. An error says why the host cannot observe faults; without guests it only checks that.
func (host) faults(guests []crowd.Guest, of notebook.Treatment, system bool) (faulting, error) {
	var rulers []int
	for i, g := range guests {
		pid, err := rulerOf(i+1, g)
		if err != nil {
			return nil, err
		}
		rulers = append(rulers, pid)
	}
	threads, err := threadsOf(guests)
	if err != nil {
		return nil, err
	}
	f := watched{tally: &fault.Tally{}, guests: len(guests)}
	if err := held(f.tally, guests, of, system); err != nil {
		return nil, err
	}
	if f.Watch, err = fault.Begin(rulers, f.tally.Add); err != nil {
		return nil, err
	}
	f.instructions = counted(threads)
	return f, nil
}

// made observes what makes guests, and counts its faults for each guest but the first.
type made struct {
	*fault.Watch
	tally  *fault.Tally
	guests int
}

// making implements eyes. What makes a guest is started by Tare or by one of the engine's daemons.
func (host) making(k engine.Kind) (making, error) {
	makers, err := proc.All()
	if err != nil {
		return nil, err
	}
	makers = slices.DeleteFunc(makers, func(pid int) bool { return !slices.Contains(k.Daemons, proc.Name(pid)) })
	m := &made{tally: &fault.Tally{}}
	m.Watch, err = fault.BeginMaking(append(makers, os.Getpid()), m.tally.Add)
	return m, err
}

// Making implements making.
func (m *made) Making(guest int) error {
	m.guests++
	return m.Watch.Making(guest)
}

// Stop implements faulting.
func (m *made) Stop() (notebook.PageFaults, error) {
	lost, err := m.Watch.Stop()
	return counts(m.tally, m.guests, lost), err
}

// threadsOf are the threads of all processes of the guests.
func threadsOf(guests []crowd.Guest) (all []engine.Thread, err error) {
	for _, g := range guests {
		pids, err := g.Processes()
		if err != nil {
			return nil, err
		}
		threads, err := engine.ThreadsOf(pids, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, threads...)
	}
	return all, nil
}

// counted begins to count the instructions of threads; nil where the CPU does not count them. Rates are then of CPU time alone, and a
// doctor says why ("perf hardware events").
func counted(threads []engine.Thread) *trace.Instructions {
	c, err := trace.CountInstructions(threads)
	if err != nil {
		return nil
	}
	return c
}

// held tells the tally what the guests' page tables hold.
func held(tally *fault.Tally, guests []crowd.Guest, of notebook.Treatment, system bool) (err error) {
	owner := map[int]int{}
	var all []int
	for i, g := range guests {
		p, err := crowd.PartsOf(g, of, system)
		if err != nil {
			return &notebook.Error{Says: notebook.Say("of-guest", "guest", i+1, "cause", err)}
		}
		for _, pid := range p.Work {
			owner[pid] = i
		}
		all = append(all, p.Work...)
	}
	if len(all) == 0 {
		return nil
	}
	s, err := memory.Scan(context.Background(), all, memory.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := range s.Pages {
		p := &s.Pages[i]
		if p.Frame != 0 {
			tally.Has(owner[s.Processes[s.Region(p).Process].PID], s.Address(p), p.Frame)
		}
	}
	return nil
}

// Stop implements faulting.
func (f watched) Stop() (notebook.PageFaults, error) {
	lost, err := f.Watch.Stop()
	var instructions float64
	if f.instructions != nil {
		var cerr error
		instructions, cerr = f.instructions.Stop()
		err = errors.Join(err, cerr)
	}
	p := counts(f.tally, f.guests, lost)
	p.Common, p.Instructions = f.tally.Common(), instructions
	return p, err
}

// counts is what a tally of so many guests has counted.
func counts(tally *fault.Tally, guests int, lost fault.Lost) notebook.PageFaults {
	p := notebook.PageFaults{
		Guests: guests, Kinds: map[string]int64{}, Repeated: map[string]int64{}, Major: tally.Major, Lost: lost.Faults, Unended: lost.Unended, Untold: tally.Untold,
	}
	for k := range fault.Kinds {
		if n := tally.Of[k]; n > 0 {
			p.Kinds[k.String()] = n
		}
		if n := tally.Repeated[k]; n > 0 {
			p.Repeated[k.String()] = n
		}
	}
	return p
}
