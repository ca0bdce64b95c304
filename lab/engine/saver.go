package engine

import (
	"context"

	"tare/notebook"
)

// Saver is a guest that can be saved and taken up again, as the paper "virtualization-overheads" has it in chapter 5.
type Saver interface {
	// Save writes the guest's state to its folder and ends all that runs of the guest. An order that is Restorable may be in progress in it; nothing may be sent to
	// its ruler until it is restored. An *UnsupportedError says why this guest cannot be saved, which then goes on as it was.
	Save(ctx context.Context) (Saved, error)
	// Restore has the saved guest go on where it was, on the same ruler's stream. It notes notebook.MomentRestored.
	Restore(ctx context.Context, m *Moments) error
}

// Saved is the state of a guest that was saved.
type Saved struct {
	Bytes int64             // on disk
	How   *notebook.Message // by what, for the record
	Path  string            // of the file, or the folder, that it is in
}

// Reads is an engine that reads other files for a guest than its image's and its work's folders, by which a start is made cold or warm.
type Reads interface {
	// Reads gives the files, and folders of such.
	Reads(ctx context.Context, s Spec) ([]string, error)
}
