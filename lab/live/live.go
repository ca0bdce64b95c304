//go:build linux

// Package live finds the containers and VMs that run on the host now, whoever started them: containers by the cgroups of their
// processes, VMs by QEMU's command line.
package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/lab/cgroup"
	"tare/lab/dockerapi"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/notebook"
)

// Guest is a running container, a VM, or a process that is neither. Its name is the name that its engine uses, or else its short
// id. For a process it is the program's name and the pid.
type Guest struct {
	memory.Guest
	ID             string // of a container, as its engine gives it
	Pod, Namespace string // of a container of Kubernetes

	dir string // its cgroup, if that does not show in the cgroup's name
}

// Now lists the running containers and VMs, and all of the host's processes except this one.
func Now(ctx context.Context) (guests []Guest, pids []int, err error) {
	if pids, err = proc.All(); err != nil {
		return nil, nil, err
	}
	containers := map[string]*Guest{}
	for _, pid := range pids {
		if name, is := vm(pid); is {
			guests = append(guests, Guest{Guest: memory.Guest{Name: name, Kind: notebook.MemoryVM, PIDs: []int{pid}}})
			continue
		}
		paths, err := cgroup.Paths(pid)
		if proc.Ended(err) {
			continue // it ended
		}
		if err != nil {
			return nil, nil, err
		}
		id := container(paths)
		if id == "" {
			continue
		}
		if containers[id] == nil {
			containers[id] = &Guest{Guest: memory.Guest{Name: short(id), Kind: notebook.MemoryContainer}, ID: id}
			if len(id) < 64 { // LXC's containers have only names
				containers[id].Name = id
			}
		}
		containers[id].PIDs = append(containers[id].PIDs, pid)
	}
	folders := shims(pids)
	for _, g := range more(pids, folders, guests, containers) {
		containers[g.ID] = g
	}
	if len(containers) > 0 {
		for id, name := range names(ctx) {
			if g := containers[id]; g != nil {
				g.Name = name
			}
		}
		nameByShims(containers, folders)
	}
	for _, g := range containers {
		guests = append(guests, *g)
	}
	slices.SortFunc(guests, func(a, b Guest) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.PIDs[0], b.PIDs[0]))
	})
	return guests, pids, nil
}

// short is an id as engines print it.
func short(id string) string { return id[:min(len(id), 12)] }

// inContainer matches the cgroups of containers. Those of OCI engines contain the container's id, those of LXC its name.
var inContainer = regexp.MustCompile(`(?:^|/)(?:(?:docker-|libpod-|crio-|cri-containerd-|nerdctl-)?([0-9a-f]{64})(?:\.scope)?|lxc\.payload\.([^/]+)|lxc/([^/]+))(?:/|$)`)

// container is the id of the innermost container of a process with these cgroups, or "".
func container(paths []string) string {
	for _, p := range paths {
		if all := inContainer.FindAllStringSubmatch(p, -1); all != nil {
			last := all[len(all)-1]
			return cmp.Or(last[1], last[2], last[3])
		}
	}
	return ""
}

// vm reports whether a process is QEMU with a machine, and the name of its guest; without a name it is "qemu-" and the pid.
func vm(pid int) (name string, is bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", false
	}
	return guestName(strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), fmt.Sprint("qemu-", pid))
}

func guestName(args []string, unnamed string) (name string, is bool) {
	program := filepath.Base(args[0])
	if !strings.HasPrefix(program, "qemu-system-") && program != "qemu-kvm" {
		return "", false
	}
	i := slices.IndexFunc(args, func(a string) bool { return a == "-name" || a == "--name" })
	if i < 0 || i+1 >= len(args) {
		return unnamed, true
	}
	const comma = "\x00" // QEMU doubles a comma that is part of the name
	for _, option := range strings.Split(strings.ReplaceAll(args[i+1], ",,", comma), ",") {
		key, value, keyed := strings.Cut(option, "=")
		switch {
		case keyed && key == "guest":
			name = value
		case !keyed && name == "":
			name = option
		}
	}
	return cmp.Or(strings.ReplaceAll(name, comma, ","), unnamed), true
}

// askTime bounds the wait for Docker Engine's answer.
const askTime = 5 * time.Second

// names are the names of containers by their ids, as far as their engines give them: Docker in its answer, Podman and CRI-O in
// their files. Containers of an engine that is missing or does not answer keep their ids.
func names(ctx context.Context) map[string]string {
	all := map[string]string{}
	files, _ := filepath.Glob("/var/lib/containers/storage/*-containers/containers.json")
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		if b, err := io.ReadAll(io.LimitReader(f, mostListed+1)); err == nil {
			maps.Copy(all, listed(b))
		}
		f.Close() // only read: an error of Close loses nothing
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if b, err := askDocker(ctx); err == nil {
		maps.Copy(all, listed(b))
	}
	return all
}

// mostListed bounds an engine's list of containers, in bytes.
const mostListed = 16 << 20

// listed are the names in an engine's list of containers, by id. It ignores a list of another form.
func listed(list []byte) map[string]string {
	var containers []struct {
		ID    string
		Names []string
	}
	if len(list) > mostListed || json.Unmarshal(list, &containers) != nil {
		return nil
	}
	all := map[string]string{}
	for _, c := range containers {
		if len(c.Names) > 0 {
			if name := strings.TrimPrefix(c.Names[0], "/"); name != "" {
				all[c.ID] = name
			}
		}
	}
	return all
}

// askDocker asks Docker Engine for its containers.
func askDocker(ctx context.Context) ([]byte, error) {
	_, socket, err := dockerapi.Host("")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/containers/json", nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Transport: dockerapi.Transport(socket)}).Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(io.LimitReader(answer.Body, mostListed+1))
}

// Choose selects guests by args: a pid, a container's name or the beginning of its id, or a VM's name; all guests if args is empty.
// others are the guests that are not chosen, without processes that are.
func Choose(guests []Guest, pids []int, args []string) (chosen, others []memory.Guest, err error) {
	in := map[int]string{}
	for _, arg := range args {
		g, err := choose(guests, pids, arg)
		if err != nil {
			return nil, nil, err
		}
		for _, pid := range g.PIDs {
			if in[pid] != "" {
				return nil, nil, fmt.Errorf("process %d is named twice: in %s and in %s", pid, in[pid], g.Name)
			}
			in[pid] = g.Name
		}
		chosen = append(chosen, g.Guest)
	}
	for _, g := range guests {
		if len(args) == 0 {
			chosen = append(chosen, g.Guest)
			continue
		}
		g.PIDs = slices.DeleteFunc(slices.Clone(g.PIDs), func(pid int) bool { return in[pid] != "" })
		if len(g.PIDs) > 0 {
			others = append(others, g.Guest)
		}
	}
	return chosen, others, nil
}

func choose(guests []Guest, pids []int, arg string) (Guest, error) {
	var exact, begins []Guest
	for _, g := range guests {
		switch {
		case g.Name == arg || g.ID == arg && arg != "":
			exact = append(exact, g)
		case len(arg) >= 3 && strings.HasPrefix(g.ID, arg):
			begins = append(begins, g)
		}
	}
	pid, err := strconv.Atoi(arg)
	switch {
	case err == nil && slices.Contains(pids, pid):
		for _, g := range guests {
			if g.Kind == notebook.MemoryVM && slices.Contains(g.PIDs, pid) {
				return g, nil
			}
		}
		return Guest{Guest: memory.Guest{Name: fmt.Sprintf("%s %d", cmp.Or(proc.Name(pid), "process"), pid), Kind: notebook.MemoryProcesses, PIDs: []int{pid}}}, nil
	case len(exact) == 1:
		return exact[0], nil
	case len(exact) == 0 && len(begins) == 1:
		return begins[0], nil
	case len(exact)+len(begins) > 1:
		return Guest{}, fmt.Errorf("%q is ambiguous: %s; write the pid or the whole id of one", arg, list(append(exact, begins...)))
	case err == nil:
		return Guest{}, fmt.Errorf("%d is neither a process nor the name of a container or VM; running containers and VMs: %s", pid, list(guests))
	}
	return Guest{}, fmt.Errorf("no container or VM %q is running; running containers and VMs: %s", arg, list(guests))
}

func list(guests []Guest) string {
	var all []string
	for _, g := range guests {
		all = append(all, fmt.Sprintf("%s (%s, process %d)", g.Name, g.Kind, g.PIDs[0]))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}
