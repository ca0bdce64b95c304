package study

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tare/lab/engine"
	"tare/notebook"
	startingkind "tare/notebook/kinds/starting"
)

// A trial of a study of starts is one guest, whose page cache was as the treatment has it; one that cannot be saved is none the less a start.
func TestStarts(t *testing.T) {
	never := &engine.UnsupportedError{Engine: "cn", What: "a saved state", Why: "of a test"}
	for _, c := range []struct {
		name, cache string
		resident    int64
		exit        int
		broken      error
		failure     string
	}{
		{name: "warm", cache: notebook.CacheWarm, resident: 100},
		{name: "cold", cache: notebook.CacheCold},
		{name: "no room for a warm cache", cache: notebook.CacheWarm, resident: 50, failure: "the page cache was not warm: it had 50 %"},
		{name: "what is mapped stays", cache: notebook.CacheCold, resident: 50, failure: "the page cache was not cold"},
		{name: "no result", cache: notebook.CacheWarm, resident: 100, exit: 3, failure: "exit"},
		{name: "no guest", cache: notebook.CacheWarm, broken: errors.New("the engine does not answer"), failure: "no guest: the engine does not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &fakeLab{cached: notebook.Cached{Files: 1, Bytes: 100, Resident: c.resident}, unsaved: never, elapsed: steady, exit: func(notebook.Treatment) int { return c.exit }}
			plan := fakePlan(notebook.Design{Floor: 2, Cap: 2, Trials: 1}, cnT)
			plan.Study.Kind, plan.Study.Config, plan.Study.Design.TimeoutS = startingkind.Name, &startingkind.Config{Caches: notebook.Caches, Restore: true}, 60
			plan.Study.Treatments[0].Params = map[string]string{notebook.ParamCache: c.cache}
			of := plan.Study.Treatments[0]
			plan.ready[notebook.Label(of.Workload, of.Params)] = plan.ready[notebook.Label(of.Workload, nil)]
			if c.broken != nil {
				l.broken = map[string]error{of.ID: c.broken}
			}
			book := &fakeBook{}
			r := &Run{Plan: plan, Book: book, Lab: l}
			if _, err := r.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(book.trials) != 2 || l.live != 0 {
				t.Fatalf("%d trials, %d guests are left", len(book.trials), l.live)
			}
			for _, tr := range book.trials {
				if (c.failure == "") != (tr.Failure == "") || !strings.Contains(tr.Failure, c.failure) {
					t.Errorf("failure %q, want %q", tr.Failure, c.failure)
				}
				if c.failure == "" && (!(tr.Value > 0) || tr.Value != tr.Figures[notebook.MomentAnswer] || !strings.Contains(startingkind.SeenBy(&tr).Startup.NoSaving, "of a test")) {
					t.Errorf("%+v, %+v", tr, startingkind.SeenBy(&tr).Startup)
				}
			}
		})
	}
}

// Before a restore the saved state is in the page cache, or not, as the treatment has it: it has just been written, and a cold restore that found it in memory
// would read no disk.
func TestTheStateIsColdBeforeAColdRestore(t *testing.T) {
	for _, c := range []struct {
		cache    string
		resident int64
		failure  string
	}{
		{notebook.CacheCold, 0, ""}, {notebook.CacheWarm, 100, ""},
		{notebook.CacheCold, 60, "before its restore the page cache was not cold: it had 60 %"},
	} {
		kept := notebook.Cached{Files: 2, Bytes: 100, Resident: c.resident}
		l := &fakeLab{kept: kept, cached: kept}
		if c.failure != "" {
			l.cached.Resident = 0
		}
		plan := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, cnT)
		plan.Study.Kind, plan.Study.Config, plan.Study.Design.TimeoutS = startingkind.Name, &startingkind.Config{Caches: notebook.Caches, Restore: true}, 60
		plan.Study.Treatments[0].Params = map[string]string{notebook.ParamCache: c.cache}
		of := plan.Study.Treatments[0]
		plan.ready[notebook.Label(of.Workload, of.Params)] = plan.ready[notebook.Label(of.Workload, nil)]
		l.elapsed = steady
		book := &fakeBook{}
		if _, err := (&Run{Plan: plan, Book: book, Lab: l}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		tr := book.trials[0]
		if want := []string{c.cache + " /state"}; !slices.Equal(l.evicted, want) {
			t.Errorf("%s: the page cache was asked for %q, want %q: %s", c.cache, l.evicted, want, tr.Failure)
		}
		if startingkind.SeenBy(&tr).Startup.RestoreCached == nil || *startingkind.SeenBy(&tr).Startup.RestoreCached != kept {
			t.Errorf("%s: %+v", c.cache, startingkind.SeenBy(&tr).Startup.RestoreCached)
		}
		if c.failure != "" && !strings.Contains(tr.Failure, c.failure) {
			t.Errorf("%s: failure %q, want %q", c.cache, tr.Failure, c.failure)
		}
	}
}
