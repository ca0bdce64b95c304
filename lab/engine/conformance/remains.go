//go:build linux

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// snapshot is what the suite saw of the host and cannot tell to be a guest's by a name.
type snapshot struct {
	links   []string // network links
	netns   []string // mounts that hold a namespace
	cgroups []string // of engines that name them in their own way
	ports   []string // on the suite's bridge
	lease   string   // the next one there
	states  []string // folders that OCI runtimes keep of their containers where they are not told where
}

func (r *suite) snapshot(t *testing.T) snapshot {
	t.Helper()
	s, err := r.takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (r *suite) takeSnapshot() (s snapshot, err error) {
	if r.bridge != nil {
		if s.ports, err = ports(r.bridge.Name()); err != nil {
			return s, err
		}
		if s.lease, err = nextLease(r.bridge); err != nil {
			return s, err
		}
	}
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		s.links = append(s.links, e.Name())
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return s, err
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(info)) {
		// An engine may hold the host's own, from the first guest on that is on the host's network.
		if strings.Contains(line, " - nsfs ") && !strings.Contains(line, " "+own+" ") {
			s.netns = append(s.netns, strings.TrimSpace(line))
		}
	}
	for _, runtime := range []string{"runc", "crun"} {
		states, err := filepath.Glob(filepath.Join("/run", runtime, "*"))
		if err != nil {
			return s, err
		}
		s.states = append(s.states, states...)
	}
	s.cgroups, err = cgroups("/docker/") // not the folder itself, which is the engine's
	return s, err
}

// cgroups lists the cgroups of all hierarchies that have part in their path. A part that ends in a slash means what
// is below such a folder.
func cgroups(part string) ([]string, error) {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) { // gone while we looked
				return nil
			}
			return err
		}
		if d.IsDir() && strings.Contains(path, part) {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// nothingRemains fails the test where anything of the guests whose name has id in it is left: a process, cgroup,
// mount, file, engine object, port of the bridge, lease, and with an engine a network link or namespace that was not there before. Kernels
// and engines finish some of it in the background (a network link goes with its namespace), so a look is repeated
// for a short while.
func (r *suite) nothingRemains(t *testing.T, before snapshot, id string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		left, err := r.remains(before, id)
		if err != nil {
			t.Fatalf("looking for what remains: %v", err)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("of guest %s there remain:\n%s", id, strings.Join(left, "\n"))
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *suite) remains(before snapshot, id string) (left []string, err error) {
	ps, err := processes(id)
	if err != nil {
		return nil, err
	}
	left = append(left, ps...)
	cs, err := cgroups(id)
	if err != nil {
		return nil, err
	}
	for _, c := range cs {
		left = append(left, "cgroup "+c)
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(info)) {
		if strings.Contains(line, id) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	err = filepath.WalkDir(r.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if strings.Contains(d.Name(), id) {
			left = append(left, "file "+path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	now, err := r.takeSnapshot()
	if err != nil {
		return nil, err
	}
	for _, p := range now.ports {
		if !slices.Contains(before.ports, p) {
			left = append(left, "port of the bridge "+p)
		}
	}
	if now.lease != before.lease {
		left = append(left, fmt.Sprintf("a leased address (the next is %s, it was %s)", now.lease, before.lease))
	}
	for _, state := range now.states {
		if !slices.Contains(before.states, state) {
			left = append(left, "a runtime's folder "+state)
		}
	}
	if r.s.Objects == nil {
		return left, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	objects, err := r.s.Objects(ctx, id)
	if err != nil {
		return nil, err
	}
	left = append(left, objects...)
	for _, l := range now.links {
		if !slices.Contains(before.links, l) {
			left = append(left, "network link "+l)
		}
	}
	for _, n := range now.netns {
		if !slices.Contains(before.netns, n) {
			left = append(left, "namespace "+n)
		}
	}
	for _, c := range now.cgroups {
		if !slices.Contains(before.cgroups, c) {
			left = append(left, "cgroup "+c)
		}
	}
	return left, nil
}

// processes lists those other than this one that have id in their command line, cgroup or root.
func processes(id string) (found []string, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	self := fmt.Sprintf("/proc/%d", os.Getpid())
	for _, dir := range dirs {
		if dir == self {
			continue
		}
		// A process may end while we look: what cannot be read is then empty.
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		cgroup, _ := os.ReadFile(dir + "/cgroup")
		root, _ := os.Readlink(dir + "/root")
		status, _ := os.ReadFile(dir + "/status")
		if bytes.Contains(status, []byte("State:\tZ")) {
			continue // dead, waits for its parent
		}
		if strings.Contains(string(cmdline)+string(cgroup)+root, id) {
			found = append(found, fmt.Sprintf("process %s: %q root %s", filepath.Base(dir), cmdline, root))
		}
	}
	return found, nil
}
