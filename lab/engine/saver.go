package engine

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"tare/lab/journal"
	"tare/notebook"
)

// Saver is a guest that can be saved and restored, as in chapter 5 of the paper "virtualization-overheads".
type Saver interface {
	// Save writes the guest's state to its folder and ends everything that runs in the guest. An order that is Restorable may be in
	// progress. Send nothing to the guest's ruler until it is restored. An *UnsupportedError says why this guest cannot be saved;
	// the guest then goes on as before.
	Save(ctx context.Context) (Saved, error)
	// Restore lets the saved guest go on where it was, on the same ruler's stream. It records notebook.MomentRestored.
	Restore(ctx context.Context, m *Moments) error
}

// Saved is the state of a saved guest.
type Saved struct {
	Bytes int64             // on disk
	How   *notebook.Message // what saved it, for the record
	Path  string            // the file or folder that it is in
}

// Puller is an engine whose guests' starts can pull their image from a registry (Spec.Pull).
type Puller interface {
	// Forget removes what the engine has pulled of the reference, so that the next start pulls all of it again. It does nothing where there is
	// nothing to remove.
	Forget(ctx context.Context, reference string) error
}

// PulledRepository is the name, in Tare's own registry, of the images that starts pull.
const PulledRepository = "tare/root"

// OwnImage says why a reference in a journal's entry is not that of an image from Tare's own registry. Tare has engines forget no other.
func OwnImage(e journal.Entry) error {
	if !ownImage.MatchString(e.Target) {
		return fmt.Errorf("%q is not an image of Tare's own registry, and nothing else is Tare's to remove", e.Target)
	}
	return nil
}

var ownImage = regexp.MustCompile(`^127\.0\.0\.1:[0-9]{1,5}/` + PulledRepository + `@sha256:[0-9a-f]{64}$`)

// PullTime bounds the pulling of an image.
const PullTime = 4 * time.Minute

// Reads is an engine that reads files for a guest other than those of its image and its work. A cold or warm start depends on them.
type Reads interface {
	// Reads returns these files, and folders of such files.
	Reads(ctx context.Context, s Spec) ([]string, error)
}
