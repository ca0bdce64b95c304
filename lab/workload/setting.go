package workload

import (
	"context"
	"maps"

	"tare/lab/image"
)

// Setting is what a user's command gets in addition to its image. A study's hash covers it, because the hash covers the study's text.
type Setting struct {
	Args []string // for the image's ENTRYPOINT, instead of its CMD
	Env  []string // KEY=VALUE
	Dir  string   // the working folder; empty: the image's
	User string   // as an image names it; empty: the image's

	Volumes []image.Volume // copied into the root, so every platform has the same bytes

	Before []string // runs in the guest, unmeasured: before each run of the command, or before the service starts
}

// Replace replaces the content of a file of the workload's folder.
func (w *Workload) Replace(name string, data []byte) {
	w.replaced = maps.Clone(w.replaced)
	if w.replaced == nil {
		w.replaced = map[string][]byte{}
	}
	w.replaced[name] = data
}

// applied returns the root with the setting applied.
func (s *Setting) applied(ctx context.Context, store *image.Store, root *image.Image, say image.Progress) (*image.Image, error) {
	if len(s.Volumes) == 0 && len(s.Args) == 0 && s.User == "" && s.Dir == "" {
		return root, nil
	}
	with, err := store.WithVolumes(ctx, root, s.Volumes, say)
	if err != nil {
		return nil, err
	}
	own := *with
	if s.User != "" {
		if own.Config, err = own.As(s.User); err != nil {
			return nil, err
		}
	}
	if len(s.Args) > 0 {
		own.Config.Cmd = s.Args
	}
	if s.Dir != "" {
		own.Config.WorkingDir = s.Dir
	}
	return &own, nil
}
