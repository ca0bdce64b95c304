//go:build linux

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

// Target is one thing that runs, as a person names it: its processes may come and go.
type Target struct {
	Name string
	Kind string // notebook.TargetContainer, …
	ID   string // of a container, as its engine gives it
	Dir  string // its cgroup, as a folder; empty: it is the process PID and its descendants
	PID  int    // a process of it when it was found

	start uint64 // of PID
	inode uint64 // of Dir
}

// unitEndings are the ends of the names of systemd's units that have processes.
var unitEndings = []string{".service", ".scope", ".slice"}

// Find finds what runs by a name: a container's name or the beginning of its id; a VM's name; a pid; a path of a cgroup; a Kubernetes pod's
// name, or NAMESPACE/NAME; a systemd unit. It fails if nothing or more than one thing has the name.
func Find(ctx context.Context, name string) (*Target, error) {
	if strings.HasPrefix(name, "/") {
		return findGroup(name)
	}
	guests, _, err := Now(ctx)
	if err != nil {
		return nil, err
	}
	found, exact, err := named(guests, name)
	if err != nil {
		return nil, err
	}
	if pid, err := strconv.Atoi(name); err == nil && pid > 0 && !exact && (len(found) == 0 || exists("/proc/"+name)) {
		return findProcess(pid)
	}
	pods, err := podGroups(guests, name)
	if err != nil {
		return nil, err
	}
	units, err := unitGroups(name)
	if err != nil {
		return nil, err
	}
	if found = append(append(found, pods...), units...); len(found) == 1 {
		return found[0].identified()
	}
	if len(found) > 1 {
		var all []string
		for _, t := range found {
			all = append(all, t.String())
		}
		return nil, fmt.Errorf("%q names %d targets: %s; name one by its whole ID, its cgroup or, a pod, by NAMESPACE/NAME", name, len(found), strings.Join(all, ", "))
	}
	return nil, fmt.Errorf("%q: no running container, pod, VM or systemd unit has this name; running containers and VMs: %s", name, list(guests))
}

// String says what the target is, for messages.
func (t *Target) String() string {
	where := t.Dir
	if t.ID != "" {
		where = t.ID
	} else if where == "" {
		where = fmt.Sprintf("process %d", t.PID)
	}
	return fmt.Sprintf("%s (%s, %s)", t.Name, t.Kind, where)
}

// named are the containers and VMs with exactly the name or, if there are none, containers whose id begins with it.
func named(guests []Guest, name string) (found []*Target, exact bool, err error) {
	var begins []*Target
	for _, g := range guests {
		same := g.Name == name || g.ID == name
		if !same && (len(name) < 3 || !strings.HasPrefix(g.ID, name)) {
			continue
		}
		t, err := targetOf(g)
		if err != nil {
			return nil, false, err
		}
		if same {
			found = append(found, t)
		} else {
			begins = append(begins, t)
		}
	}
	if found == nil {
		return begins, false, nil
	}
	return found, true, nil
}

// targetOf is a container by its cgroup, or a VM by its process.
func targetOf(g Guest) (*Target, error) {
	t := &Target{Name: g.Name, Kind: notebook.TargetVM, ID: g.ID, PID: g.PIDs[0]}
	if g.Kind == notebook.MemoryVM {
		return t, nil
	}
	t.Kind = notebook.TargetContainer
	if t.Dir = g.dir; t.Dir != "" {
		return t, nil
	}
	var err error
	t.Dir, err = groupOf(t.PID, g.ID)
	return t, err
}

// groupOf is the folder of the cgroup that belongs to a container, by one of its processes, which may be in a cgroup below.
func groupOf(pid int, id string) (string, error) {
	for _, controller := range []string{"cpu", "memory", "pids", "freezer", "name=systemd"} {
		dir, err := cgroup.Of(pid, controller)
		if err != nil {
			return "", err
		}
		for ; len(dir) > 1; dir = path.Dir(dir) {
			if container([]string{"/" + path.Base(dir)}) == id || strings.HasSuffix(dir, "/lxc/"+id) {
				return dir, nil
			}
		}
	}
	return "", fmt.Errorf("container %.12s: process %d is in no cgroup of its own; observe it by its PID", id, pid)
}

// findProcess is a process and its descendants. A VM's is the VM.
func findProcess(pid int) (*Target, error) {
	t := &Target{Kind: notebook.TargetProcess, PID: pid}
	name := proc.Name(pid)
	if name == "" {
		return nil, fmt.Errorf("process %d does not exist; name a running one", pid)
	}
	if status, err := proc.Host.Read(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
		if of := proc.Field(status, "Tgid"); of != strconv.Itoa(pid) {
			return nil, fmt.Errorf("%d is a thread of process %s; name that", pid, of)
		}
	}
	if over, err := proc.Zombie(pid); err == nil && over {
		return nil, fmt.Errorf("process %d has ended, and its parent has not waited for it yet", pid)
	}
	t.Name = fmt.Sprintf("%s %d", name, pid)
	if guest, is := vm(pid); is {
		t.Name, t.Kind = guest, notebook.TargetVM
	}
	if pid == os.Getpid() {
		return nil, fmt.Errorf("process %d is tare itself; name another one", pid)
	}
	return t.identified()
}

// findGroup is a cgroup by its folder, or by its path below the root of the hierarchy, as /proc/PID/cgroup has it.
func findGroup(name string) (*Target, error) {
	name = path.Clean(name)
	hierarchies, err := cgroup.Mounted()
	if err != nil {
		return nil, err
	}
	tried := false
	for _, h := range hierarchies {
		below := name
		if rest, ok := strings.CutPrefix(name, h.At); ok && (rest == "" || rest[0] == '/') {
			below = path.Clean("/" + rest)
		}
		dir := path.Join(h.At, below)
		if below == "/" {
			continue // the whole host is not a target
		}
		if !exists(path.Join(dir, "cgroup.procs")) {
			tried = true
			continue
		}
		return (&Target{Name: below, Kind: notebook.TargetGroup, Dir: scheduled(hierarchies, below, dir)}).identified()
	}
	if !tried {
		return nil, fmt.Errorf("cgroup %s is the whole host; name one below it", name)
	}
	return nil, fmt.Errorf("cgroup %s does not exist; /proc/PID/cgroup says in which one a process is", name)
}

// scheduled is the folder of a group in version 1's hierarchy of the CPU controller or, if it has none there, dir.
func scheduled(hierarchies cgroup.Hierarchies, below, dir string) string {
	if cpu := hierarchies.V1("cpu"); cpu != nil && exists(path.Join(cpu.At, below)) {
		return path.Join(cpu.At, below)
	}
	return dir
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// unitGroups are the cgroups of systemd's units of that name; without an ending, of the service.
func unitGroups(name string) (found []*Target, err error) {
	if !slices.Contains(unitEndings, path.Ext(name)) {
		name += ".service"
	}
	hierarchies, err := cgroup.Mounted()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, h := range hierarchies {
		if err := filepath.WalkDir(h.At, func(dir string, d fs.DirEntry, err error) error {
			switch below := strings.TrimPrefix(dir, h.At); {
			case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV):
				return nil
			case err != nil:
				return err
			case d.IsDir() && container([]string{below}) != "":
				return fs.SkipDir // its units are not the host's
			case !d.IsDir() || d.Name() != name || seen[below]:
				return nil
			default:
				seen[below] = true
				found = append(found, &Target{Name: name, Kind: notebook.TargetUnit, Dir: scheduled(hierarchies, below, dir)})
				return fs.SkipDir
			}
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// podGroups are the cgroups of pods of that name: by the kubelet's folders of logs, whose names hold the pods' identities, or by what
// containerd wrote down of their containers.
func podGroups(guests []Guest, name string) (found []*Target, err error) {
	namespace, pod, both := strings.Cut(name, "/")
	if !both {
		namespace, pod = "", name
	}
	dirs := map[string]string{} // the pod's namespace and name by its cgroup
	logs, _ := filepath.Glob("/var/log/pods/*_*_*")
	for _, l := range logs {
		f := strings.Split(path.Base(l), "_")
		if len(f) != 3 || f[1] != pod || both && f[0] != namespace {
			continue
		}
		for _, dir := range podFolders(f[2]) {
			dirs[dir] = f[0] + "/" + f[1]
		}
	}
	for _, g := range guests {
		if g.Pod != pod || pod == "" || both && g.Namespace != namespace {
			continue
		}
		dir, err := groupOf(g.PIDs[0], g.ID)
		if err != nil {
			return nil, err
		}
		if above := path.Dir(dir); exists(path.Join(path.Dir(above), "cgroup.procs")) && onlyOf(guests, above, g) {
			dirs[above] = g.Namespace + "/" + g.Pod
		} else {
			dirs[dir] = g.Namespace + "/" + g.Pod
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		found = append(found, &Target{Name: dirs[dir], Kind: notebook.TargetPod, Dir: dir})
	}
	return found, nil
}

// onlyOf reports whether all processes in a cgroup are of the pod of one guest.
func onlyOf(guests []Guest, above string, of Guest) bool {
	var ofPod []int
	for _, g := range guests {
		if g.Pod == of.Pod && g.Namespace == of.Namespace {
			ofPod = append(ofPod, g.PIDs...)
		}
	}
	pids, err := cgroup.Procs(above)
	return err == nil && !slices.ContainsFunc(pids, func(pid int) bool { return !slices.Contains(ofPod, pid) })
}

// podFolders are the folders of a pod's cgroup, by its UID, in the hierarchy by which the kernel schedules. The kubelet names them in one of
// two ways.
func podFolders(uid string) (dirs []string) {
	hierarchy, err := cgroup.Scheduled()
	if err != nil {
		return nil
	}
	systemd := "pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	for _, pattern := range []string{"kubepods*/pod" + uid, "kubepods*/*/pod" + uid, "kubepods*/*-" + systemd, "kubepods*/*/*-" + systemd} {
		found, err := filepath.Glob(path.Join(hierarchy.At, pattern))
		if err == nil { // a UID that is a pattern finds nothing
			dirs = append(dirs, found...)
		}
	}
	return dirs
}

// identified completes a target that was just found with what tells it from another that takes its name or number later.
func (t *Target) identified() (*Target, error) {
	if t.Dir != "" {
		var st unix.Stat_t
		if err := unix.Stat(t.Dir, &st); err != nil {
			return nil, fmt.Errorf("%s has just ended: %w", t.Name, err)
		}
		t.inode = st.Ino
		pids, err := t.Processes()
		if err != nil {
			return nil, err
		}
		if len(pids) == 0 {
			return nil, fmt.Errorf("%s (%s) has no running process", t.Name, t.Kind)
		}
		t.PID = pids[0]
		return t, nil
	}
	var err error
	if t.start, err = proc.StartTime(t.PID); err != nil {
		return nil, fmt.Errorf("%s has just ended: %w", t.Name, err)
	}
	return t, nil
}

// Processes are the target's processes now, without this one and those that have ended; none if all have, even if others took its name or
// number.
func (t *Target) Processes() ([]int, error) {
	all, err := t.listed()
	if err != nil {
		return nil, err
	}
	var alive []int
	for _, pid := range all {
		if pid == os.Getpid() || pid == 0 { // 0: in another PID namespace
			continue
		}
		over, err := proc.Zombie(pid)
		if err != nil {
			return nil, err
		}
		if !over {
			alive = append(alive, pid)
		}
	}
	return alive, nil
}

// listed are the processes that the kernel lists.
func (t *Target) listed() ([]int, error) {
	if t.Dir == "" {
		if start, err := proc.StartTime(t.PID); proc.Ended(err) || err == nil && start != t.start {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return proc.Descendants(t.PID)
	}
	var st unix.Stat_t
	if err := unix.Stat(t.Dir, &st); err != nil || st.Ino != t.inode {
		return nil, nil
	}
	return cgroup.Procs(t.Dir)
}

// Describe names what a cgroup belongs to: a container's name, the name of a pod, a unit, or the cgroup's path.
func Describe(guests []Guest, below string) string {
	if id := container([]string{below}); id != "" {
		for _, g := range guests {
			if g.ID == id {
				return g.Name
			}
		}
		return short(id)
	}
	return cmp.Or(below, "/")
}
