//go:build linux

package starting

import (
	"context"
	"errors"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// restore saves the guest, restores it, waits for its answer, and proves that it continued where it was. cause says why that
// failed. If the guest cannot be saved at all, that is noted and is not a failure.
func (s *subject) restore(ctx context.Context) (cause *notebook.Message) {
	of := s.of
	ctx, cancel := context.WithTimeout(ctx, crowd.Patience(s.Treatment, savingTime))
	defer cancel()
	prove, cause := s.witness(ctx)
	if cause != nil {
		return cause
	}
	began := time.Now()
	saved, err := s.Guest().Save(ctx)
	if cannot, never := errors.AsType[*engine.UnsupportedError](err); never {
		of.NoSaving = notebook.ErrorMessage(cannot)
		return nil
	}
	if err != nil {
		return notebook.Say("saving", "cause", err)
	}
	of.SavedNS, of.State, of.HowSaved = time.Since(began).Nanoseconds(), saved.Bytes, saved.How
	// The state has just been written, so it is in the page cache, and a cold restore would not read from disk.
	cached, err := s.cache(ctx, saved.Path)
	if err != nil {
		return notebook.Say("cache-before-restore", "cause", err)
	}
	of.RestoreCached = &cached
	if cause = uncached(cached, notebook.FactorCache.Of(s.Treatment)); cause != nil {
		return notebook.Say("before-restore", "cause", cause)
	}
	moments := engine.NewMoments()
	if err := s.Guest().Restore(ctx, moments); err != nil {
		return notebook.Say("restoring", "cause", crowd.Silent(err, s.Guest()))
	}
	switch {
	case s.Service() != nil:
		if cause = s.Service().Await(ctx); cause == nil {
			moments.Mark(notebook.MomentAgain)
		}
	case s.Ready.Workload.System:
		if _, err := s.Guest().Ruler().Ping(ctx); err != nil {
			return notebook.Say("restored-silent", "cause", crowd.Silent(err, s.Guest()))
		}
		moments.Mark(notebook.MomentAgain)
	default:
		var at time.Time
		if cause, at = s.function(ctx, false); cause == nil {
			moments.At(notebook.MomentAgain, at)
		}
	}
	if cause != nil {
		return notebook.Say("after-restore", "cause", cause)
	}
	if of.WentOn, cause = prove(ctx); cause != nil {
		return notebook.Say("not-continued", "cause", cause)
	}
	of.Restored = moments.Noted()
	return nil
}

// token is the file in the guest's memory that identifies a restored guest as the one that was saved.
const token = "/dev/shm/tare-token"

// witness leaves something in the guest's memory that only this guest can know after its restore. For a service, that is the order
// in progress: the ruler holds it in memory and reports its end.
func (s *subject) witness(ctx context.Context) (prove func(context.Context) (proof, cause *notebook.Message), cause *notebook.Message) {
	if s.Service() != nil {
		return func(context.Context) (proof, cause *notebook.Message) {
			if s.Service().Over() {
				return nil, s.Service().How()
			}
			s.Service().Stop()
			<-s.Service().Alive().Done() // the client limits this wait
			if _, err := s.Service().Result(); err != nil && !errors.Is(err, context.Canceled) {
				return nil, notebook.ErrorMessage(err)
			}
			return notebook.Say("order-ended-later"), nil
		}, nil
	}
	id := crowd.NewID()
	ask := func(ctx context.Context, argv ...string) (ruler.Result, *notebook.Message) {
		res, _, err := s.Guest().Ruler().Run(ctx, ruler.Order{Argv: argv, Timeout: crowd.AskTimeout, KeepScratch: true, OutputLimit: 1 << 10})
		if err != nil {
			return res, crowd.Silent(err, s.Guest())
		}
		return res, workload.Failure(res)
	}
	if _, cause := ask(ctx, "/bin/sh", "-c", "echo "+id+" >"+token); cause != nil {
		return nil, notebook.Say("leaving-token", "cause", cause)
	}
	return func(ctx context.Context) (proof, cause *notebook.Message) {
		res, cause := ask(ctx, "/bin/cat", token)
		if cause == nil && string(res.Stdout) != id+"\n" {
			cause = notebook.Say("token-changed", "has", string(res.Stdout), "had", id)
		}
		return notebook.Say("token-found"), cause
	}, nil
}
