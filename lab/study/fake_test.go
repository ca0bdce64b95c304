package study

import (
	"context"
	"errors"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/measure/measuretest"
	"tare/lab/ruler"
	"tare/notebook"
)

// fakeLab makes guests that take known times, and records their order.
type fakeLab struct {
	measuretest.Lab
	tracers fakeTracers
	order   []string
	booted  bool // a VM was booted to find its accelerator

	elapsed func(notebook.Treatment) time.Duration
	making  func(notebook.Treatment) time.Duration                     // how long Provision takes; nil: no time passes in it or in the work
	result  func(notebook.Treatment, ruler.Order, *ruler.Result) error // changes the result of a run; nil: the run succeeds

	noAccel error            // Accelerator's
	cannot  map[string]error // Supports', by platform
	unready map[string]error // Prepare's, by treatment
	broken  map[string]error // Provision's, by treatment
}

func (*fakeLab) UseKernels(map[string]string) {}
func (*fakeLab) Host() notebook.Host {
	return notebook.Host{CPUs: make([]notebook.CPU, 2), Memory: 4 << 30}
}
func (l *fakeLab) Supports(_ context.Context, t notebook.Treatment) error {
	return l.cannot[t.Platform]
}
func (l *fakeLab) Prepare(_ context.Context, t notebook.Treatment, _ *image.Image) error {
	return l.unready[t.ID]
}
func (l *fakeLab) Accelerator(context.Context, engine.Kind, string, string, bool) (string, error) {
	l.booted = true
	return notebook.TCG, l.noAccel
}
func (l *fakeLab) Provision(ctx context.Context, w crowd.Want) (crowd.Guest, error) {
	l.order = append(l.order, w.Treatment.ID)
	if err := l.broken[w.Treatment.ID]; err != nil {
		return nil, err
	}
	if l.making != nil {
		time.Sleep(l.making(w.Treatment)) // in a synctest bubble
	}
	if l.Made == nil {
		l.Made = func(w crowd.Want) (crowd.Guest, error) {
			g := l.guest(w.Treatment)
			return &g, nil
		}
	}
	return l.Lab.Provision(ctx, w)
}

type fakeGuest struct {
	measuretest.Guest
	l *fakeLab
}

func (l *fakeLab) guest(t notebook.Treatment) fakeGuest {
	run := func(_ context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
		defer l.tracers.told(o)()
		d := l.elapsed(t)
		if l.making != nil {
			time.Sleep(d)
		}
		r := ruler.Result{Elapsed: d, Usage: notebook.Usage{UserS: 0.75 * d.Seconds(), SystemS: 0.25 * d.Seconds()}}
		if l.result == nil {
			return r, d, nil
		}
		err := l.result(t, o, &r)
		return r, d, err
	}
	return fakeGuest{measuretest.Guest{Lab: &l.Lab, T: t, Does: run}, l}
}

// Used returns nothing: time is simulated, so the host's clocks would be wrong, and reading them for thousands of trials would be slow.
func (g *fakeGuest) Used() (time.Duration, error) {
	if g.l.making != nil {
		return 0, errors.New("its time is simulated")
	}
	return 0, nil
}
func (g *fakeGuest) Trace(of crowd.Traced) (crowd.Tracing, error) {
	return g.l.tracers.attach(g.T, of.Clock)
}
