//go:build linux

package journal

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
)

// Changes are the changes to the host for one purpose, such as a guest: recorded in the journal before they are made, and undone
// together in reverse order. Only one goroutine at a time may use them.
type Changes struct {
	journal *Journal
	undo    map[string]Undo
	open    []numbered
}

// NewChanges keeps changes in the journal j. undo has the functions that undo them, by kind.
func NewChanges(j *Journal, undo map[string]Undo) *Changes {
	return &Changes{journal: j, undo: undo}
}

// Announce records changes in the journal before they are made, in one write. If it returns an error, make none of them. Do not
// announce what exists already: undoing it would remove what is not ours. A process can be announced only once it lives (see
// ProcessEntry), so start it in a way that it ends by itself if its starter dies first.
func (c *Changes) Announce(entries ...Entry) error {
	for _, e := range entries {
		if c.undo[e.Kind] == nil {
			return fmt.Errorf("no function can undo a change of kind %q: %q", e.Kind, e.Target)
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

// Lend lends the journal's lock to a program that makes a change, before it starts. If this process dies first, Recover waits for the
// program's end. Otherwise the program could make the change after it was undone.
func (c *Changes) Lend(cmd *exec.Cmd) {
	cmd.ExtraFiles = append(cmd.ExtraFiles, c.journal.file)
}

// Undo undoes all changes, the last one first. A change that could not be undone stays, for another call or for Recover, and the
// error names it.
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
			return errors.Join(append(errs, err)...) // all stay: undoing them again does nothing
		}
	}
	slices.Reverse(kept)
	c.open = kept
	return errors.Join(errs...)
}
