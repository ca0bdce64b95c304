//go:build linux

package starting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// restore saves the guest, restores it, waits for its answer, and proves that it continued where it was. cause says why that
// failed. If the guest cannot be saved at all, that is noted and is not a failure.
func (s *subject) restore(ctx context.Context) (cause string) {
	of := s.of
	ctx, cancel := context.WithTimeout(ctx, crowd.Patience(s.Treatment, savingTime))
	defer cancel()
	prove, cause := s.witness(ctx)
	if cause != "" {
		return cause
	}
	began := time.Now()
	saved, err := s.Guest().Save(ctx)
	if cannot, never := errors.AsType[*engine.UnsupportedError](err); never {
		of.NoSaving = cannot.Error()
		return ""
	}
	if err != nil {
		return "saving it: " + err.Error()
	}
	of.SavedNS, of.State, of.HowSaved = time.Since(began).Nanoseconds(), saved.Bytes, saved.How
	// The state has just been written, so it is in the page cache, and a cold restore would not read from disk.
	cached, err := s.cache(ctx, saved.Path)
	if err != nil {
		return "the page cache before its restore: " + err.Error()
	}
	of.RestoreCached = &cached
	if cause = uncached(cached, notebook.FactorCache.Of(s.Treatment)); cause != "" {
		return "before its restore " + cause
	}
	moments := engine.NewMoments()
	if err := s.Guest().Restore(ctx, moments); err != nil {
		return "restoring it: " + err.Error() + crowd.Diagnosis(s.Guest())
	}
	switch {
	case s.Service() != nil:
		if cause = s.Service().Await(ctx); cause == "" {
			moments.Mark(notebook.MomentAgain)
		}
	case s.Ready.Workload.System:
		if _, err := s.Guest().Ruler().Ping(ctx); err != nil {
			return "the restored guest does not answer: " + err.Error() + crowd.Diagnosis(s.Guest())
		}
		moments.Mark(notebook.MomentAgain)
	default:
		var at time.Time
		if cause, at = s.function(ctx, false); cause == "" {
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

// token is the file in the guest's memory that identifies a restored guest as the one that was saved.
const token = "/dev/shm/tare-token"

// witness leaves something in the guest's memory that only this guest can know after its restore. For a service, that is the order
// in progress: the ruler holds it in memory and reports its end.
func (s *subject) witness(ctx context.Context) (prove func(context.Context) (words, cause string), cause string) {
	if s.Service() != nil {
		return func(context.Context) (string, string) {
			if s.Service().Over() {
				return "", s.Service().How()
			}
			s.Service().Stop()
			<-s.Service().Alive().Done() // the client limits this wait
			if _, err := s.Service().Result(); err != nil && !errors.Is(err, context.Canceled) {
				return "", err.Error()
			}
			return "the order that was in progress when it was saved was ended by its ruler afterwards", ""
		}, ""
	}
	id := crowd.NewID()
	ask := func(ctx context.Context, argv ...string) (ruler.Result, string) {
		res, _, err := s.Guest().Ruler().Run(ctx, ruler.Order{Argv: argv, Timeout: crowd.AskTimeout, KeepScratch: true, OutputLimit: 1 << 10})
		if err != nil {
			return res, err.Error() + crowd.Diagnosis(s.Guest())
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
