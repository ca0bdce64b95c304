//go:build linux

package paging

import (
	"context"
	"errors"
	"fmt"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/fault"
	"tare/lab/memory"
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

// tables reads the page tables of all guests' work together.
func (host) tables(ctx context.Context, guests []crowd.Guest, of notebook.Treatment, system bool) (t notebook.PageTables, err error) {
	var groups []memory.Guest
	var all []int
	for i, g := range guests {
		if _, err := rulerOf(i+1, g); err != nil {
			return t, err
		}
		p, err := crowd.PartsOf(g, of, system)
		if err != nil {
			return t, &notebook.Error{Says: notebook.Say("of-guest", "guest", i+1, "cause", err)}
		}
		groups, all = append(groups, memory.Guest{Name: fmt.Sprintf("guest %d", i+1), Kind: notebook.MemoryContainer, PIDs: p.Work}), append(all, p.Work...)
	}
	var resident, accessed int64
	for _, pid := range all { // before the scan, which accesses only the kernel's own memory
		r, err := proc.RollupOf(pid)
		if err != nil && !proc.Ended(err) {
			return t, err
		}
		resident, accessed = resident+r.RSS, accessed+r.Referenced
	}
	s, err := memory.Scan(ctx, all, memory.Options{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t = s.Tables(groups)
	t.Resident, t.Accessed, t.Changed = resident, accessed, s.Changed
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
	if err := made(f.tally, guests, of, system); err != nil {
		return nil, err
	}
	if f.Watch, err = fault.Begin(rulers, f.tally.Add); err != nil {
		return nil, err
	}
	f.instructions = counted(threads)
	return f, nil
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

// made tells the tally what the guests' page tables hold.
func made(tally *fault.Tally, guests []crowd.Guest, of notebook.Treatment, system bool) (err error) {
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
	p := notebook.PageFaults{
		Guests: f.guests, Kinds: map[string]int64{}, Repeated: map[string]int64{}, Major: f.tally.Major, Lost: lost.Faults, Unended: lost.Unended, Untold: f.tally.Untold,
		Common: f.tally.Common(), Instructions: instructions,
	}
	for k := range fault.Kinds {
		if n := f.tally.Of[k]; n > 0 {
			p.Kinds[k.String()] = n
		}
		if n := f.tally.Repeated[k]; n > 0 {
			p.Repeated[k.String()] = n
		}
	}
	return p, err
}
