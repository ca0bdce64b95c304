//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"

	"tare/lab/fault"
	"tare/lab/hugepages"
	"tare/lab/journal"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/lab/programs"
	"tare/lab/study"
	"tare/notebook"
)

// pages are the huge pages that processes get without being asked.
type pages struct {
	value   string           // of notebook.ParamHugePages, for which the host is set
	changes *journal.Changes // that were made for it; nil: none
}

// of has the host give guests of that value theirs. Where an earlier change could not be undone, no guest is made before another try has worked.
func (p *pages) of(ctx context.Context, j *journal.Journal, value string) (err error) {
	if p.value == value {
		return nil
	}
	if p.changes != nil {
		if err := p.changes.Undo(ctx); err != nil {
			return fmt.Errorf("%w; `tare clean` tries again", err)
		}
	}
	*p = pages{}
	if p.changes, err = hugepages.Host.Set(ctx, j, value); err == nil {
		p.value = value
	}
	return err
}

// rulerOf is the host's number of a guest's ruler, from which its work descends.
func rulerOf(i int, each study.Guest) (g guest, pid int, err error) {
	g, ok := each.(guest)
	if !ok {
		return g, 0, fmt.Errorf("guest %d is a %T, not one of this host", i+1, each)
	}
	pids, err := g.Processes()
	if err == nil && len(pids) == 0 {
		err = errors.New("it has no processes")
	}
	if err == nil && proc.Name(pids[0]) != programs.Ruler {
		err = fmt.Errorf("the host does not see the processes in it: its first is %s", proc.Name(pids[0]))
	}
	if err != nil {
		return g, 0, fmt.Errorf("guest %d: %w", i+1, err)
	}
	return g, pids[0], nil
}

// Tables implements study.Lab.
func (l *Lab) Tables(ctx context.Context, guests []study.Guest) (t notebook.PageTables, err error) {
	var groups []memory.Guest
	var all []int
	for i, each := range guests {
		g, _, err := rulerOf(i, each)
		if err != nil {
			return t, err
		}
		p, err := g.parts()
		if err != nil {
			return t, fmt.Errorf("guest %d: %w", i+1, err)
		}
		groups, all = append(groups, memory.Guest{Name: fmt.Sprintf("guest %d", i+1), Kind: notebook.MemoryContainer, PIDs: p.work}), append(all, p.work...)
	}
	var resident, accessed int64
	for _, pid := range all { // before the scan, by which nothing is accessed but the kernel's own
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

// faulting is a watch with its tally, which is the watch's until it has been stopped.
type faulting struct {
	*fault.Watch
	tally  *fault.Tally
	guests int
}

// Faults implements study.Lab. Translations that guests have when it begins count as made.
func (l *Lab) Faults(guests []study.Guest) (study.Faulting, error) {
	var rulers []int
	for i, each := range guests {
		_, pid, err := rulerOf(i, each)
		if err != nil {
			return nil, err
		}
		rulers = append(rulers, pid)
	}
	f := faulting{tally: &fault.Tally{}, guests: len(guests)}
	if err := l.made(f.tally, guests); err != nil {
		return nil, err
	}
	var err error
	if f.Watch, err = fault.Begin(rulers, f.tally.Add); err != nil {
		return nil, err
	}
	return f, nil
}

// made tells the tally what guests have in their page tables.
func (l *Lab) made(tally *fault.Tally, guests []study.Guest) (err error) {
	owner := map[int]int{}
	var all []int
	for i, each := range guests {
		p, err := each.(guest).parts()
		if err != nil {
			return fmt.Errorf("guest %d: %w", i+1, err)
		}
		for _, pid := range p.work {
			owner[pid] = i
		}
		all = append(all, p.work...)
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

// Stop implements study.Faulting.
func (f faulting) Stop() (notebook.PageFaults, error) {
	lost, err := f.Watch.Stop()
	p := notebook.PageFaults{
		Guests: f.guests, Kinds: map[string]int64{}, Repeated: map[string]int64{}, Major: f.tally.Major, Lost: lost.Faults, Unended: lost.Unended, Untold: f.tally.Untold,
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
