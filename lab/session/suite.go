//go:build linux

package session

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"

	"tare/lab/studyfile"
	"tare/lab/suite"
	"tare/lab/workload"
)

// Suite makes a disk image, a new file, with the study and everything that it needs. A machine that boots it runs the study.
func (l *Lab) Suite(ctx context.Context, s *studyfile.Spec, shipped bool, workloads fs.FS, out string) error {
	needs, err := s.Needs(workloads)
	if err != nil {
		return err
	}
	o := workload.Options{Store: l.store, Cache: l.cache(), Progress: l.say}
	if err := workload.Gather(ctx, needs.Workloads, o); err != nil {
		return err
	}
	roots, files, err := workload.Gathered(ctx, needs.Workloads, o)
	if err != nil {
		return err
	}
	c := suite.Content{Study: s.Name, Tare: l.env.Entry, State: map[string]string{}}
	if !shipped {
		c.Study, c.File = s.Source, true
	}
	for _, r := range roots {
		if !slices.Contains(c.Roots, r.Digest) {
			c.Roots = append(c.Roots, r.Digest)
		}
	}
	for _, path := range files {
		c.State[filepath.Join(inputsDir, filepath.Base(path))] = path
	}
	for _, k := range needs.Engines {
		c.Packages = append(c.Packages, k.Packages...)
	}
	if slices.ContainsFunc(needs.Workloads, func(w *workload.Workload) bool { return len(w.Build) > 0 }) {
		c.Packages = append(c.Packages, "gcc", "libc6-dev")
	}
	return suite.Build(ctx, l.store, c, StateDir, out, l.say)
}
