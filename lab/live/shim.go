//go:build linux

package live

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/notebook"
)

// Annotations by which containerd's clients name a container in its OCI configuration.
const (
	criContainer = "io.kubernetes.cri.container-name"
	criPod       = "io.kubernetes.cri.sandbox-name"
	criNamespace = "io.kubernetes.cri.sandbox-namespace"
	nerdctlName  = "nerdctl/name"
)

// mostConfigured bounds a container's OCI configuration, in bytes.
const mostConfigured = 4 << 20

// shims lists the folders in which containerd keeps the configurations of containers that run, wherever it keeps its state: the working folders
// of the containers' shims are among their entries. A program in a container that calls itself a shim is none.
func shims(pids []int) (folders []string) {
	for _, pid := range pids {
		if !strings.HasPrefix(proc.Name(pid), "containerd-shim") {
			continue
		}
		paths, err := cgroup.Paths(pid)
		if err != nil || container(paths) != "" || !isRoots(pid) {
			continue
		}
		if bundle, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && !slices.Contains(folders, filepath.Dir(bundle)) {
			folders = append(folders, filepath.Dir(bundle))
		}
	}
	return folders
}

// isRoots reports whether a process runs as the host's root.
func isRoots(pid int) bool {
	of, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return false
	}
	st, is := of.Sys().(*syscall.Stat_t)
	return is && st.Uid == 0
}

// nameByShims names the containers of containerd that no engine has named, and says of which pods they are.
func nameByShims(containers map[string]*Guest, folders []string) {
	for _, folder := range folders {
		for id, g := range containers {
			if g.dir != "" {
				continue // it has a name of its own
			}
			text, err := readBounded(filepath.Join(folder, id, "config.json"), mostConfigured)
			if err != nil {
				continue
			}
			name, pod, namespace := annotated(text)
			if pod != "" {
				g.Pod, g.Namespace = pod, namespace
			}
			if unnamed := strings.HasPrefix(id, g.Name); unnamed && name != "" {
				g.Name = name
			}
		}
	}
}

// more finds containers that the names of their cgroups do not show: those of containerd with names of their own, by their shims, and those of
// LXC, by their monitors. known are those that were found.
func more(pids []int, folders []string, guests []Guest, known map[string]*Guest) (found []*Guest) {
	first := map[string]int{} // by id: the container's first process
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			text, err := readBounded(filepath.Join(folder, e.Name(), "init.pid"), 32)
			if pid, perr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && perr == nil {
				first[e.Name()] = pid
			}
		}
	}
	inits(pids, first)
	taken := map[int]bool{} // by another guest
	for _, g := range guests {
		for _, pid := range g.PIDs {
			taken[pid] = true
		}
	}
	for _, g := range known {
		for _, pid := range g.PIDs {
			taken[pid] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(first)) {
		pid := first[id]
		if known[id] != nil || taken[pid] || !slices.Contains(pids, pid) {
			continue
		}
		dir, err := cgroup.Of(pid, "cpu")
		if err != nil || dir == "" {
			continue
		}
		inside, err := cgroup.Procs(dir)
		if err != nil || !slices.Contains(inside, pid) || slices.Contains(inside, os.Getpid()) {
			continue // it has no cgroup of its own
		}
		inside = slices.DeleteFunc(inside, func(pid int) bool { return taken[pid] })
		for _, pid := range inside {
			taken[pid] = true
		}
		found = append(found, &Guest{Guest: memory.Guest{Name: id, Kind: notebook.MemoryContainer, PIDs: inside}, ID: id, dir: dir})
	}
	return found
}

// inits finds the first processes of LXC's containers, by their names: they are the children of monitors outside of containers.
func inits(pids []int, first map[string]int) {
	monitors := map[int]string{}
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		name := monitored(string(line))
		if err != nil || name == "" || !isRoots(pid) {
			continue
		}
		if paths, err := cgroup.Paths(pid); err == nil && container(paths) == "" {
			monitors[pid] = name
		}
	}
	if len(monitors) == 0 {
		return
	}
	for _, pid := range pids {
		if parent, err := proc.Parent(pid); err == nil && monitors[parent] != "" {
			first[monitors[parent]] = pid
		}
	}
}

// monitored is the name of the container that an LXC monitor with this command line keeps: "[lxc monitor] /var/lib/lxc NAME", or the arguments
// of lxc-start in the foreground.
func monitored(line string) string {
	line = strings.TrimRight(line, "\x00")
	if rest, ok := strings.CutPrefix(line, "[lxc monitor] "); ok {
		return rest[strings.LastIndexByte(rest, ' ')+1:]
	}
	args := strings.Split(line, "\x00")
	if filepath.Base(args[0]) != "lxc-start" {
		return ""
	}
	for i, a := range args[1:] {
		if name, ok := strings.CutPrefix(a, "--name="); ok {
			return name
		}
		if (a == "-n" || a == "--name") && i+2 < len(args) {
			return args[i+2]
		}
	}
	return ""
}

// annotated is what the annotations of a container's OCI configuration call it, and its pod. It ignores a text of another form.
func annotated(config []byte) (name, pod, namespace string) {
	var c struct{ Annotations map[string]string }
	if json.Unmarshal(config, &c) != nil {
		return "", "", ""
	}
	name = c.Annotations[criContainer]
	if name == "" {
		name = c.Annotations[nerdctlName]
	}
	return name, c.Annotations[criPod], c.Annotations[criNamespace]
}

// readBounded reads a regular file of at most that many bytes.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes (%v)", name, most, err)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
