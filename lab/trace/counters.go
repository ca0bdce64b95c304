//go:build linux

package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// counted is whose counters are read.
type counted struct {
	PID     int             // a process in the guest, by which its cgroups and its network namespace are found; 0: none
	Threads []engine.Thread // the guest's, a ruler's among them: what it has waited for is counted with it
	CPUs    []int           // that the guest may use; none: all
	Tracers []*tracer       // that are asked for
}

// counters are what the kernel had counted at one time, since each counter's own beginning. See since.
type counters struct {
	figures, fallback []counts
	missing           reasons
}

// counts are those of one source. Two readings are compared source by source, so that a guest that has gone, or is elsewhere now,
// is noticed and not taken for a difference.
type counts struct {
	tracer, from string
	n            map[string]uint64 // by the name of the figure; times, whose names end in "_s", in ns
	sparse       bool              // what did not change is not worth a word
}

// reasons are why something could not be counted, or is not the guest's alone, by tracer.
type reasons map[string][]*notebook.Message

func (r reasons) add(tracer string, why *notebook.Message) {
	if !slices.ContainsFunc(r[tracer], why.Equal) {
		r[tracer] = append(r[tracer], why)
	}
}

// readCounters reads the counters that the tracers in t.Tracers need. It takes a handful of small files for the guest and two for each of
// its processes, and wakes nobody. What could not be read since says. A process that came since the first reading counts in the second
// if its threads are in t then, or if one that is has waited for it.
func readCounters(t counted) counters { return kernelFiles.read(t) }

// since is what was counted between two readings of the same guest. figures are by the names in notebook.TracerMetrics, a
// device's or a role's before some. fallback are figures of block devices, for where nobody counts requests one by one:
// of a cgroup, by device, or of the processes, which knows bytes alone. missing is by tracer: what could not be had and why,
// and which figures are not of the guest alone or are coarse.
func (after counters) since(before counters) (figures, fallback map[string]float64, missing reasons) {
	missing = reasons{}
	for _, c := range []counters{before, after} {
		for tracer, all := range c.missing {
			for _, why := range all {
				missing.add(tracer, why)
			}
		}
	}
	figures = subtract(after.figures, before.figures, missing)
	fallback = subtract(after.fallback, before.fallback, missing)
	for name := range fallback {
		if strings.Contains(name, ".") { // devices are known, which says more
			delete(fallback, "read_bytes")
			delete(fallback, "written_bytes")
			break
		}
	}
	return figures, fallback, missing
}

func subtract(after, before []counts, why reasons) map[string]float64 {
	figures := map[string]float64{}
	for _, b := range before {
		if !slices.ContainsFunc(after, b.same) {
			why.add(b.tracer, notebook.Say("counter-gone", "from", b.from))
		}
	}
	for _, a := range after {
		i := slices.IndexFunc(before, a.same)
		if i < 0 {
			why.add(a.tracer, notebook.Say("counter-new", "from", a.from))
			continue
		}
		delta := make(map[string]float64, len(a.n))
		for name, n := range a.n {
			was := before[i].n[name] // 0 of a device that came since
			if n < was {
				why.add(a.tracer, notebook.Say("counter-fell", "figure", name, "from", a.from, "was", float64(was), "is", float64(n)))
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
		maps.Copy(figures, delta)
	}
	return figures
}

func (c counts) same(d counts) bool { return c.tracer == d.tracer && c.from == d.from }

// files are what counters are read from: the machine's own, or some recorded on another.
type files struct {
	proc.Tree
	group func(pid int, controller string) (dir string, err error) // a process's cgroup; see cgroup.Of
	self  int                                                      // Tare's own process: what holds for it too is not only the guest's
}

var kernelFiles = files{proc.Host, cgroup.Of, os.Getpid()}

// text gives a file. name is absolute.
func (f files) text(name string) (string, error) {
	b, err := fs.ReadFile(f.FS, strings.TrimPrefix(name, "/"))
	return string(b), err
}

// gone says that a file, or the process that it is of, is not there.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func (f files) read(t counted) counters {
	c := counters{missing: reasons{}}
	for _, tr := range t.Tracers {
		if tr.count == nil {
			continue
		}
		if err := tr.count(f, &c, t); err != nil {
			c.missing.add(tr.name, notebook.TextMessage(strings.ReplaceAll(err.Error(), "\n", "; ")))
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
		siblings, err := fs.ReadDir(f.FS, strings.TrimPrefix(dir, "/")+"/task")
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

// used adds what the guest's processes used themselves, and what those of their children that they have waited for used.
func (f files) used(t counted) (sum proc.Usage, err error) {
	groups, err := f.processes(t)
	if err != nil {
		return sum, err
	}
	if len(groups) == 0 {
		return sum, errors.New("the guest has neither a cgroup of its own nor a process that could be read")
	}
	for _, g := range groups {
		own, children, err := f.Usage(string(g))
		if gone(err) {
			continue
		}
		if err != nil {
			return sum, err
		}
		sum.Add(own)
		sum.Add(children)
	}
	return sum, nil
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
