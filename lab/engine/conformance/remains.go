//go:build linux

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// snapshot is what the suite saw on the host without a guest's name in it, by kind.
type snapshot map[string][]string

func (r *suite) snapshot(t *testing.T) snapshot {
	t.Helper()
	s, err := r.takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (r *suite) takeSnapshot() (snapshot, error) {
	s := snapshot{}
	see := func(what, pattern string) error {
		found, err := filepath.Glob(pattern)
		s[what] = append(s[what], found...)
		return err
	}
	// OCI runtimes keep these of their containers by default.
	err := errors.Join(see("a runtime's folder", "/run/runc/*"), see("a runtime's folder", "/run/crun/*"))
	if r.bridge != nil {
		lease, lerr := nextLease(r.bridge)
		s["a leased address, after which the next is"] = []string{lease}
		err = errors.Join(err, lerr, see("port of the bridge", "/sys/class/net/"+r.bridge.Name()+"/brif/*"))
	}
	if err != nil || !r.s.Unnamed {
		return s, err
	}
	// Links and namespaces with other names belong to other tests, which run at the same time.
	if err := errors.Join(see("network link", "/sys/class/net/veth*"), see("network link", "/sys/class/net/br-*")); err != nil {
		return s, err
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return s, err
	}
	mounts, err := mountsWith(" - nsfs ")
	for _, m := range mounts {
		// An engine may hold the host's own namespace, from the first guest on the host's network on.
		if !strings.Contains(m, " /run/netns/") && !strings.Contains(m, " "+own+" ") {
			s["namespace"] = append(s["namespace"], m)
		}
	}
	if err != nil {
		return s, err
	}
	s["cgroup"], err = cgroups("/docker/") // not the folder itself, which is the engine's
	return s, err
}

// mountsWith lists the mounts whose line in the kernel's list contains part.
func mountsWith(part string) (found []string, err error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(info)) {
		if strings.Contains(line, part) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, err
}

// cgroups lists the cgroups of all hierarchies whose path contains part. A part that ends in a slash means what is below such a
// folder.
func cgroups(part string) ([]string, error) {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) { // gone during the search
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

// nothingRemains fails the test if anything of the guests with id in their name is left: a process, cgroup, mount, file, engine
// object, port of the bridge, lease, and with an engine a new network link or namespace. Kernels and engines finish some of it in
// the background (a network link ends with its namespace), so nothingRemains looks repeatedly for a short while.
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
			t.Errorf("of guest %s this remains:\n%s", id, strings.Join(left, "\n"))
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *suite) remains(before snapshot, id string) (left []string, err error) {
	ps, err1 := processes(id)
	cs, err2 := cgroups(id)
	ms, err3 := mountsWith(id)
	now, err4 := r.takeSnapshot()
	var objects []string
	if r.s.Objects != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		objects, err = r.s.Objects(ctx, id)
	}
	if err := errors.Join(err, err1, err2, err3, err4); err != nil {
		return nil, err
	}
	now["process"], now["cgroup"], now["mount"], now["object"] = ps, append(now["cgroup"], cs...), ms, objects
	for _, what := range slices.Sorted(maps.Keys(now)) {
		for _, thing := range now[what] {
			if !slices.Contains(before[what], thing) {
				left = append(left, what+" "+thing)
			}
		}
	}
	err = filepath.WalkDir(r.env.State, func(path string, d fs.DirEntry, err error) error {
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
	return left, err
}

// processes lists those other than this one with id in their command line, cgroup, root or working folder.
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
		// A process may end during the search: what cannot be read is then empty.
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		cgroup, _ := os.ReadFile(dir + "/cgroup")
		root, _ := os.Readlink(dir + "/root")
		cwd, _ := os.Readlink(dir + "/cwd")
		status, _ := os.ReadFile(dir + "/status")
		if bytes.Contains(status, []byte("State:\tZ")) {
			continue // dead, waits for its parent
		}
		if strings.Contains(string(cmdline)+string(cgroup)+root+cwd, id) {
			found = append(found, fmt.Sprintf("%s: %q root %s", filepath.Base(dir), cmdline, root))
		}
	}
	return found, nil
}
