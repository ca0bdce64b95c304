//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
	"tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// standing is what exists on the host, by kind and name, and how many of each.
type standing map[string]map[string]int

// stand looks at the host itself. It omits kernel threads, which come and go.
func stand(t *testing.T) standing {
	t.Helper()
	s := standing{"process": {}, "mount": {}, "cgroup": {}, "link": {}, "runtime's folder": {}}
	see := func(what, pattern string, name func(path string) string) {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if n := name(path); n != "" {
				s[what][n]++
			}
		}
	}
	itself := func(path string) string { return path }
	see("process", "/proc/[0-9]*", func(dir string) string { // by name and cgroup; a process that ends during the search does not count
		line, err1 := os.ReadFile(dir + "/cmdline")
		name, err2 := os.ReadFile(dir + "/comm")
		group, err3 := os.ReadFile(dir + "/cgroup")
		if err1 != nil || err2 != nil || err3 != nil || len(line) == 0 {
			return ""
		}
		return strings.TrimSpace(string(name)) + " in " + strings.Join(strings.Fields(string(group)), " ")
	})
	see("link", "/sys/class/net/*", itself)
	see("runtime's folder", "/run/crun/*", itself)
	mounts, err := proc.Host.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		s["mount"][m.Mountpoint]++
	}
	if err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err == nil && d.IsDir() {
			s["cgroup"][path]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// ofGuests is in the name of everything that belongs to a guest, or that this test makes to be found. Nothing else on the host has
// it.
var ofGuests = regexp.MustCompile(`tare|crun|ruler|launcher|holder|left-by-a-test`)

// left lists what guests have more of than before.
func (s standing) left(before standing) (all []string) {
	for what, now := range s {
		for name, n := range now {
			if n > before[what][name] && ofGuests.MatchString(name) {
				all = append(all, fmt.Sprintf("%d more of %s %s", n-before[what][name], what, name))
			}
		}
	}
	slices.Sort(all)
	return all
}

// kept is the host's memory that belongs to no process and is not easily reclaimable like files' pages: the kernel's memory, and
// files that are only in memory. Others on the host change it little. What removed groups were charged with is returned only when
// caches are dropped.
func kept(t *testing.T) (bytes int64) {
	t.Helper()
	unix.Sync()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		t.Fatal(err)
	}
	for field, sign := range map[string]int64{"MemTotal": 1, "MemFree": -1, "AnonPages": -1, "Cached": -1, "Buffers": -1, "Shmem": 1} {
		n, err := proc.Host.Memory(field)
		if err != nil {
			t.Fatal(err)
		}
		bytes += sign * n
	}
	return bytes
}

// Many simultaneous guests leave the host as it was: its processes, mounts, cgroups, links and memory. `tare clean` then finds
// nothing to do.
func TestAloneManyGuestsLeaveTheHostAsItWas(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	h.holder()
	const (
		guests    = 24
		each      = 32 << 20          // least bytes that each holds
		tolerance = guests * each / 4 // what the kernel and others on the host may change at the same time
	)
	study := func(name string, guests int) {
		h.write(name+".yaml", fmt.Sprintf(`name: %s
workloads: [{name: ./holder, params: {own: 32, alike: 0}}]
platforms: [{platform: cn, engines: [crun], provisioning: [vanilla]}]
instances: [1/96MB]
memory: {guests: [%d]}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`, name, guests))
		h.must("run", "./"+name+".yaml", "--out", name)
	}
	study("few", 2) // makes images, and other things that are made once and kept
	h.must("clean")
	before, had := stand(t), kept(t)

	study("many", guests)
	trials := h.trials("many")
	if len(trials) != 1 || trials[0].Failure != nil || len(notebooktest.Seen[memory.Seen](&trials[0]).Weights) != 1 || notebooktest.Seen[memory.Seen](&trials[0]).Weights[0].Guests != guests || trials[0].Value*(1<<20) < each {
		t.Fatalf("%d guests with %d MiB each were to be weighed: %+v", guests, each>>20, trials)
	}
	if said := h.must("clean"); said != "Nothing to do.\n" {
		t.Errorf("tare clean: %s", said)
	}
	differ := func() (all []string) { // the kernel ends processes in its own time, without notice
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if all = stand(t).left(before); len(all) == 0 || time.Now().After(end) {
				return all
			}
		}
	}
	for _, d := range differ() {
		t.Error(d)
	}
	lost := kept(t) - had
	for end := time.Now().Add(time.Minute); lost > tolerance && time.Now().Before(end); lost = kept(t) - had { // a kernel that reports free pages to a hypervisor gets them back later
		time.Sleep(100 * time.Millisecond)
	}
	if lost > tolerance {
		t.Errorf("%d MiB of memory did not come back; guests held %d", lost>>20, guests*each>>20)
	} else {
		t.Logf("%d MiB more are kept than before; guests held %d", lost>>20, guests*each>>20)
	}

	// The test detects what would be left.
	dir := filepath.Join(h.dir, "left-by-a-test")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "held"), make([]byte, guests*each), 0o600); err != nil {
		t.Fatal(err)
	}
	group := "/sys/fs/cgroup/memory/left-by-a-test"
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(group)
	idle := exec.Command("sleep", "60")
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	defer idle.Wait()
	defer idle.Process.Kill()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(idle.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(stand(t).left(before), "\n")
	for _, want := range []string{"1 more of process sleep in ", "1 more of mount " + dir, "1 more of cgroup " + group} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not seen: %s", want, said)
		}
	}
	if lost := kept(t) - had; lost <= tolerance {
		t.Errorf("%d MiB in a tmpfs are not seen: %d MiB more than before", guests*each>>20, lost>>20)
	}
}
