//go:build linux

package starting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/starting"
	"tare/notebook/notebooktest"
)

// starter is a laboratory whose guests do nothing, and the page cache of its host.
type starter struct {
	measuretest.Lab
	exit    int             // exit status of the work
	broken  error           // why no guest can be made
	unsaved error           // why no guest can be saved
	cached  notebook.Cached // what the page cache holds of a start's files
	kept    notebook.Cached // what it holds of these and the saved state
	asked   []string        // the calls to the page cache
	memory  string          // contents of the guest's memory
}

func (l *starter) Provision(ctx context.Context, w crowd.Want) (crowd.Guest, error) {
	l.Made = func(w crowd.Want) (crowd.Guest, error) {
		return &guest{measuretest.Guest{Lab: &l.Lab, T: w.Treatment, Does: l.work}, l}, l.broken
	}
	return l.Lab.Provision(ctx, w)
}

func (*starter) Reads(context.Context, notebook.Treatment, *workload.Ready) ([]string, error) {
	return []string{"/root"}, nil
}

func (l *starter) cache(_ context.Context, paths []string, cache string) (notebook.Cached, error) {
	l.asked = append(l.asked, fmt.Sprint(cache, paths))
	if slices.Contains(paths, "/state") {
		return l.kept, nil
	}
	return l.cached, nil
}

// work is the work of a guest: it writes or reads a file in the guest's memory; everything else ends at once.
func (l *starter) work(_ context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	switch {
	case o.Argv[0] == "/bin/sh":
		said, _, _ := strings.Cut(strings.TrimPrefix(o.Argv[2], "echo "), " >"+token)
		l.memory = said + "\n"
	case slices.Equal(o.Argv, []string{"/bin/cat", token}):
		return ruler.Result{Stdout: []byte(l.memory)}, 0, nil
	}
	return ruler.Result{Exit: l.exit, Elapsed: time.Second}, time.Second, nil
}

// guest can be saved and restored.
type guest struct {
	measuretest.Guest
	l *starter
}

func (g *guest) Save(context.Context) (engine.Saved, error) {
	return engine.Saved{Bytes: 2 << 20, How: notebook.TextMessage("in a test"), Path: "/state"}, g.l.unsaved
}

func (*guest) Restore(_ context.Context, m *engine.Moments) error {
	m.Mark(notebook.MomentRestored)
	return nil
}

// start makes one trial with the page cache cold or warm.
func (l *starter) start(t *testing.T, cache string) notebook.Trial {
	t.Helper()
	c := config{Config: record.Config{Caches: notebook.Caches, Restore: true}, files: l}
	of := notebook.Treatment{Platform: notebook.CN, Factors: map[string]string{notebook.FactorCache.Name: cache}}
	tr, err := measuretest.Trial(t.Context(), t, c, l, measure.Cell{Treatment: of, Ready: measuretest.Work(), ID: "x"}, measure.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Live != 0 {
		t.Errorf("%d guests are left", l.Live)
	}
	return tr
}

// A study file may name a moment by its key, or by its name in folders of format 1.
func TestPublishedMoments(t *testing.T) {
	for _, moment := range []string{"login_prompt", "login prompt"} {
		c, err := file{Published: []record.Published{{Name: "VM", Moment: moment, StartS: 10}}}.config()
		if err != nil || c.(config).Published[0].Moment != notebook.MomentLogin {
			t.Errorf("%s: %+v, %v", moment, c, err)
		}
	}
	if _, err := (file{Published: []record.Published{{Name: "VM", Moment: "tea time", StartS: 10}}}).config(); err == nil || !strings.Contains(err.Error(), "login_prompt, or first_answer") && !strings.Contains(err.Error(), "login_prompt or first_answer") {
		t.Error(err)
	}
}

// A trial is one start, with the page cache as the treatment says. A guest that cannot be saved still counts as a start.
func TestStarts(t *testing.T) {
	never := &engine.UnsupportedError{Engine: "cn", What: "a saved state", Why: "of a test"}
	for _, c := range []struct {
		name, cache string
		resident    int64
		exit        int
		broken      error
		failure     *notebook.Message
	}{
		{name: "warm", cache: notebook.CacheWarm, resident: 100},
		{name: "cold", cache: notebook.CacheCold},
		{name: "no room for a warm cache", cache: notebook.CacheWarm, resident: 50, failure: notebook.Say("not-cached", "want", "warm", "share", 0.5, "of_mib", 0)},
		{name: "what is mapped stays", cache: notebook.CacheCold, resident: 50, failure: notebook.Say("not-cached", "want", "cold", "share", 0.5, "of_mib", 0)},
		{name: "no result", cache: notebook.CacheWarm, resident: 100, exit: 3, failure: notebook.Say("exit", "status", 3, "said", "")},
		{name: "no guest", cache: notebook.CacheWarm, broken: errors.New("the engine does not answer"), failure: notebook.Say("no-guest", "cause", "the engine does not answer")},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &starter{cached: notebook.Cached{Files: 1, Bytes: 100, Resident: c.resident}, unsaved: never, exit: c.exit, broken: c.broken}
			tr := l.start(t, c.cache)
			if !tr.Failure.Equal(c.failure) {
				t.Errorf("failure %q, want %q", tr.Failure, c.failure)
			}
			seen := notebooktest.Seen[record.Seen](&tr).Startup
			if c.failure == nil && (!(tr.Value > 0) || tr.Value != tr.Figures[notebook.MomentAnswer] || !strings.Contains(seen.NoSaving.String(), "of a test")) {
				t.Errorf("%+v, %+v", tr, seen)
			}
			if want := []string{c.cache + "[/root]"}; !slices.Equal(l.asked, want) {
				t.Errorf("the page cache was asked for %q, want %q", l.asked, want)
			}
		})
	}
}

// Before a restore the saved state is in the page cache or not, as the treatment says. It has just been written, and a cold restore
// that found it in memory would not read from disk.
func TestTheStateIsColdBeforeAColdRestore(t *testing.T) {
	for _, c := range []struct {
		cache    string
		resident int64
		failure  *notebook.Message
	}{
		{notebook.CacheCold, 0, nil}, {notebook.CacheWarm, 100, nil},
		{notebook.CacheCold, 60, notebook.Say("before-restore", "cause", notebook.Say("not-cached", "want", "cold", "share", 0.6, "of_mib", 0))},
	} {
		kept := notebook.Cached{Files: 2, Bytes: 100, Resident: c.resident}
		l := &starter{kept: kept, cached: kept}
		if c.failure != nil {
			l.cached.Resident = 0
		}
		tr := l.start(t, c.cache)
		if want := []string{c.cache + "[/root]", c.cache + "[/root /state]"}; !slices.Equal(l.asked, want) {
			t.Errorf("%s: the page cache was asked for %q, want %q: %s", c.cache, l.asked, want, tr.Failure)
		}
		seen := notebooktest.Seen[record.Seen](&tr).Startup
		if seen == nil || seen.RestoreCached == nil || *seen.RestoreCached != kept {
			t.Fatalf("%s: %+v", c.cache, seen)
		}
		if !tr.Failure.Equal(c.failure) {
			t.Errorf("%s: failure %q, want %q", c.cache, tr.Failure, c.failure)
		}
		if went := seen.WentOn != nil; went != (c.failure == nil) {
			t.Errorf("%s: it went on where it was: %v", c.cache, went)
		}
	}
}
