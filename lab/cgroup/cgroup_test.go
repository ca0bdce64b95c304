//go:build linux

package cgroup

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/proc"
	"tare/lab/proc/proctest"
	"tare/notebook"
)

// Mounts as real systems have them.
const (
	mountsV2     = `30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot`
	mountsHybrid = `31 23 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:5 - tmpfs tmpfs ro,mode=755
32 31 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
33 31 0:29 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd
34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 master:3 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`
	// In a container without a cgroup namespace only the container's own part is mounted.
	mountsInDocker = `735 734 0:31 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:10 - cgroup cgroup rw,cpu,cpuacct
736 734 0:32 /docker/abc /sys/fs/cgroup/cpuset ro master:11 - cgroup cgroup rw,cpuset
737 734 0:33 /docker/abc /sys/fs/cgroup/memory ro master:12 - cgroup cgroup rw,memory`
	cgroupV1 = "12:cpuset:%[1]s\n5:cpu,cpuacct:%[1]s\n4:memory:%[1]s\n1:name=systemd:%[1]s\n0::/user.slice"
)

// machine is a made one.
type machine struct{ proctest.Tree }

// of is a machine whose mounts are read each time.
func of(t proc.Tree) system { return system{t, t.Mounts} }

func (m machine) find(pid, controller string) (Group, error) {
	return of(m.Tree.Tree).find(pid, controller)
}
func (m machine) limitsOf(pid string) (notebook.Limits, error) {
	return of(m.Tree.Tree).limitsOf(pid)
}

// process gives a machine of 16 CPUs a process 7.
func process(mounts, cgroup, allowed string) machine {
	s := machine{proctest.New()}
	s.Put("/sys/devices/system/cpu/online", "0-15")
	s.Put("/proc/self/mountinfo", mounts)
	s.Put("/proc/7/cgroup", cgroup)
	s.Put("/proc/7/status", "Name:\ta\nCpus_allowed:\tffff\nCpus_allowed_list:\t"+allowed+"\nMems_allowed_list:\t0")
	return s
}

func wantLimits(t *testing.T, what string, s machine, want notebook.Limits) {
	t.Helper()
	got, err := s.limitsOf("7")
	if err != nil || got != want {
		t.Errorf("%s: %+v, %v, want %+v", what, got, err, want)
	}
}

func TestLimitsV2(t *testing.T) {
	s := process(mountsV2, "0::/a/b/c", "0-15")
	wantLimits(t, "none", s, notebook.Limits{CPUs: "0-15", Source: "affinity"})

	s = process(mountsV2, "0::/a/b/c", "0-31") // CPUs that the machine could have and has not
	const top = "/sys/fs/cgroup"
	s.Put(top+"/cpuset.cpus.effective", "0-15")
	s.Put(top+"/a/b/cpuset.cpus.effective", "0-7")
	s.Put(top+"/a/cpu.max", "150000 100000")
	s.Put(top+"/a/b/cpu.max", "max 100000")
	s.Put(top+"/a/b/c/cpu.max", "200000 100000")
	s.Put(top+"/a/memory.max", "max")
	s.Put(top+"/a/b/memory.max", "1073741824")
	s.Put(top+"/a/b/c/memory.max", "2147483648")
	wantLimits(t, "from above", s, notebook.Limits{CPUs: "0-7", Quota: 1.5, Memory: 1 << 30, Source: "cgroup v2"})

	s.Put(top+"/a/b/c/cpu.max", "50000 100000")
	s.Put(top+"/a/b/c/memory.max", "536870912")
	wantLimits(t, "its own", s, notebook.Limits{CPUs: "0-7", Quota: 0.5, Memory: 512 << 20, Source: "cgroup v2"})
	s.Put(top+"/a/b/c/cpu.max", "max 100000")
	s.Put(top+"/a/b/c/memory.max", "max")

	s.Put("/proc/7/status", "Cpus_allowed_list:\t6-9")
	wantLimits(t, "and an affinity", s, notebook.Limits{CPUs: "6-7", Quota: 1.5, Memory: 1 << 30, Source: "cgroup v2"})
}

func TestLimitsV1(t *testing.T) {
	for _, mounts := range []string{mountsHybrid, mountsInDocker} {
		s := process(mounts, fmt.Sprintf(cgroupV1, "/docker/abc/x"), "4-15")
		base := "/sys/fs/cgroup/%s"
		if mounts == mountsHybrid {
			base += "/docker/abc"
		}
		put := func(controller, file, text string) { s.Put(fmt.Sprintf(base, controller)+file, text) }
		const unlimited = "9223372036854771712"
		put("cpu,cpuacct", "/cpu.cfs_quota_us", "-1")
		put("cpu,cpuacct", "/cpu.cfs_period_us", "100000")
		put("cpu,cpuacct", "/x/cpu.cfs_quota_us", "-1")
		put("cpu,cpuacct", "/x/cpu.cfs_period_us", "100000")
		put("memory", "/memory.limit_in_bytes", unlimited)
		put("memory", "/x/memory.limit_in_bytes", unlimited)
		put("cpuset", "/x/cpuset.effective_cpus", "0-15")
		wantLimits(t, "none", s, notebook.Limits{CPUs: "4-15", Source: "affinity"})

		put("cpu,cpuacct", "/cpu.cfs_quota_us", "25000")
		put("cpu,cpuacct", "/cpu.cfs_period_us", "50000")
		put("cpu,cpuacct", "/x/cpu.cfs_quota_us", "400000")
		put("memory", "/memory.limit_in_bytes", "536870912")
		put("cpuset", "/x/cpuset.effective_cpus", "")
		put("cpuset", "/x/cpuset.cpus", "0-5")
		wantLimits(t, "from above", s, notebook.Limits{CPUs: "4-5", Quota: 0.5, Memory: 512 << 20, Source: "cgroup v1"})
	}
}

// Of a hierarchy that is mounted twice the mount counts that shows what lies above, wherever it is in the list.
func TestLimitsOfAHierarchyMountedTwice(t *testing.T) {
	const part = "90 23 0:26 /a /mnt/part rw - cgroup2 cgroup2 rw"
	for _, mounts := range []string{mountsV2 + "\n" + part, part + "\n" + mountsV2} {
		s := process(mounts, "0::/a/b", "0-15")
		s.Put("/sys/fs/cgroup/a/memory.max", "1048576")
		g, err := s.find("7", "memory")
		if err != nil || g.Dir != "/sys/fs/cgroup/a/b" || g.Top != "/sys/fs/cgroup" {
			t.Errorf("group %+v, %v", g, err)
		}
		wantLimits(t, mounts, s, notebook.Limits{CPUs: "0-15", Memory: 1 << 20, Source: "cgroup v2"})
	}
}

func TestLimitsThatCanNotBeSeen(t *testing.T) {
	// Another container's process, where only this container's part of the hierarchy is mounted.
	s := process(mountsInDocker, fmt.Sprintf(cgroupV1, "/docker/abcd"), "0-15")
	if l, err := s.limitsOf("7"); err == nil || !strings.Contains(err.Error(), "/docker/abcd") {
		t.Errorf("limits %+v, %v", l, err)
	}
	// A process outside of the reader's cgroup namespace.
	s = process(mountsV2, "0::/../other", "0-15")
	if l, err := s.limitsOf("7"); err == nil {
		t.Errorf("limits %+v", l)
	}
	// No hierarchy mounted, and none in use.
	s = process("1 1 0:1 / / rw - ext4 /dev/vda rw", fmt.Sprintf(cgroupV1, "/"), "0-15")
	s.Put("/proc/7/cgroup", fmt.Sprintf(strings.ReplaceAll(cgroupV1, "/user.slice", "/"), "/"))
	wantLimits(t, "no hierarchy", s, notebook.Limits{CPUs: "0-15", Source: "affinity"})
	// A process that is gone.
	if l, err := LimitsOf(math.MaxInt32); err == nil {
		t.Errorf("limits %+v of no process", l)
	}
}

func TestLimitsFromBadFiles(t *testing.T) {
	for file, text := range map[string]string{
		"/proc/7/status":                         "Cpus_allowed_list:\tall",
		"/proc/7/cgroup":                         "rubbish",
		"/proc/self/mountinfo":                   "rubbish",
		"/sys/fs/cgroup/a/cpu.max":               "-5 100",
		"/sys/fs/cgroup/a/memory.max":            "lots",
		"/sys/fs/cgroup/a/cpuset.cpus.effective": "5-1",
	} {
		s := process(mountsV2, "0::/a", "0-15")
		s.Put(file, text)
		if l, err := s.limitsOf("7"); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s holds %q: limits %+v, and the error %v does not name it", file, text, l, err)
		}
	}
}

func TestRecordedLimits(t *testing.T) {
	s := of(proctest.Recorded(t, "../host/testdata/debian12-vm.txt").Tree)
	g, err := s.find("self", "memory")
	if err != nil || g.Dir != "/sys/fs/cgroup/memory/group/one" || g.Top != "/sys/fs/cgroup/memory" || g.Version != 1 {
		t.Errorf("group %+v, %v", g, err)
	}
	g, err = s.find("self", "hugetlb")
	if err != nil || g.Dir != "/sys/fs/cgroup/unified" || g.Version != 2 {
		t.Errorf("group %+v, %v", g, err)
	}
	l, err := s.limitsOf("self")
	if want := (notebook.Limits{CPUs: "0-1", Source: "affinity"}); err != nil || l != want {
		t.Errorf("limits %+v, %v, want %+v", l, err, want)
	}
}

// What the kernel is told is what it is found to enforce.
func TestLimitsInForce(t *testing.T) {
	require.Root(t)
	limits := make(map[string]Group)
	for _, controller := range []string{"cpu", "cpuset", "memory"} {
		g, err := host.find("self", controller)
		if err != nil {
			t.Fatal(err)
		}
		require.That(t, g.Version == 1, "the "+controller+" controller in cgroup v1")
		limits[controller] = g
	}
	cmd := proctest.Start(t, "sleep", "60")
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	last := strconv.Itoa(online[len(online)-1])
	set := func(dir, file, value string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	in := make(map[string]string)
	// In the one below, so that the limits of the one above must be seen. Controllers may share a hierarchy.
	for controller, g := range limits {
		above := filepath.Join(g.Top, fmt.Sprintf("tare-test-%d-limits", os.Getpid()))
		if !exists(above) {
			above = makeGroup(t, g.Top, "limits")
		}
		in[controller] = mkdir(t, above, "below")
	}
	for _, dir := range []string{filepath.Dir(in["cpuset"]), in["cpuset"]} {
		set(dir, "cpuset.mems", "0")
		set(dir, "cpuset.cpus", last)
	}
	set(filepath.Dir(in["cpu"]), "cpu.cfs_period_us", "20000")
	set(filepath.Dir(in["cpu"]), "cpu.cfs_quota_us", "15000")
	set(filepath.Dir(in["memory"]), "memory.limit_in_bytes", strconv.Itoa(96<<20))
	for _, dir := range in {
		enter(t, dir, cmd.Process.Pid)
	}
	l, err := LimitsOf(cmd.Process.Pid)
	if want := (notebook.Limits{CPUs: last, Quota: 0.75, Memory: 96 << 20, Source: "cgroup v1"}); err != nil || l != want {
		t.Errorf("limits %+v, %v, want %+v", l, err, want)
	}
	dir, err := Of(cmd.Process.Pid, "memory")
	if err != nil || dir != in["memory"] {
		t.Errorf("Of = %s, %v, want %s", dir, err, in["memory"])
	}
	pids, err := Procs(filepath.Dir(dir))
	if err != nil || len(pids) != 1 || pids[0] != cmd.Process.Pid {
		t.Errorf("Procs = %v, %v, want %d", pids, err, cmd.Process.Pid)
	}
}

func TestLimitsByAffinity(t *testing.T) {
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	require.That(t, len(online) > 1, "two CPUs")
	cmd := proctest.Start(t, "sleep", "60")
	var mask unix.CPUSet
	mask.Set(online[1])
	if err := unix.SchedSetaffinity(cmd.Process.Pid, &mask); err != nil {
		t.Fatal(err)
	}
	l, err := LimitsOf(cmd.Process.Pid)
	if err != nil || l.CPUs != strconv.Itoa(online[1]) {
		t.Errorf("limits %+v, %v, want CPU %d", l, err, online[1])
	}
}

func FuzzParseMemberships(f *testing.F) {
	f.Add(fmt.Sprintf(cgroupV1, "/a:b"))
	f.Add("0::/x (deleted)\n")
	f.Add("0::\n::/\n:")
	f.Fuzz(func(t *testing.T, s string) {
		ms, err := parseMemberships(s)
		if err != nil {
			return
		}
		for _, m := range ms {
			for _, root := range []string{"/", m.path, "/docker"} {
				if rel, ok := within(m.path, root); ok && (strings.HasPrefix(rel, "../") || rel == "..") {
					t.Errorf("%q within %q is %q", m.path, root, rel)
				}
			}
		}
	})
}

func FuzzParseCPUMax(f *testing.F) {
	for _, s := range []string{"max 100000", "50000 100000", "-1 100000", "0 0", "1 9223372036854775807", "x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := parseCPUMax(s)
		if err == nil && (q < 0 || math.IsNaN(q) || math.IsInf(q, 0) || q == 0 && !strings.Contains(s, "max")) {
			t.Errorf("parseCPUMax(%q) = %v", s, q)
		}
	})
}

func FuzzParseMemoryLimit(f *testing.F) {
	for _, s := range []string{"max", "9223372036854771712", "18446744073709551615", "0", "-1", "1048576"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseMemoryLimit(s); err == nil && n < 0 {
			t.Errorf("parseMemoryLimit(%q) = %d", s, n)
		}
	})
}
