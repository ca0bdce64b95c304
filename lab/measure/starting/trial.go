//go:build linux

package starting

import (
	"context"
	"errors"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/pagecache"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/starting"
)

// subject is a guest whose start is the trial.
type subject struct {
	measure.Single
	config
	of    *record.Start
	trial notebook.Trial
}

// Make implements measure.Subject: it times the start from the request to the first useful answer. The error says why there is no
// guest. Why there is no answer is the trial's failure.
func (s *subject) Make(ctx context.Context) (err error) {
	var work *crowd.Service
	if s.Ready.Workload.Service != nil { // the place of its load does not belong to the guest
		place, load, err := s.Load(ctx, s.Treatment, s.ID, s.Ready)
		if err != nil {
			return &notebook.Error{Says: notebook.Say("no-load-place", "cause", err)}
		}
		work = &crowd.Service{Treatment: s.Treatment, Ready: s.Ready, Place: place, Load: load}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, work.TakeDown(ctx))
		}
	}()
	if s.of.Cached, err = s.cache(ctx); err != nil {
		return err
	}
	s.trial.Start = time.Now().UTC()
	pctx, cancel := context.WithTimeout(ctx, crowd.ProvisionTimeout)
	defer cancel()
	moments := engine.NewMoments()
	g, err := s.Provision(pctx, crowd.Want{Treatment: s.Treatment, ID: s.ID, Work: s.Ready, Moments: moments})
	if err != nil {
		return err
	}
	s.Made(g, work)
	moments.Mark(notebook.MomentOrdered)
	s.trial.Failure = s.firstAnswer(ctx, moments)
	s.of.Moments = moments.Noted()
	s.trial.HostS = time.Since(s.trial.Start).Seconds()
	s.trial.ElapsedS = s.trial.HostS
	if s.trial.Failure == nil {
		s.trial.Failure = uncached(s.of.Cached, notebook.FactorCache.Of(s.Treatment))
	}
	return nil
}

// Trial implements measure.Subject: it saves and restores the guest if the study says so, and completes the trial. The guest cannot
// be used again.
func (s *subject) Trial(ctx context.Context, _ measure.Step) (notebook.Trial, bool, error) {
	tr := &s.trial
	if tr.Failure == nil && s.config.Restore {
		tr.Failure = s.restore(ctx)
	}
	if s.Service() != nil && tr.Failure == nil && s.of.WentOn == nil && s.Service().Over() { // the proof that the service went on ends it
		tr.Failure = notebook.Say("service-ended", "cause", s.Service().How())
	}
	tr.Seen, tr.Figures = record.Seen{Startup: s.of}, s.of.Figures()
	v, known := tr.Figures[record.Time]
	if !known && tr.Failure == nil {
		tr.Failure = notebook.Say("no-first-answer")
	}
	tr.Value = v
	return *tr, true, nil
}

// cache brings the files that a start of the guest reads, and the saved files, into the host's page cache or out of it, as the
// treatment says.
func (s *subject) cache(ctx context.Context, saved ...string) (notebook.Cached, error) {
	paths, err := s.Reads(ctx, s.Treatment, s.Ready)
	if err != nil {
		return notebook.Cached{}, err
	}
	return s.files.cache(ctx, append(paths, saved...), notebook.FactorCache.Of(s.Treatment))
}

// host is this host.
type host struct{}

func (host) cache(ctx context.Context, paths []string, cache string) (notebook.Cached, error) {
	if cache == notebook.CacheCold {
		return pagecache.Evict(ctx, paths)
	}
	return pagecache.Load(ctx, paths)
}

// uncached says that the page cache was not in the treatment's state; nil if it was.
func uncached(c notebook.Cached, want string) *notebook.Message {
	share := float64(c.Resident) / float64(max(c.Bytes, 1))
	if want == notebook.CacheCold && share > leftCold || want == notebook.CacheWarm && share < leftWarm {
		return notebook.Say("not-cached", "want", want, "share", share, "of_mib", c.Bytes/notebook.MiB)
	}
	return nil
}

// firstAnswer lets the guest do its work until it has given a useful result, and notes when; cause says why it has not.
func (s *subject) firstAnswer(ctx context.Context, moments *engine.Moments) (cause *notebook.Message) {
	w := s.Ready.Workload
	switch {
	case w.System:
		wctx, cancel := context.WithTimeout(ctx, crowd.Patience(s.Treatment, crowd.BootTime))
		defer cancel()
		if err := moments.Wait(wctx, notebook.MomentLogin); err != nil && ctx.Err() == nil {
			return crowd.Diagnosed(notebook.Say("no-login", "within", crowd.Patience(s.Treatment, crowd.BootTime)), s.Guest())
		}
		return nil
	case w.Service != nil:
		at := s.Guest().Address()
		if !at.Listen.IsValid() || !at.Connect.IsValid() {
			return notebook.Say("no-address")
		}
		order := w.Order(w.Service.Command, s.Ready.Params, s.Ready.Image, workload.Seat{Instance: s.Treatment.Instance, Address: at.Listen})
		order.Restorable = s.config.Restore
		of := crowd.Begin(ctx, s.Guest(), s.Treatment, s.Ready, order)
		of.Place, of.Load, of.Pause = s.Service().Place, s.Service().Load, s.asks()
		s.Made(s.Guest(), of)
		s.of.Pauses = of.Pause.Seconds()
		if cause := of.Await(ctx); cause != nil || ctx.Err() != nil {
			return cause
		}
		moments.Mark(notebook.MomentAnswer)
		return nil
	}
	cause, at := s.function(ctx, true)
	if cause == nil {
		moments.At(notebook.MomentAnswer, at)
	}
	return cause
}

// asks is the pause between two questions whether a service answers.
func (s *subject) asks() time.Duration {
	if !s.Treatment.Representative() {
		return 10 * askPause
	}
	return askPause
}

// function runs the workload's command to its end, and returns when it ended, or why it has no result. Its answer is checked
// afterwards.
func (s *subject) function(ctx context.Context, check bool) (cause *notebook.Message, at time.Time) {
	w := s.Ready.Workload
	run := func(argv []string, keep bool) *notebook.Message {
		order := w.Order(argv, s.Ready.Params, s.Ready.Image, workload.Seat{Instance: s.Treatment.Instance})
		order.Timeout, order.KeepScratch = s.Timeout, keep
		res, _, err := s.Guest().Ruler().Run(ctx, order)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return crowd.Silent(err, s.Guest())
		}
		return workload.Failure(res)
	}
	cause = run(w.Command, false)
	at = time.Now()
	if cause == nil && check && len(w.Check) > 0 {
		if cause = run(w.Check, true); cause != nil {
			cause = notebook.Say("wrong-output", "cause", cause)
		}
	}
	return cause, at
}
