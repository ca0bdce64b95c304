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

// Creator is an engine whose guests can be made first and started later, when the caller wants: the "pre-created" containers of
// section 5.1.1 of the paper "characterization".
type Creator interface {
	Driver
	// Create makes everything of a guest except what its engine does when it starts the guest. On error nothing of it remains.
	Create(ctx context.Context, s Spec) (*Ahead, error)
}

// Ahead is a guest that is made but not started. Call Start and Meet once each. They may run at the same time, because a ruler says
// hello before its engine reports that it has started it.
type Ahead struct {
	guest   Made
	recipe  Recipe
	meeting Meeting
}

// Create makes the parts of the guest that exist before its start: its part in the network, its folder, and what the recipe
// creates. If a step fails, Create removes all of it.
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

// undone removes all that was made of the guest, and returns why.
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

// meet waits for the ruler and its hello, and then does the work on its process: Recipe.Met says when.
func (a *Ahead) meet(ctx context.Context, then func(context.Context) error) (err error) {
	b := a.guest.base()
	patience := cmp.Or(a.recipe.HelloTime, HelloTime)
	hello, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var beside chan error // nil: then runs after the hello
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

// Start asks the engine to start the guest, and returns when the engine's call or program has returned.
func (a *Ahead) Start(ctx context.Context) error { return a.start(ctx) }

// Meet waits for the ruler's hello, before or after Start, and returns the guest. It does not check the guest's limits. InForce
// does that later, when nothing is timed any more.
func (a *Ahead) Meet(ctx context.Context) (Guest, error) {
	if err := a.meet(ctx, a.recipe.Met); err != nil {
		return nil, err
	}
	return a.guest, nil
}

// InForce checks that the limits in force are the requested ones, for a guest that was met.
func (a *Ahead) InForce() error { return a.recipe.InForce() }

// Destroy ends the guest, or what exists of it, and returns when nothing of it remains. It may be called more than once.
func (a *Ahead) Destroy(ctx context.Context) error { return a.guest.Destroy(ctx) }
