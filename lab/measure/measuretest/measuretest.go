// Package measuretest is a fake laboratory for tests of kinds of study. A method that a test has not defined panics.
package measuretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/measure"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Lab makes guests and counts them.
type Lab struct {
	measure.Lab
	Made       func(w crowd.Want) (crowd.Guest, error) // nil: makes a Guest that does nothing
	Live, Most int
}

// Provision implements crowd.Host.
func (l *Lab) Provision(_ context.Context, w crowd.Want) (crowd.Guest, error) {
	g, err := crowd.Guest(&Guest{Lab: l, T: w.Treatment}), error(nil)
	if l.Made != nil {
		g, err = l.Made(w)
	}
	if err == nil {
		l.Live++
		l.Most = max(l.Most, l.Live)
	}
	return g, err
}

// Seats implements crowd.Host.
func (*Lab) Seats(notebook.Treatment) (int, error) { return 2, nil }

// Journal implements measure.Lab.
func (*Lab) Journal() *journal.Journal { return nil }

// Guest is a guest that is also its own ruler.
type Guest struct {
	crowd.Guest
	*Lab
	T    notebook.Treatment
	Does func(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error)
}

func (g *Guest) Ruler() crowd.Ruler                        { return g }
func (*Guest) Limits() (notebook.Limits, error)            { return notebook.Limits{}, nil }
func (*Guest) Facts() engine.Facts                         { return engine.Facts{} }
func (*Guest) Address() engine.Address                     { return engine.Address{} }
func (*Guest) Watch() engine.Watch                         { return nil }
func (*Guest) Used() (time.Duration, error)                { return 0, nil }
func (*Guest) Throttled() (time.Duration, error)           { return 0, nil }
func (*Guest) Demanded() (proc.Demand, error)              { return proc.Demand{}, nil }
func (*Guest) Resident() (int64, error)                    { return 0, nil }
func (*Guest) Diagnose() string                            { return "" }
func (g *Guest) Destroy(context.Context) error             { g.Live--; return nil }
func (*Guest) RoundTrip() time.Duration                    { return time.Microsecond }
func (*Guest) Ping(context.Context) (time.Duration, error) { return time.Microsecond, nil }
func (*Guest) Cost(_ context.Context, n int, _ ...string) ([]time.Duration, error) {
	return make([]time.Duration, n), nil
}
func (*Guest) Clock(context.Context) (ahead, bound time.Duration, err error) {
	return 0, time.Millisecond, nil
}

// Run implements crowd.Ruler.
func (g *Guest) Run(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	if g.Does == nil {
		return ruler.Result{}, 0, nil
	}
	return g.Does(ctx, o)
}

// Work is a workload of one command.
func Work() *workload.Ready {
	return &workload.Ready{Workload: &workload.Workload{Name: "w", Command: []string{"true"}}, Image: &image.Image{}}
}

// Bench is the bench of these tests: each trial has one second, and a search has its usual time.
func Bench(l measure.Lab) measure.Bench {
	return measure.Bench{Lab: l, Timeout: time.Second, Note: func(*notebook.Message) {}, Until: func(d time.Duration) time.Time { return time.Now().Add(d) }}
}

// Trial makes one trial of a kind as a study does, on Bench.
func Trial(ctx context.Context, t *testing.T, c measure.Config, l measure.Lab, of measure.Cell, s measure.Step) (tr notebook.Trial, err error) {
	t.Helper()
	return TrialOf(ctx, t, c.Subject(Bench(l), of), s)
}

// TrialOf makes one trial of a subject as a study does: it makes the guest, sets it up, and removes it at the end. If the guest
// cannot be made or set up, the trial fails with that cause.
func TrialOf(ctx context.Context, t *testing.T, subject measure.Subject, s measure.Step) (tr notebook.Trial, err error) {
	t.Helper()
	if err := subject.Make(ctx); err != nil {
		return notebook.Trial{Failure: notebook.Say("no-guest", "cause", err)}, nil
	}
	defer func() {
		err = errors.Join(err, subject.Service().TakeDown(ctx), subject.Guest().Destroy(context.WithoutCancel(ctx)))
	}()
	cause, err := subject.SetUp(ctx)
	if cause != nil || err != nil {
		return notebook.Trial{Failure: cause}, err
	}
	tr, _, err = subject.Trial(ctx, s)
	return tr, err
}
