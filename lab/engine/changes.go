//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tare/lab/journal"
)

// Changes are what a driver has changed on the host for one guest: journaled before they are made, undone in
// reverse order. Not for use by several goroutines at once.
type Changes struct {
	journal *journal.Journal
	undo    map[string]journal.Undo
	open    []change
}

type change struct {
	id    int
	entry journal.Entry
}

// NewChanges keeps changes in the journal j. undo are the driver's own ways of undoing, as it gives them to
// journal.Recover; those of this package (Undo) need not be among them.
func NewChanges(j *journal.Journal, undo map[string]journal.Undo) *Changes {
	all := Undo()
	maps.Copy(all, undo)
	return &Changes{journal: j, undo: all}
}

// Announce journals changes that are about to be made, in one write. When it returns an error none of them must be made.
func (c *Changes) Announce(entries ...journal.Entry) error {
	for _, e := range entries {
		if c.undo[e.Kind] == nil {
			return fmt.Errorf("no way is known to undo a change of kind %q: %q", e.Kind, e.Target)
		}
	}
	id, err := c.journal.Record(entries...)
	if err != nil {
		return err
	}
	for i, e := range entries {
		c.open = append(c.open, change{id + i, e})
	}
	return nil
}

// Undo takes all changes back, the last one first. What could not be undone stays, for another call or for
// journal.Recover, and is named in the error.
func (c *Changes) Undo(ctx context.Context) error {
	var kept []change
	var done []int
	var errs []error
	for _, o := range slices.Backward(c.open) {
		if err := c.undo[o.entry.Kind](ctx, o.entry); err != nil {
			errs = append(errs, fmt.Errorf("undoing %s %s: %w", o.entry.Kind, o.entry.Target, err))
			kept = append(kept, o)
			continue
		}
		done = append(done, o.id)
	}
	if len(done) > 0 {
		if err := c.journal.Done(done...); err != nil {
			return errors.Join(append(errs, err)...) // all stay: what is undone a second time is not there any more
		}
	}
	slices.Reverse(kept)
	c.open = kept
	return errors.Join(errs...)
}
