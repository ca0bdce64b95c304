//go:build linux

package session

import (
	"context"
	"fmt"

	"tare/lab/hugepages"
	"tare/lab/journal"
)

// pages are the huge pages that processes get without asking.
type pages struct {
	value   string           // the value of notebook.FactorHugePages that the host is set for
	changes *journal.Changes // changes made for it; nil: none
}

// of makes the host give guests of that value their huge pages. After a change that could not be undone, no guest is made until
// another attempt has worked.
func (p *pages) of(ctx context.Context, j *journal.Journal, value string) (err error) {
	if p.value == value {
		return nil
	}
	if p.changes != nil {
		if err := p.changes.Undo(ctx); err != nil {
			return fmt.Errorf("%w; `tare clean` tries again", err)
		}
	}
	*p = pages{}
	if p.changes, err = hugepages.Host.Set(ctx, j, value); err == nil {
		p.value = value
	}
	return err
}
