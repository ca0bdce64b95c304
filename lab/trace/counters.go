//go:build linux

package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/notebook"
)

// counted is whose counters are read.
type counted struct {
	PID     int             // a process in the guest, by which its cgroups and its network namespace are found; 0: none
	Threads []engine.Thread // the guest's, a ruler's among them: what it has waited for is counted with it
	CPUs    []int           // that the guest may use; none: all
	Probes  []string        // that are asked for
}

// counters are what the kernel had counted at one time, since each counter's own beginning. See since.
type counters struct {
	figures, fallback []counts
	missing           reasons
}

// counts are those of one source. Two readings are compared source by source, so that a guest that has gone, or is elsewhere now,
// is noticed and not taken for a difference.
type counts struct {
	probe, from string
	n           map[string]uint64 // by the name of the figure; times, whose names end in "_s", in ns
	sparse      bool              // what did not change is not worth a word
}

// reasons are why something could not be counted, or is not the guest's alone, by probe.
type reasons map[string][]string

func (r reasons) add(probe, format string, a ...any) {
	if text := fmt.Sprintf(format, a...); !slices.Contains(r[probe], text) {
		r[probe] = append(r[probe], text)
	}
}

// readCounters reads the counters that the probes in t.Probes need. It takes a handful of small files for the guest and two for each of
// its processes, and wakes nobody. What could not be read since says. A process that came since the first reading counts in the second
// if its threads are in t then, or if one that is has waited for it.
func readCounters(t counted) counters { return kernelFiles.read(t) }

// since is what was counted between two readings of the same guest. figures are by the names in notebook.ProbeFigures, a
// device's or a role's before some. fallback are figures of block devices, for where nobody counts requests one by one:
// of a cgroup, by device, or of the processes, which knows bytes alone. missing is by probe: what could not be had and why,
// and which figures are not of the guest alone or are coarse.
func (after counters) since(before counters) (figures, fallback map[string]float64, missing map[string]string) {
	why := reasons{}
	for _, c := range []counters{before, after} {
		for probe, all := range c.missing {
			for _, text := range all {
				why.add(probe, "%s", text)
			}
		}
	}
	figures = subtract(after.figures, before.figures, why)
	fallback = subtract(after.fallback, before.fallback, why)
	for name := range fallback {
		if strings.Contains(name, ".") { // devices are known, which says more
			delete(fallback, "read_bytes")
			delete(fallback, "written_bytes")
			break
		}
	}
	missing = make(map[string]string, len(why))
	for probe, all := range why {
		missing[probe] = strings.Join(all, "; ")
	}
	return figures, fallback, missing
}

// cpuUsage is CPU time in all, of which only a sample is known to be in the code or in the kernel.
const cpuUsage = "usage_s"

func subtract(after, before []counts, why reasons) map[string]float64 {
	figures := map[string]float64{}
	for _, b := range before {
		if !slices.ContainsFunc(after, b.same) {
			why.add(b.probe, "%s was there before the trial and not after it", b.from)
		}
	}
	for _, a := range after {
		i := slices.IndexFunc(before, a.same)
		if i < 0 {
			why.add(a.probe, "%s was there after the trial and not before it", a.from)
			continue
		}
		delta := make(map[string]float64, len(a.n))
		for name, n := range a.n {
			was := before[i].n[name] // 0 of a device that came since
			if n < was {
				why.add(a.probe, "%s of %s fell from %d to %d", name, a.from, was, n)
				continue
			}
			if n == was && a.sparse {
				continue
			}
			delta[name] = float64(n - was)
			if strings.HasSuffix(name, "_s") {
				delta[name] /= float64(time.Second)
			}
		}
		if usage, ok := delta[cpuUsage]; ok {
			delete(delta, cpuUsage)
			// As the kernel itself does it (cputime_adjust): the sum is exact, and is split as the timer's ticks fell.
			if ticks := delta["user_s"] + delta["system_s"]; ticks > 0 {
				delta["system_s"] = usage * delta["system_s"] / ticks
			}
			delta["user_s"] = usage - delta["system_s"]
		}
		for name, d := range delta {
			figures[name] = d
		}
	}
	return figures
}

func (c counts) same(d counts) bool { return c.probe == d.probe && c.from == d.from }

// files are what counters are read from: the machine's own, or some recorded on another.
type files struct {
	fs    fs.FS
	group func(pid int, controller string) (dir string, err error) // a process's cgroup; see cgroup.Of
	self  int                                                      // Tare's own process: what holds for it too is not the guest's alone
	tick  time.Duration                                            // the unit of times in /proc, USER_HZ
}

var kernelFiles = files{os.DirFS("/"), cgroup.Of, os.Getpid(), userTick()}

// atClockTick is AT_CLKTCK of getauxval(3): how often a second the clock of times(2) ticks.
const atClockTick = 17

// userTick is 0 where the kernel does not say; then times in /proc mean nothing and are missing.
func userTick() time.Duration {
	vec, err := unix.Auxv()
	if err != nil {
		return 0
	}
	for _, v := range vec {
		if v[0] == atClockTick && v[1] > 0 {
			return time.Second / time.Duration(v[1])
		}
	}
	return 0
}

// text gives a file. name is absolute.
func (f files) text(name string) (string, error) {
	b, err := fs.ReadFile(f.fs, strings.TrimPrefix(name, "/"))
	return string(b), err
}

// gone says that a file, or the process that it is of, is not there.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func (f files) read(t counted) counters {
	c := counters{missing: reasons{}}
	var groups []leader
	var lost error
	if slices.ContainsFunc(t.Probes, func(p string) bool {
		return p == notebook.ProbeCPU || p == notebook.ProbeMemory || p == notebook.ProbeIO
	}) {
		groups, lost = f.processes(t)
	}
	for _, p := range t.Probes {
		var err error
		switch p {
		case notebook.ProbeBandwidth:
			err = f.bandwidth(&c, t)
		case notebook.ProbeCPU:
			err = errors.Join(lost, f.cpu(&c, t, groups), f.interrupts(&c, t))
		case notebook.ProbeMemory:
			err = errors.Join(lost, f.faults(&c, t, groups), f.hostMemory(&c))
		case notebook.ProbeIO:
			err = errors.Join(lost, f.blocks(&c, t), f.processIO(&c, groups), f.network(&c, t))
		}
		if err != nil {
			c.missing.add(p, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return c
}

// ownGroup is the guest's cgroup for a controller, "" where it has none of its own: it is in Tare's, or above.
func (f files) ownGroup(t counted, controller string) (string, error) {
	if t.PID == 0 {
		return "", nil
	}
	dir, err := f.group(t.PID, controller)
	if err != nil || dir == "" {
		return "", err
	}
	mine, err := f.group(f.self, controller)
	if err != nil {
		return "", err
	}
	if holds(dir, mine) {
		return "", nil
	}
	return dir, nil
}

// holds says whether a process in the cgroup other is in dir as well.
func holds(dir, other string) bool {
	return other == dir || strings.HasPrefix(other, strings.TrimSuffix(dir, "/")+"/")
}

// take reads those lines "name number" of a file whose names are keys of want, into the figure that want gives. Several names may
// go into one figure. unit is that of times, in ns. It is an error if none is there.
func (f files) take(file string, want map[string]string, unit uint64) (map[string]uint64, error) {
	text, err := f.text(file)
	if err != nil {
		return nil, err
	}
	n, err := parseFlat(text, want, unit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// Names in the kernel's files, and what they are here.
var (
	bandwidthV1 = map[string]string{"nr_periods": "periods", "nr_throttled": "throttled_periods", "throttled_time": "throttled_s"}
	bandwidthV2 = map[string]string{"nr_periods": "periods", "nr_throttled": "throttled_periods", "throttled_usec": "throttled_s"}
	cpuV2       = map[string]string{"user_usec": "user_s", "system_usec": "system_s"}
	faultsBelow = map[string]string{"total_pgfault": "minor_faults", "total_pgmajfault": "major_faults"} // version 1, with the cgroups below
	faultsV2    = map[string]string{"pgfault": "minor_faults", "pgmajfault": "major_faults", "pgsteal": "reclaimed_pages"}
	hugeFaults  = map[string]string{"thp_fault_alloc": "huge_faults"}
	reclaimed   = map[string]string{"pgsteal_kswapd": "reclaimed_pages", "pgsteal_direct": "reclaimed_pages", "pgsteal_khugepaged": "reclaimed_pages", "pgsteal_proactive": "reclaimed_pages"}
	processIO   = map[string]string{"read_bytes": "read_bytes", "write_bytes": "written_bytes", "cancelled_write_bytes": "cancelled"}
)

// bandwidth reads cpu.stat of the nearest cgroup of the guest that has a quota. Where none has, nothing is throttled and
// nothing is missing.
func (f files) bandwidth(c *counters, t counted) error {
	if t.PID == 0 {
		return nil
	}
	dir, err := f.group(t.PID, "cpu")
	if err != nil || dir == "" {
		return err
	}
	mine, err := f.group(f.self, "cpu")
	if err != nil {
		return err
	}
	found := false
	for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(f.fs, strings.TrimPrefix(dir, "/")+"/cgroup.procs"); gone(err) {
			break // above the hierarchy
		} else if err != nil {
			return err
		}
		version, err := f.quota(dir)
		if err != nil {
			return err
		}
		if version == 0 {
			continue
		}
		if found {
			c.missing.add(notebook.ProbeBandwidth, "the quota of %s, above the guest's, is not counted", dir)
			continue
		}
		found = true
		want, unit := bandwidthV1, uint64(time.Nanosecond)
		if version == 2 {
			want, unit = bandwidthV2, uint64(time.Microsecond)
		}
		n, err := f.take(dir+"/cpu.stat", want, unit)
		if err != nil {
			return err
		}
		c.figures = append(c.figures, counts{notebook.ProbeBandwidth, dir + "/cpu.stat", n, false})
		if holds(dir, mine) {
			c.missing.add(notebook.ProbeBandwidth, "the quota of %s is not the guest's alone: tare is in it too", dir)
		}
	}
	return nil
}

// quota gives the version of the cgroup if it has a CPU quota, else 0.
func (f files) quota(dir string) (version int, err error) {
	for file, version := range map[string]int{"cpu.max": 2, "cpu.cfs_quota_us": 1} {
		text, err := f.text(dir + "/" + file)
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		q, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		if q == "max" || q == "-1" {
			return 0, nil
		}
		if n, err := strconv.ParseUint(q, 10, 63); err != nil || n == 0 {
			return 0, fmt.Errorf("%s/%s: %.60q: expected a quota in µs, max or -1", dir, file, text)
		}
		return version, nil
	}
	return 0, nil
}

// leader is the /proc folder of a process of the guest, by any of its threads: /proc/TID is of the whole process.
type leader string

// processes finds the guest's processes. Those that end meanwhile are left out: who waited for them has their counts.
func (f files) processes(t counted) ([]leader, error) {
	seen := make(map[string]bool, len(t.Threads))
	var all []leader
	for i := range len(t.Threads) + 1 {
		id := t.PID
		if i < len(t.Threads) {
			id = t.Threads[i].ID
		}
		tid := strconv.Itoa(id)
		if id == 0 || seen[tid] {
			continue
		}
		dir := "/proc/" + tid
		siblings, err := fs.ReadDir(f.fs, strings.TrimPrefix(dir, "/")+"/task")
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, s := range siblings {
			seen[s.Name()] = true
		}
		all = append(all, leader(dir))
	}
	return all, nil
}

// used adds what the processes used themselves, and what those of their children that they have waited for used.
func (f files) used(groups []leader) (usage, error) {
	var sum usage
	for _, g := range groups {
		text, err := f.text(string(g) + "/stat")
		if gone(err) {
			continue
		}
		if err != nil {
			return sum, err
		}
		u, err := parseStat(text)
		if err != nil {
			return sum, fmt.Errorf("%s/stat: %w", g, err)
		}
		sum.add(u)
	}
	return sum, nil
}

// cpu reads user and system time: of the guest's own cgroup; of a VM, or where there is none, of the guest's processes.
func (f files) cpu(c *counters, t counted, groups []leader) error {
	vcpus := slices.ContainsFunc(t.Threads, func(t engine.Thread) bool { return t.Role == notebook.RoleVCPU })
	if !vcpus {
		n, from, err := f.groupCPU(t)
		if err != nil {
			return err
		}
		if n != nil {
			c.figures = append(c.figures, counts{notebook.ProbeCPU, from, n, false})
			return nil
		}
	}
	if len(groups) == 0 {
		return errors.New("user_s and system_s: the guest has neither a cgroup of its own nor a process that could be read")
	}
	if f.tick == 0 {
		return errors.New("user_s and system_s: the kernel does not say in what unit /proc gives times")
	}
	u, err := f.used(groups)
	if err != nil {
		return err
	}
	n := f.times("", u)
	if vcpus {
		var u usage
		for _, th := range t.Threads {
			if th.Role != notebook.RoleVCPU {
				continue
			}
			file := fmt.Sprintf("/proc/%d/task/%[1]d/stat", th.ID)
			text, err := f.text(file)
			if err != nil {
				return fmt.Errorf("a virtual CPU's thread: %w", err)
			}
			one, err := parseStat(text)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			one.childUser, one.childSystem, one.childGuest = 0, 0, 0 // they are the process's
			u.add(one)
		}
		for name, v := range f.times(notebook.RoleVCPU+".", u) {
			n[name] = v
		}
	} else {
		delete(n, "guest_s") // nothing here runs a VM
	}
	c.figures = append(c.figures, counts{notebook.ProbeCPU, "the guest's processes", n, false})
	c.missing.add(notebook.ProbeCPU, "user_s and system_s in steps of %v", f.tick)
	return nil
}

// times are a usage's as figures. Time in a VM's code is user time too for the kernel, and not here.
func (f files) times(before string, u usage) map[string]uint64 {
	tick, guest := uint64(f.tick), u.guest+u.childGuest
	return map[string]uint64{
		before + "user_s":   (max(u.user+u.childUser, guest) - guest) * tick,
		before + "system_s": (u.system + u.childSystem) * tick,
		before + "guest_s":  guest * tick,
	}
}

// groupCPU reads CPU time of the guest's own cgroup; n is nil where it has none.
func (f files) groupCPU(t counted) (n map[string]uint64, from string, err error) {
	dir, err := f.ownGroup(t, "cpuacct")
	if err != nil || dir == "" {
		return nil, "", err
	}
	n = map[string]uint64{}
	for file, name := range map[string]string{"cpuacct.usage": cpuUsage, "cpuacct.usage_user": "user_s", "cpuacct.usage_sys": "system_s"} {
		text, err := f.text(dir + "/" + file)
		if gone(err) { // version 2
			n, err = f.take(dir+"/cpu.stat", cpuV2, uint64(time.Microsecond))
			if gone(err) {
				return nil, "", nil
			}
			return n, dir, err
		}
		if err != nil {
			return nil, "", err
		}
		if n[name], err = strconv.ParseUint(strings.TrimSpace(text), 10, 63); err != nil {
			return nil, "", fmt.Errorf("%s/%s: %.60q: expected a number of ns", dir, file, text)
		}
	}
	return n, dir, nil
}

// interrupts reads what took time from the guest's CPUs without being of anyone.
func (f files) interrupts(c *counters, t counted) error {
	const file = "/proc/stat"
	if f.tick == 0 {
		return errors.New("interrupt_s and steal_s: the kernel does not say in what unit /proc gives times")
	}
	text, err := f.text(file)
	if err != nil {
		return err
	}
	interrupt, steal, err := parseCPUs(text, t.CPUs)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c.figures = append(c.figures, counts{notebook.ProbeCPU, file, map[string]uint64{
		"interrupt_s": interrupt * uint64(f.tick),
		"steal_s":     steal * uint64(f.tick),
	}, false})
	c.missing.add(notebook.ProbeCPU, "interrupt_s and steal_s in steps of %v for each CPU", f.tick)
	return nil
}

// faults reads page faults, of the guest's own cgroup or of its processes. The kernel brings a cgroup's counts up to date when
// some 64 for each CPU have come together, so they may lag by as many; a process's are exact.
func (f files) faults(c *counters, t counted, groups []leader) error {
	dir, err := f.ownGroup(t, "memory")
	if err != nil {
		return err
	}
	if dir != "" {
		file := dir + "/memory.stat"
		n, err := f.take(file, faultsBelow, 1)
		if errors.Is(err, errNoneThere) { // version 2
			n, err = f.take(file, faultsV2, 1)
		}
		if err == nil {
			n["minor_faults"] = max(n["minor_faults"], n["major_faults"]) - n["major_faults"]
			c.figures = append(c.figures, counts{notebook.ProbeMemory, file, n, false})
			return nil
		}
		if !gone(err) {
			return err
		}
	}
	if len(groups) == 0 {
		return errors.New("page faults: the guest has neither a cgroup of its own nor a process that could be read")
	}
	u, err := f.used(groups)
	if err != nil {
		return err
	}
	c.figures = append(c.figures, counts{notebook.ProbeMemory, "the guest's processes", map[string]uint64{
		"minor_faults": u.minor + u.childMinor,
		"major_faults": u.major + u.childMajor,
	}, false})
	return nil
}

// hostMemory reads what only the whole host counts: huge pages, and the pages taken back where the guest's cgroup does not say.
func (f files) hostMemory(c *counters) error {
	const file = "/proc/vmstat"
	want := map[string]string{}
	for k, v := range hugeFaults {
		want[k] = v
	}
	whole := !slices.ContainsFunc(c.figures, func(c counts) bool {
		_, ok := c.n["reclaimed_pages"]
		return ok
	})
	if whole {
		for k, v := range reclaimed {
			want[k] = v
		}
	}
	n, err := f.take(file, want, 1)
	if err != nil {
		return err
	}
	c.figures = append(c.figures, counts{notebook.ProbeMemory, file, n, false})
	if _, ok := n["huge_faults"]; !ok {
		c.missing.add(notebook.ProbeMemory, "huge_faults: this kernel counts none")
	}
	if _, ok := n["reclaimed_pages"]; ok && whole {
		c.missing.add(notebook.ProbeMemory, "reclaimed_pages is of the whole host")
	}
	return nil
}

// blocks reads what the guest's own cgroup has done on block devices. A version 1 cgroup counts only on devices for which some
// cgroup has a limit on newer kernels, and then is empty without one.
func (f files) blocks(c *counters, t counted) error {
	dir, err := f.ownGroup(t, "blkio")
	if err != nil || dir == "" {
		return err
	}
	n := map[string]uint64{}
	put := func(device, name string, v uint64) error {
		as, err := f.device(device)
		if err == nil {
			n[as+"."+name] = v
		}
		return err
	}
	text, err := f.text(dir + "/io.stat")
	switch {
	case err == nil:
		if err := parseIOStat(text, put); err != nil {
			return fmt.Errorf("%s/io.stat: %w", dir, err)
		}
	case !gone(err):
		return err
	default:
		for file, names := range map[string][2]string{
			"blkio.throttle.io_serviced":      {"reads", "writes"},
			"blkio.throttle.io_service_bytes": {"read_bytes", "written_bytes"},
		} {
			text, err := f.text(dir + "/" + file + "_recursive") // with the cgroups below
			if gone(err) {
				text, err = f.text(dir + "/" + file)
			}
			if gone(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := parseBlkio(text, names, put); err != nil {
				return fmt.Errorf("%s/%s: %w", dir, file, err)
			}
		}
	}
	c.fallback = append(c.fallback, counts{notebook.ProbeIO, dir, n, false})
	return nil
}

// device is the name of a block device by its number "MAJOR:MINOR".
func (f files) device(number string) (string, error) {
	file := "/sys/dev/block/" + number + "/uevent"
	text, err := f.text(file)
	if gone(err) {
		return number, nil // it was taken away; its counts are still the guest's
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok && name != "" {
			return name, nil
		}
	}
	return number, nil
}

// processIO reads the bytes that the guest's processes, and those that they have waited for, had devices read, or write later.
func (f files) processIO(c *counters, groups []leader) error {
	sum, any := map[string]uint64{"read_bytes": 0, "written_bytes": 0}, false
	for _, g := range groups {
		n, err := f.take(string(g)+"/io", processIO, 1)
		if gone(err) {
			continue // ended, or a kernel that does not count it
		}
		if err != nil {
			return err
		}
		any = true
		sum["read_bytes"] += n["read_bytes"]
		sum["written_bytes"] += max(n["written_bytes"], n["cancelled"]) - n["cancelled"] // cancelled: what was removed before it was written
	}
	if any {
		c.fallback = append(c.fallback, counts{notebook.ProbeIO, "the guest's processes", sum, false})
	}
	return nil
}

// network reads the devices of the guest's network namespace.
func (f files) network(c *counters, t counted) error {
	if t.PID == 0 {
		return errors.New("the network: no process of the guest is known, by which its namespace is found")
	}
	file := fmt.Sprintf("/proc/%d/net/dev", t.PID)
	text, err := f.text(file)
	if err != nil {
		return err
	}
	n, err := parseNetDev(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	its, err := fs.ReadLink(f.fs, fmt.Sprintf("proc/%d/ns/net", t.PID))
	if err != nil {
		return err
	}
	mine, err := fs.ReadLink(f.fs, fmt.Sprintf("proc/%d/ns/net", f.self))
	if err != nil {
		return err
	}
	whole := its == mine
	if whole {
		c.missing.add(notebook.ProbeIO, "the networks' figures are of the whole host: the guest has its network")
	}
	c.figures = append(c.figures, counts{notebook.ProbeIO, "network " + its, n, whole})
	return nil
}

// errNoneThere says that a file has none of the lines that were looked for.
var errNoneThere = errors.New("none of the expected lines is there")

// parseFlat reads lines "name number" or "name: number". unit is that of times, in ns.
func parseFlat(text string, want map[string]string, unit uint64) (map[string]uint64, error) {
	n := make(map[string]uint64, len(want))
	number := 0
	for line := range strings.Lines(text) {
		number++
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		as := want[strings.TrimSuffix(name, ":")]
		if as == "" {
			continue
		}
		v, err := strconv.ParseUint(value, 10, 63)
		if !ok || err != nil {
			return nil, fmt.Errorf("line %d: %.100q: expected a name and a number", number, line)
		}
		by := uint64(1)
		if strings.HasSuffix(as, "_s") {
			by = unit
		}
		if v > (math.MaxInt64-n[as])/by { // no time or count since the start of a machine is that large
			return nil, fmt.Errorf("line %d: %.100q: the number is too large", number, line)
		}
		n[as] += v * by
	}
	if len(n) == 0 {
		return nil, errNoneThere
	}
	return n, nil
}

// usage is what /proc/PID/stat says of a process and of those of its children that it has waited for; times in ticks.
type usage struct {
	minor, childMinor, major, childMajor uint64
	user, system, childUser, childSystem uint64
	guest, childGuest                    uint64 // part of user
}

func (u *usage) add(v usage) {
	u.minor, u.childMinor, u.major, u.childMajor = u.minor+v.minor, u.childMinor+v.childMinor, u.major+v.major, u.childMajor+v.childMajor
	u.user, u.system, u.childUser, u.childSystem = u.user+v.user, u.system+v.system, u.childUser+v.childUser, u.childSystem+v.childSystem
	u.guest, u.childGuest = u.guest+v.guest, u.childGuest+v.childGuest
}

// counterLimit bounds what is believed of one counter: no machine lives for so many ticks.
const counterLimit = 1 << 40

// parseStat reads /proc/PID/stat (proc_pid_stat(5)), whose second field is the name of the program and may have anything in it.
func parseStat(text string) (usage, error) {
	var u usage
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	// Numbered as in the manual, from 1; the name is field 2.
	for number, to := range map[int]*uint64{
		10: &u.minor, 11: &u.childMinor, 12: &u.major, 13: &u.childMajor,
		14: &u.user, 15: &u.system, 16: &u.childUser, 17: &u.childSystem, 43: &u.guest, 44: &u.childGuest,
	} {
		if end < 0 || len(fields) <= number-3 {
			return usage{}, fmt.Errorf("%.100q: expected a name in brackets and 44 fields or more", text)
		}
		n, err := strconv.ParseUint(fields[number-3], 10, 63)
		if err != nil || n > counterLimit {
			return usage{}, fmt.Errorf("field %d: %.60q: expected a number", number, fields[number-3])
		}
		*to = n
	}
	return u, nil
}

// parseCPUs reads from /proc/stat (proc_stat(5)), in ticks, the time of interrupts and what a hypervisor took, of the given CPUs; of
// all where none is given.
func parseCPUs(text string, cpus []int) (interrupt, steal uint64, err error) {
	want := make(map[string]bool, len(cpus))
	for _, c := range cpus {
		want["cpu"+strconv.Itoa(c)] = true
	}
	if len(cpus) == 0 {
		want["cpu"] = true
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || !want[f[0]] {
			continue
		}
		delete(want, f[0])
		if len(f) < 9 {
			return 0, 0, fmt.Errorf("%.100q: expected at least 8 numbers", line)
		}
		for i, to := range map[int]*uint64{6: &interrupt, 7: &interrupt, 8: &steal} {
			n, err := strconv.ParseUint(f[i], 10, 63)
			if err != nil || n > counterLimit {
				return 0, 0, fmt.Errorf("%.100q: number %d is not one", line, i)
			}
			*to += n
		}
	}
	for c := range want {
		return 0, 0, fmt.Errorf("no line of %s; is it online?", c)
	}
	return interrupt, steal, nil
}

// parseBlkio reads a version 1 file of lines "MAJOR:MINOR Kind number", and "Total number" at the end, and puts those of the kinds Read
// and Write under the names.
func parseBlkio(text string, names [2]string, put func(device, name string, n uint64) error) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "Total" {
			continue
		}
		if len(f) != 3 || !isDevice(f[0]) {
			return fmt.Errorf("%.100q: expected a device's number, a kind and a number", line)
		}
		n, err := strconv.ParseUint(f[2], 10, 63)
		if err != nil {
			return fmt.Errorf("%.100q: expected a number", line)
		}
		switch f[1] {
		case "Read":
			err = put(f[0], names[0], n)
		case "Write":
			err = put(f[0], names[1], n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ioNames are those of io.stat of version 2.
var ioNames = map[string]string{"rios": "reads", "rbytes": "read_bytes", "wios": "writes", "wbytes": "written_bytes"}

// parseIOStat reads io.stat: lines "MAJOR:MINOR key=number …". A line may have a device alone, and a key's value be no number
// where a policy of the kernel's adds some.
func parseIOStat(text string, put func(device, name string, n uint64) error) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if !isDevice(f[0]) {
			return fmt.Errorf("%.100q: expected a device's number", line)
		}
		for _, pair := range f[1:] {
			key, value, _ := strings.Cut(pair, "=")
			name := ioNames[key]
			if name == "" {
				continue
			}
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil {
				return fmt.Errorf("%.100q: expected a number after %s=", line, key)
			}
			if err := put(f[0], name, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// isDevice says whether s is a device's "MAJOR:MINOR", and nothing that would lead elsewhere as part of a path.
func isDevice(s string) bool {
	major, minor, ok := strings.Cut(s, ":")
	_, err := strconv.ParseUint(major, 10, 32)
	_, err2 := strconv.ParseUint(minor, 10, 32)
	return ok && err == nil && err2 == nil
}

// parseNetDev reads /proc/PID/net/dev (proc_pid_net(5)): two lines of headings, and one for each device.
func parseNetDev(text string) (map[string]uint64, error) {
	n := map[string]uint64{}
	number := 0
	for line := range strings.Lines(text) {
		if number++; number <= 2 {
			continue
		}
		// A device's name may have anything but white space and '/' in it, colons too.
		i := strings.LastIndexByte(line, ':')
		f := strings.Fields(line[i+1:])
		name := strings.TrimSpace(line[:max(i, 0)])
		if name == "" || len(f) < 10 {
			return nil, fmt.Errorf("line %d: %.100q: expected a device and 10 numbers or more", number, line)
		}
		for i, as := range map[int]string{0: "received_bytes", 1: "received_packets", 8: "sent_bytes", 9: "sent_packets"} {
			v, err := strconv.ParseUint(f[i], 10, 63)
			if err != nil {
				return nil, fmt.Errorf("line %d: %.100q: expected a number, not %.30q", number, line, f[i])
			}
			n[name+"."+as] = v
		}
	}
	return n, nil
}
