package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	startingkind "tare/notebook/kinds/starting"
)

// Starting is how a study file says that starts are timed: each trial is one guest, asked for, brought to its first useful answer and destroyed (paper
// "virtualization-overheads", chapter 5).
type Starting struct {
	Cache     []string                 `yaml:"cache,omitempty"`   // of notebook.Caches, each makes a treatment; default both
	Restore   bool                     `yaml:"restore,omitempty"` // then the guest is saved, and restored
	Published []startingkind.Published `yaml:"published,omitempty"`
}

const (
	askPause   = 5 * time.Millisecond // between two questions whether a service answers; ten times that where it is emulated
	leftCold   = 0.05                 // the share of what a start reads that may be in the page cache all the same: what other programs have mapped
	leftWarm   = 0.95                 // that has to be in it
	savingTime = 2 * time.Minute      // that saving, or restoring, may take; three times that where the guest is emulated
)

// parse reads it; a nil one is none.
func (s *Starting) parse() (*startingkind.Config, error) {
	if s == nil {
		return nil, nil
	}
	out := &startingkind.Config{Caches: s.Cache, Restore: s.Restore, Published: s.Published}
	if len(out.Caches) == 0 {
		out.Caches = notebook.Caches
	}
	for _, c := range out.Caches {
		if !slices.Contains(notebook.Caches, c) {
			return nil, fmt.Errorf("cache: %q: %s was expected", c, oneOf(notebook.Caches))
		}
	}
	for _, p := range s.Published {
		if p.Name == "" || !(p.StartS > 0) || p.RestoreS < 0 || p.Moment != "" && !slices.Contains(notebook.StartMoments, p.Moment) {
			return nil, fmt.Errorf("published: %+v: {name: …, moment: one of %s, start: seconds, restore: seconds} was expected", p, oneOf(notebook.StartMoments))
		}
	}
	return out, nil
}

// A start under way, or over.
type start struct {
	guest Guest
	work  *service // nil of what is no service
	trial notebook.Trial
	of    *startingkind.Start // of the trial
}

// startUp makes a guest for a trial of its start, from the request to the first useful answer. The error says why there is no guest; why there is no answer
// is the trial's failure. What it made is its caller's to end, also where there is a failure.
func (r *Run) startUp(ctx context.Context, t notebook.Treatment, id string, ready *workload.Ready) (s *start, err error) {
	w := ready.Workload
	of := &startingkind.Start{}
	s = &start{trial: notebook.Trial{Seen: startingkind.Seen{Startup: of}}, of: of}
	var place Guest
	var load notebook.Load
	if w.Service != nil { // the place for its questions is none of the guest's
		if place, load, err = r.Lab.Load(ctx, t, id, ready); err != nil {
			return nil, fmt.Errorf("no place for its load: %w", err)
		}
		s.work = &service{of: t, ready: ready, place: place, load: load}
	}
	fail := func(err error) (*start, error) {
		if place != nil {
			err = errors.Join(err, destroy(ctx, place))
		}
		return nil, err
	}
	if of.Cached, err = r.Lab.Cache(ctx, t, ready, t.Params[notebook.ParamCache]); err != nil {
		return fail(err)
	}
	s.trial.Start = time.Now().UTC()
	pctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
	g, moments, err := r.Lab.Start(pctx, t, id, ready)
	if err != nil {
		return fail(err)
	}
	s.guest = g
	moments.Mark(notebook.MomentOrdered)
	s.trial.Failure = r.firstAnswer(ctx, s, moments, ready, t)
	of.Moments = moments.Noted()
	s.trial.HostS = time.Since(s.trial.Start).Seconds()
	s.trial.ElapsedS = s.trial.HostS
	if s.trial.Failure == "" {
		s.trial.Failure = uncached(of.Cached, t.Params[notebook.ParamCache])
	}
	return s, nil
}

// uncached says that the page cache was not as the treatment has it.
func uncached(c notebook.Cached, want string) string {
	share := float64(c.Resident) / float64(max(c.Bytes, 1))
	if want == notebook.CacheCold && share > leftCold || want == notebook.CacheWarm && share < leftWarm {
		return fmt.Sprintf("the page cache was not %s: it had %.0f %% of the %d MiB that it reads; what other programs have mapped stays, and what memory has no room for goes",
			want, 100*share, c.Bytes/notebook.MiB)
	}
	return ""
}

// firstAnswer has the guest do its work until it has given something of use, and notes when; it says why it has not.
func (r *Run) firstAnswer(ctx context.Context, s *start, moments *engine.Moments, ready *workload.Ready, t notebook.Treatment) (cause string) {
	w := ready.Workload
	switch {
	case w.System:
		wctx, cancel := context.WithTimeout(ctx, patience(t, bootTime))
		defer cancel()
		if err := moments.Wait(wctx, notebook.MomentLogin); err != nil && ctx.Err() == nil {
			return fmt.Sprintf("no login prompt on its console in %v%s", patience(t, bootTime), diagnosis(s.guest))
		}
		return ""
	case w.Service != nil:
		at := s.guest.Address()
		if !at.Listen.IsValid() || !at.Connect.IsValid() {
			return "its service has no address: the guest has no network that a load could ask through"
		}
		order := w.Order(w.Service.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance, Address: at.Listen})
		order.Restorable = startingkind.Of(r.Plan.Study).Restore
		of := begin(ctx, s.guest, t, ready, order)
		of.place, of.load, of.pause = s.work.place, s.work.load, r.asks(t)
		s.work, s.of.Pauses = of, of.pause.Seconds()
		if cause := of.await(ctx); cause != "" || ctx.Err() != nil {
			return cause
		}
		moments.Mark(notebook.MomentAnswer)
		return ""
	}
	cause, at := r.function(ctx, s.guest, ready, t, true)
	if cause == "" {
		moments.At(notebook.MomentAnswer, at)
	}
	return cause
}

// asks is the pause between two questions whether a service answers.
func (r *Run) asks(t notebook.Treatment) time.Duration {
	if !t.Representative() {
		return 10 * askPause
	}
	return askPause
}

// function runs the workload's command to its end, and says when that was, or why it has no result. Its answer is checked afterwards.
func (r *Run) function(ctx context.Context, g Guest, ready *workload.Ready, t notebook.Treatment, check bool) (cause string, at time.Time) {
	w := ready.Workload
	run := func(argv []string, keep bool) string {
		order := w.Order(argv, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
		order.Timeout, order.KeepScratch = r.Plan.timeout(), keep
		res, _, err := g.Ruler().Run(ctx, order)
		switch {
		case ctx.Err() != nil:
			return ""
		case err != nil:
			return err.Error() + diagnosis(g)
		}
		return workload.Failure(res)
	}
	cause = run(w.Command, false)
	at = time.Now()
	if cause == "" && check && len(w.Check) > 0 {
		if cause = run(w.Check, true); cause != "" {
			cause = "its output is wrong: " + cause
		}
	}
	return cause, at
}

// finish saves and restores the guest where the study says so, and completes the trial. The guest is of no use any more.
func (r *Run) finish(ctx context.Context, s *start, ready *workload.Ready, t notebook.Treatment) notebook.Trial {
	tr := &s.trial
	if tr.Failure == "" && startingkind.Of(r.Plan.Study).Restore {
		tr.Failure = r.restore(ctx, s, ready, t)
	}
	if s.work != nil && tr.Failure == "" && s.of.WentOn == "" && s.work.over() { // the proof that it went on ends it
		tr.Failure = "its service ended: " + s.work.how()
	}
	tr.Figures = s.of.Figures()
	v, known := tr.Figures[startingkind.Time]
	if !known && tr.Failure == "" {
		tr.Failure = "its first useful answer was not seen"
	}
	tr.Value = v
	return *tr
}

// restore saves the guest, restores it, has it answer, and proves that it went on where it was. It says why that failed; that the guest cannot be saved
// at all is noted, and is no failure.
func (r *Run) restore(ctx context.Context, s *start, ready *workload.Ready, t notebook.Treatment) (cause string) {
	of := s.of
	ctx, cancel := context.WithTimeout(ctx, patience(t, savingTime))
	defer cancel()
	prove, cause := r.witness(ctx, s)
	if cause != "" {
		return cause
	}
	began := time.Now()
	saved, err := s.guest.Save(ctx)
	if cannot, never := errors.AsType[*engine.UnsupportedError](err); never {
		of.NoSaving = cannot.Error()
		return ""
	}
	if err != nil {
		return "saving it: " + err.Error()
	}
	of.SavedNS, of.State, of.HowSaved = time.Since(began).Nanoseconds(), saved.Bytes, saved.How
	// The state has just been written, so it is in the page cache, and a cold restore would read no disk.
	cached, err := r.Lab.Cache(ctx, t, ready, t.Params[notebook.ParamCache], saved.Path)
	if err != nil {
		return "the page cache before its restore: " + err.Error()
	}
	of.RestoreCached = &cached
	if cause = uncached(cached, t.Params[notebook.ParamCache]); cause != "" {
		return "before its restore " + cause
	}
	moments := engine.NewMoments()
	if err := s.guest.Restore(ctx, moments); err != nil {
		return "restoring it: " + err.Error() + diagnosis(s.guest)
	}
	switch {
	case s.work != nil:
		if cause = s.work.await(ctx); cause == "" {
			moments.Mark(notebook.MomentAgain)
		}
	case ready.Workload.System:
		if _, err := s.guest.Ruler().Ping(ctx); err != nil {
			return "the restored guest does not answer: " + err.Error() + diagnosis(s.guest)
		}
		moments.Mark(notebook.MomentAgain)
	default:
		var at time.Time
		if cause, at = r.function(ctx, s.guest, ready, t, false); cause == "" {
			moments.At(notebook.MomentAgain, at)
		}
	}
	if cause != "" {
		return "after its restore: " + cause
	}
	if of.WentOn, cause = prove(ctx); cause != "" {
		return "it did not go on where it was: " + cause
	}
	of.Restored = moments.Noted()
	return ""
}

// token is the file in the guest's memory by which a restored guest is known for the one that was saved.
const token = "/dev/shm/tare-token"

// witness leaves something in the guest's memory that only the guest itself can know after its restore. Of a service that is the order that is in progress: its ruler
// has it in memory, and answers for it at its end.
func (r *Run) witness(ctx context.Context, s *start) (prove func(context.Context) (words, cause string), cause string) {
	if s.work != nil {
		return func(context.Context) (string, string) {
			if s.work.over() {
				return "", s.work.how()
			}
			s.work.stop()
			<-s.work.alive.Done() // the client bounds it
			if s.work.err != nil && !errors.Is(s.work.err, context.Canceled) {
				return "", s.work.err.Error()
			}
			return "the order that was in progress when it was saved was ended by its ruler afterwards", ""
		}, ""
	}
	id := anID()
	ask := func(ctx context.Context, argv ...string) (ruler.Result, string) {
		res, _, err := s.guest.Ruler().Run(ctx, ruler.Order{Argv: argv, Timeout: askTimeout, KeepScratch: true, OutputLimit: 1 << 10})
		if err != nil {
			return res, err.Error() + diagnosis(s.guest)
		}
		return res, workload.Failure(res)
	}
	if _, cause := ask(ctx, "/bin/sh", "-c", "echo "+id+" >"+token); cause != "" {
		return nil, "leaving a token in its memory: " + cause
	}
	return func(ctx context.Context) (string, string) {
		res, cause := ask(ctx, "/bin/cat", token)
		if cause == "" && string(res.Stdout) != id+"\n" {
			cause = fmt.Sprintf("its memory has %q where %q was", res.Stdout, id)
		}
		return "a file in its memory had the random text that was written there before it was saved", cause
	}, ""
}
