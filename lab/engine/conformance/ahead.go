//go:build linux

package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/notebook"
)

// ahead checks guests that are made first and started later. Nothing of such a guest runs before its start, and then it is like any
// other. Nothing remains of one that is never started, or whose making is interrupted.
func (r *suite) ahead(t *testing.T) {
	c, ok := r.driver.(engine.Creator)
	if !ok {
		t.Fatalf("%s is declared to make guests ahead, but a %T is not an engine.Creator", r.s.Name, r.driver)
	}
	before := r.snapshot(t)
	ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(40*time.Second))
	defer cancel()
	r.startedLater(ctx, t, c, before)

	a, s, err := r.create(ctx, t, c)
	if err != nil {
		t.Fatalf("creating one that is not started: %v", err)
	}
	for range 2 {
		if err := a.Destroy(ctx); err != nil {
			t.Errorf("destroying one that was not started: %v", err)
		}
	}
	r.nothingRemains(t, before, s.ID)

	over, end := context.WithCancel(ctx)
	end()
	if a, s, err = r.create(over, t, c); err == nil { // an engine may have had enough time
		err = a.Destroy(ctx)
	} else if errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		t.Errorf("creating one for a context that has ended: %v", err)
	}
	r.nothingRemains(t, before, s.ID)
}

// create makes a guest, which is destroyed with the test.
func (r *suite) create(ctx context.Context, t *testing.T, c engine.Creator) (*engine.Ahead, engine.Spec, error) {
	s := r.spec(t, r.e.Provisionings[0], 1)
	s.Moments = engine.NewMoments()
	a, err := c.Create(ctx, s)
	if err != nil {
		return nil, s, err
	}
	t.Cleanup(func() {
		if err := a.Destroy(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("destroying: %v", err)
		}
	})
	return a, s, nil
}

// startedLater makes a guest, starts it, and checks that it is like any other, and that its moments are right.
func (r *suite) startedLater(ctx context.Context, t *testing.T, c engine.Creator, before snapshot) {
	made := time.Now()
	a, s, err := r.create(ctx, t, c)
	if err != nil {
		t.Fatalf("creating: %v", err)
	}
	r.notRunning(t, s)
	met, hello := make(chan error, 1), time.Time{}
	var g engine.Guest
	go func() { // as a study does: a ruler may say hello before its engine reports the start
		var err error
		g, err = a.Meet(ctx)
		hello = time.Now()
		met <- err
	}()
	began := time.Now()
	if err := a.Start(ctx); err != nil {
		t.Fatalf("starting: %v", err)
	}
	t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
	if err := <-met; err != nil {
		t.Fatalf("meeting: %v", err)
	}
	if err := a.InForce(); err != nil {
		t.Errorf("its limits: %v", err)
	}
	r.answers(t, g)
	r.limits(t, g, s)
	if got := r.sh(t, g, "echo here"); got != "here" {
		t.Errorf("it printed %q", got)
	}
	at := map[string]time.Duration{}
	for _, m := range s.Moments.Noted() {
		at[m.Name] = time.Duration(m.NS)
	}
	first, said := at[notebook.MomentFirst], at[notebook.MomentHello]
	if asked := began.Sub(made); first < asked || said < first || said > asked+hello.Sub(began) {
		t.Errorf("it was asked to start after %v, ran after %v, said hello after %v and was met after %v", asked, first, said, asked+hello.Sub(began))
	}
	r.end(t, before, g, s)
}

// notRunning checks that no process of the guest runs: with its name in its cgroup, or its root.
func (r *suite) notRunning(t *testing.T, s engine.Spec) {
	t.Helper()
	all, err := processes(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if strings.Contains(p, `root /`) && !strings.HasSuffix(p, "root /") || strings.Contains(p, "ruler") {
			t.Errorf("it is not started, but %s runs", p)
		}
	}
}
