//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/journal"
)

// The journal's kinds for a guest's own cgroups. The words "layers" date from when only guests of the isolation ladder had them.
const (
	KindGroups     = "layers-cgroups"           // target: the cgroups' name, in any hierarchy
	KindController = "layers-cgroup-controller" // target: a cgroup.subtree_control

	detailController = "controller"
)

func undoGroups() map[string]journal.Undo {
	return map[string]journal.Undo{
		KindGroups:     func(ctx context.Context, e journal.Entry) error { return cgroup.RemoveEverywhere(ctx, e.Target) },
		KindController: undoController,
	}
}

// Setting is a value for one of a cgroup's files.
type Setting struct{ File, Value string }

// MakeGroups makes cgroups for the guest, one in each of the hierarchies, and returns their folders in that order. In version 2,
// groups below the root get those of the controllers that the kernel has. settings returns the settings of the group in a
// hierarchy, in order.
func (b *Base) MakeGroups(in []cgroup.Hierarchy, controllers []string, settings func(cgroup.Hierarchy) ([]Setting, error)) (dirs []string, err error) {
	name := ContainerName(b.Spec.ID)
	for _, h := range in {
		// Check before the entry is written: otherwise undoing it would remove another guest's group.
		switch _, err := os.Lstat(filepath.Join(h.At, name)); {
		case err == nil:
			return nil, fmt.Errorf("cgroup %s in %s exists already; wait for the tare that made it, or run `tare clean` with its TARE_STATE", name, h.At)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	for _, h := range in {
		if h.V2 {
			if err := b.enable(h, controllers); err != nil {
				return nil, err
			}
		}
	}
	if err := b.Changes.Announce(journal.Entry{Kind: KindGroups, Target: name}); err != nil {
		return nil, err
	}
	for _, h := range in {
		dir := filepath.Join(h.At, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		set, err := settings(h)
		if err != nil {
			return nil, err
		}
		for _, s := range set {
			if err := WriteSetting(filepath.Join(dir, s.File), s.Value); err != nil {
				return nil, err
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// enable gives the cgroups below the root of a hierarchy of version 2 these controllers.
func (b *Base) enable(h cgroup.Hierarchy, controllers []string) error {
	file := filepath.Join(h.At, "cgroup.subtree_control")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, c := range controllers {
		if !h.Has(c) || slices.Contains(strings.Fields(string(text)), c) {
			continue
		}
		if err := b.Changes.Announce(journal.Entry{Kind: KindController, Target: file, Detail: map[string]string{detailController: c}}); err != nil {
			return err
		}
		if err := WriteSetting(file, "+"+c); err != nil {
			return &UnsupportedError{Engine: "a cgroup of the guest's own", What: "the controller " + c, Why: err.Error()}
		}
	}
	return nil
}

// limitFile is the file with a cgroup's limit by each controller in version 2. It is empty or max where there is no limit.
var limitFile = map[string]string{"cpuset": "cpuset.cpus", "cpu": "cpu.max", "io": "io.max", "memory": "memory.max", "pids": "pids.max"}

// undoController removes a controller from the cgroups of version 2. It keeps the controller while another cgroup at the top uses
// it, because that cgroup would lose its limits.
func undoController(_ context.Context, e journal.Entry) error {
	c := e.Detail[detailController]
	others, err := filepath.Glob(filepath.Join(filepath.Dir(e.Target), "*", "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, o := range others {
		for _, file := range []string{o, filepath.Join(filepath.Dir(o), limitFile[c])} {
			b, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) { // cgroups come and go
				return err
			}
			has := strings.Fields(string(b))
			if file == o && slices.Contains(has, c) || file != o && len(has) > 0 && has[0] != "max" {
				return nil
			}
		}
	}
	err = WriteSetting(e.Target, "-"+c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the hierarchy itself is gone
	}
	return err
}

// WriteSetting writes a value to one of the kernel's files.
func WriteSetting(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("setting it to %q: %w", value, err)
	}
	return nil
}
