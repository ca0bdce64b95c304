//go:build linux

package session

import (
	"context"
	"fmt"
	"slices"

	"tare/lab/journal"
	"tare/lab/setting"
)

// hostSet is what the host is set to for guests.
type hostSet struct {
	files   []setting.File
	changes *journal.Changes // changes made for it; nil: none
}

// to sets the host to what guests of a treatment need. After a change that could not be undone, no guest is made until another attempt
// has worked.
func (h *hostSet) to(ctx context.Context, j *journal.Journal, files []setting.File) (err error) {
	if slices.Equal(h.files, files) {
		return nil
	}
	if h.changes != nil {
		if err := h.changes.Undo(ctx); err != nil {
			return fmt.Errorf("%w; `tare clean` tries again", err)
		}
	}
	*h = hostSet{}
	if h.changes, err = setting.Host.Set(ctx, j, files); err == nil {
		h.files = files
	}
	return err
}
