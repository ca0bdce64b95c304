//go:build linux

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Changes are what was changed on the host for one purpose, a guest say: journaled before they are made, undone together in
// reverse order. Not for use by several goroutines at once.
type Changes struct {
	journal *Journal
	undo    map[string]Undo
	open    []numbered
}

// NewChanges keeps changes in the journal j. undo are the ways of undoing them.
func NewChanges(j *Journal, undo map[string]Undo) *Changes {
	return &Changes{journal: j, undo: undo}
}

// Announce journals changes that are about to be made, in one write. When it returns an error none of them must be made. What is
// there already must not be announced: its undoing would take away what is not ours. A process can be announced only once it lives
// (see ProcessEntry): start it so that it ends by itself when its starter dies in between.
func (c *Changes) Announce(entries ...Entry) error {
	for _, e := range entries {
		if c.undo[e.Kind] == nil {
			return fmt.Errorf("no way is known to undo a change of kind %q: %q", e.Kind, e.Target)
		}
	}
	id, err := c.journal.record(entries...)
	if err != nil {
		return err
	}
	for i, e := range entries {
		e.State = c.journal.state
		c.open = append(c.open, numbered{id + i, e})
	}
	return nil
}

// Undo takes all changes back, the last one first. What could not be undone stays, for another call or for
// Recover, and is named in the error.
func (c *Changes) Undo(ctx context.Context) error {
	var kept []numbered
	var done []int
	var errs []error
	for _, o := range slices.Backward(c.open) {
		if err := c.undo[o.Kind](ctx, o.Entry); err != nil {
			errs = append(errs, fmt.Errorf("undoing %s %s: %w", o.Kind, o.Target, err))
			kept = append(kept, o)
			continue
		}
		done = append(done, o.id)
	}
	if len(done) > 0 {
		if err := c.journal.done(done...); err != nil {
			return errors.Join(append(errs, err)...) // all stay: what is undone a second time is not there any more
		}
	}
	slices.Reverse(kept)
	c.open = kept
	return errors.Join(errs...)
}
