//go:build linux

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"tare/lab/journal"
	"tare/lab/ruler"
	"tare/notebook"
)

// Creator is an engine whose guests can be made first and started later, at a moment of the caller's: the containers that are "pre-created" in
// section 5.1.1 of the paper "characterization".
type Creator interface {
	Driver
	// Create makes all of a guest but what its engine does when it is asked to start it. On error nothing of it remains.
	Create(ctx context.Context, s Spec) (*Ahead, error)
}

// Ahead is a guest that is made and not started. Start and Meet are called once each, and may be under way at the same time: a ruler says hello
// before its engine says that it has started it.
type Ahead struct {
	guest   Made
	recipe  Recipe
	meeting Meeting
}

// Create makes as much of the guest of a recipe as there is before it is started: its part in the network, its folder, and what the recipe
// creates. Where a step fails, all that was made is taken back.
func Create(ctx context.Context, env Env, s Spec, g Made, r Recipe) (_ *Ahead, err error) {
	a, b := &Ahead{guest: g, recipe: r}, g.base()
	undo := Undo()
	maps.Copy(undo, r.Undo)
	b.Spec, b.Changes = s, journal.NewChanges(env.Journal, undo)
	defer func() {
		if err != nil {
			err = a.undone(ctx, err)
		}
	}()
	if b.Connection, err = Connect(ctx, s.Network, r.Address, b.Changes); err != nil {
		return nil, err
	}
	if b.Folder, err = makeFolder(b.Changes, env.State, s.ID, r.Programs, r.Journal); err != nil {
		return nil, err
	}
	a.meeting, err = r.Create(ctx)
	return a, err
}

// undone takes back all that was made of the guest, for which it gives the reason.
func (a *Ahead) undone(ctx context.Context, why error) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return errors.Join(fmt.Errorf("%s %s: %w", a.recipe.What, a.guest.base().Spec.ID, why), a.guest.Destroy(bounded))
}

func (a *Ahead) start(ctx context.Context) error {
	if a.recipe.Start == nil {
		return nil
	}
	return a.recipe.Start(ctx)
}

// meet waits for the ruler and its hello, and does what is to be done with its process: Recipe.Met says when.
func (a *Ahead) meet(ctx context.Context, then func(context.Context) error) (err error) {
	b := a.guest.base()
	patience := cmp.Or(a.recipe.HelloTime, HelloTime)
	hello, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var beside chan error // nil: it is done after the hello
	stream, pid, err := a.meeting.Meet(hello)
	if err == nil {
		if pid != 0 {
			b.PID = pid
			if b.Spec.Moments == nil {
				beside = make(chan error, 1)
				go func() { beside <- then(ctx) }()
			}
		}
		b.Client, err = ruler.Connect(hello, stream)
	}
	var done error
	if beside != nil {
		done = <-beside
	}
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for its ruler's hello: %w", ctx.Err())
		}
		err = fmt.Errorf("waiting for its ruler's hello: %w", err)
		if hello.Err() != nil {
			err = fmt.Errorf("its ruler did not say hello within %v", patience)
		}
		if a.recipe.ErrorsFrom != nil {
			return a.recipe.ErrorsFrom(err)
		}
		return fmt.Errorf("%w (%s)", err, a.guest.Diagnose())
	}
	if beside != nil {
		return done
	}
	b.Spec.Moments.At(notebook.MomentFirst, b.Client.Began())
	b.Spec.Moments.At(notebook.MomentHello, b.Client.Greeted())
	return then(ctx)
}

// Start asks the engine to start the guest and returns when it says that it has: when its call, or its program, has returned.
func (a *Ahead) Start(ctx context.Context) error { return a.start(ctx) }

// Meet waits for the ruler's hello, from before or after Start on, and gives the guest. Its limits have not been looked at yet: InForce does
// that, when nothing is timed any more.
func (a *Ahead) Meet(ctx context.Context) (Guest, error) {
	if err := a.meet(ctx, a.recipe.Met); err != nil {
		return nil, err
	}
	return a.guest, nil
}

// InForce says whether the limits in force are those asked for, of a guest that was met.
func (a *Ahead) InForce() error { return a.recipe.InForce() }

// Destroy ends the guest, or what there is of it, and returns when nothing of it remains. It may be called more than once.
func (a *Ahead) Destroy(ctx context.Context) error { return a.guest.Destroy(ctx) }
