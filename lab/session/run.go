//go:build linux

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"tare/lab/noise"
	"tare/lab/pagecache"
	"tare/lab/study"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
)

// Request is a study to run, and the folder for its results.
type Request struct {
	Spec      *studyfile.Spec
	Choices   studyfile.Choices
	Workloads fs.FS // workloads that a study can name
	Out       string
	Deadline  time.Time // start nothing that would end after it; zero: none
	Goal      study.Goal
	Args      []string       // arguments of the command, for the record
	TuneHost  bool           // make the host quiet during the run
	Recorded  *notebook.Host // the host for which Foresee plans; nil: this one

	// Check refuses a plan for a host before anything is measured and before the results folder is written; nil: it refuses nothing.
	Check func(notebook.Study, notebook.Host) error
}

// Show is told about the progress of a run.
type Show interface {
	study.Watcher
	// Say tells what takes long before the rounds begin.
	Say(what string)
	// Planned tells what is left out, and what this host does not support, by tracer.
	Planned(leftOut []notebook.LeftOut, untraced map[string]string)
	// Begins tells what the following rounds will do.
	Begins(notebook.Preview)
	// Short tells of work that is too short for this host's noise.
	Short(what *notebook.Message)
	// TunedHost tells which settings were changed for the run, and which could be but were not.
	TunedHost(set []notebook.Setting, left []string)
}

// Run plans the study, runs what is not yet in the folder, and returns why it ended. Failed trials are not an error.
func (l *Lab) Run(ctx context.Context, q Request, show Show) (run *study.Run, reason *notebook.Message, err error) {
	if notebook.Exists(q.Out) {
		f, err := q.begun(l.host)
		if err != nil {
			return nil, nil, err
		}
		q.Choices.Begun, q.Spec.Lengths = &f.Study, f.Study.Lengths
	}
	if !q.Choices.SeedChosen {
		q.Choices.Seed = rand.Uint64() >> 33 // short enough to type
	}
	if from := cmp.Or(q.Choices.LoadFrom, q.Spec.LoadFrom); from != "" {
		if err := l.LoadFrom(ctx, from); err != nil {
			return nil, nil, err
		}
	}
	var untraced map[string]string
	if len(q.Choices.Explain) > 0 { // before the plan, which prepares guests: virtual machines then get a tracer
		if untraced, err = l.Explain(q.Choices.Explain); err != nil {
			return nil, nil, err
		}
	}
	options := workload.Options{Store: l.store, Cache: l.cache(), Bench: l, Progress: show.Say}
	plan, err := l.plan(ctx, q, options)
	if err != nil {
		return nil, nil, err
	}
	if err := q.check(plan.Study, l.host); err != nil {
		return nil, nil, err
	}
	show.Planned(plan.Study.LeftOut, untraced)
	start := notebook.Session{Time: time.Now().UTC(), Event: "start", Args: q.Args}
	if q.TuneHost {
		vms := slices.ContainsFunc(plan.Study.Treatments, func(t notebook.Treatment) bool { return notebook.HasMachine(t.Platform) })
		if l.quiet, err = noise.Host.Quieten(l.env.Journal, vms); err != nil {
			return nil, nil, err
		}
		start.Quiet = l.quiet.Set
		var left []string
		for _, f := range l.quiet.Left {
			left = append(left, f.Name+": "+f.Why)
		}
		show.TunedHost(l.quiet.Set, left)
	}
	notes, undo, err := plan.Set(l.env.Journal)
	l.unset = undo
	if err != nil {
		return nil, nil, err
	}
	start.Notes = append(start.Notes, notes...)
	if !notebook.Exists(q.Out) {
		if plan, err = l.rehearse(ctx, plan, q, options, show, &start); err != nil {
			return nil, nil, err
		}
	}
	if err := l.idleCost(ctx, plan, show.Say); err != nil {
		return nil, nil, err
	}
	run = &study.Run{Plan: plan, Lab: l, Watch: show, Deadline: q.Deadline, Goal: q.Goal, Settle: settle}
	book, err := q.open(run, l.host)
	if err != nil {
		return nil, nil, err
	}
	defer book.Close()
	run.Book = book
	if plan.Separate(l.host.Idle) { // after open, which may replace the plan's study
		start.Notes = append(start.Notes, notebook.Say("idle-guests-cost", "ratio", l.host.Idle.Ratio-1, "guests", l.host.Idle.Guests))
	}
	if err := book.Session(start); err != nil {
		return nil, nil, err
	}
	if err := q.begins(plan, show); err != nil {
		return nil, nil, err
	}
	reason, err = run.Do(ctx)
	end := notebook.Session{Time: time.Now().UTC(), Event: "end", Reason: reason, Notes: run.Notes()}
	if err != nil {
		end.Reason = notebook.Say("failed", "cause", err)
	}
	if e := book.Session(end); err == nil {
		err = e
	}
	if err != nil {
		err = fmt.Errorf("%w; the trials so far are kept in %s; the same command with --out %s continues", err, q.Out, q.Out)
	}
	return run, reason, err
}

// rehearse tries the plan's work on bare metal, and records in the session what is too short. It returns the plan with the
// resulting lengths.
func (l *Lab) rehearse(ctx context.Context, plan *study.Plan, q Request, o workload.Options, show Show, start *notebook.Session) (*study.Plan, error) {
	short, err := plan.Rehearse(ctx, l, show.Say)
	if err != nil {
		return nil, err
	}
	for _, s := range short {
		start.Notes = append(start.Notes, notebook.Say("work-too-short", "what", s.Message()))
		show.Short(s.Message())
	}
	if q.Spec.Lengths = study.Lengths(short); len(q.Spec.Lengths) == 0 {
		return plan, nil
	}
	longer, err := l.plan(ctx, q, o) // with other work it is another study
	if err == nil {
		longer.Learn(plan)
	}
	return longer, err
}

// check applies Check.
func (q Request) check(s notebook.Study, h notebook.Host) error {
	if q.Check == nil {
		return nil
	}
	return q.Check(s, h)
}

// plan makes the plan of a request, and prepares its workloads.
func (l *Lab) plan(ctx context.Context, q Request, o workload.Options) (*study.Plan, error) {
	asked, err := q.Spec.Ask(q.Workloads, q.Choices)
	if err != nil {
		return nil, err
	}
	return study.NewPlan(ctx, l, asked, o)
}

// open creates the results folder, or continues it if it contains the same study.
func (q Request) open(run *study.Run, h notebook.Host) (*notebook.Writer, error) {
	if !notebook.Exists(q.Out) {
		return notebook.Create(q.Out, run.Plan.Study, h)
	}
	w, err := notebook.Open(q.Out) // lock it before reading, so that it does not change
	if err != nil {
		return nil, err
	}
	f, err := q.begun(h)
	if err == nil {
		err = run.Plan.Resume(f.Study, q.Choices.SeedChosen)
	}
	if err == nil {
		for _, g := range f.Guests {
			run.Made(g)
		}
		err = f.Trials(func(t *notebook.Trial) error { run.Take(*t); return nil })
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// begun reads the content of the results folder, which must be of this host.
func (q Request) begun(h notebook.Host) (*notebook.Folder, error) {
	f, err := notebook.Read(q.Out)
	if err == nil && f.Host.ID != h.ID {
		err = fmt.Errorf("%s holds results of another host (%s): name another folder with --out; folders of several hosts can be read together", q.Out, f.Host.Hostname)
	}
	return f, err
}

// settle waits until the host has written what the last trial left to write. If that takes too long the next trial begins anyway:
// the host's disks are busy for another reason, which the trial's record shows.
func settle(ctx context.Context) error {
	_, err := pagecache.Settle(ctx)
	return err
}
