//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

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

// Announce journals a change that is about to be made. When it returns an error the change must not be made.
func (c *Changes) Announce(e journal.Entry) error {
	if c.undo[e.Kind] == nil {
		return fmt.Errorf("no way is known to undo a change of kind %q: %q", e.Kind, e.Target)
	}
	id, err := c.journal.Record(e)
	if err != nil {
		return err
	}
	c.open = append(c.open, change{id, e})
	return nil
}

// Undo takes all changes back, the last one first. What could not be undone stays, for another call or for
// journal.Recover, and is named in the error.
func (c *Changes) Undo(ctx context.Context) error {
	var kept []change
	var errs []error
	for i := len(c.open) - 1; i >= 0; i-- {
		o := c.open[i]
		err := c.undo[o.entry.Kind](ctx, o.entry)
		if err == nil {
			err = c.journal.Done(o.id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("undoing %s %s: %w", o.entry.Kind, o.entry.Target, err))
			kept = append([]change{o}, kept...)
		}
	}
	c.open = kept
	return errors.Join(errs...)
}
