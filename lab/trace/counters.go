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

// counted says whose counters to read.
type counted struct {
	PID     int             // a process in the guest, for its cgroups and its network namespace; 0: none
	Threads []engine.Thread // the guest's threads, including the ruler's: what it has waited for counts too
	CPUs    []int           // that the guest may use; none: all
	Tracers []*tracer       // requested tracers
}

// counters are the kernel's counts at one time, each since its own beginning. See since.
type counters struct {
	figures, fallback []counts
	missing           reasons
}

// counts are the counts of one source. Tare compares two readings source by source. It thus notices a guest that has ended or moved,
// and does not read that as a difference.
type counts struct {
	tracer, from string
	n            map[string]uint64 // by the figure's name; times, whose names end in "_s", in ns
	sparse       bool              // omit figures that did not change
}

// reasons say, by tracer, why a count is missing or is not only the guest's.
type reasons map[string][]*notebook.Message

func (r reasons) add(tracer string, why *notebook.Message) {
	if !slices.ContainsFunc(r[tracer], why.Equal) {
		r[tracer] = append(r[tracer], why)
	}
}

// readCounters reads the counters that the tracers in t.Tracers need. It reads a handful of small files for the guest and two for
// each of its processes, and wakes nobody. since reports what could not be read. A process that came after the first reading counts
// in the second if its threads are then in t, or if a process with threads in t has waited for it.
func readCounters(t counted) counters { return kernelFiles.read(t) }

// since is the difference between two readings of the same guest. figures are by the names in notebook.TracerMetrics, some with a
// device or a role in front. fallback are figures of block devices, used where no tracer counts requests one by one: of a cgroup,
// by device, or of the processes, which have only bytes. missing is by tracer: what is not available and why, and which figures are
// coarse or not only the guest's.
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
			was := before[i].n[name] // 0 for a device that came later
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
			// As the kernel itself does (cputime_adjust): the sum is exact, and is split in proportion to the timer's ticks.
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

// files are the files of counters: this machine's own, or recorded ones of another.
type files struct {
	proc.Tree
	group func(pid int, controller string) (dir string, err error) // a process's cgroup; see cgroup.Of
	self  int                                                      // Tare's own process: what also applies to it is not only the guest's
}

var kernelFiles = files{proc.Host, cgroup.Of, os.Getpid()}

// text reads a file. name is absolute.
func (f files) text(name string) (string, error) {
	b, err := fs.ReadFile(f.FS, strings.TrimPrefix(name, "/"))
	return string(b), err
}

// gone reports that a file, or its process, does not exist.
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

// ownGroup is the guest's cgroup for a controller; "" if it has none of its own, but is in Tare's or above.
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

// holds reports whether a process in the cgroup other is also in dir.
func holds(dir, other string) bool {
	return other == dir || strings.HasPrefix(other, strings.TrimSuffix(dir, "/")+"/")
}

// take reads the lines "name number" of a file whose names are keys of want, into the figure that want gives. Several names may add
// up to one figure. unit is the unit of times, in ns. It is an error if no line exists.
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

// leader is the /proc folder of a process of the guest, by any of its threads: /proc/TID describes the whole process.
type leader string

// processes finds the guest's processes. It omits those that end during the call: the process that waited for them has their
// counts.
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

// used adds what the guest's processes have used themselves, and what their waited-for children have used.
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

// errNoneThere says that a file has none of the wanted lines.
var errNoneThere = errors.New("none of the wanted lines is in the file")

// parseFlat parses lines "name number" or "name: number". unit is the unit of times, in ns.
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
			return nil, fmt.Errorf("line %d: %.100q: must be a name and a number", number, line)
		}
		by := uint64(1)
		if strings.HasSuffix(as, "_s") {
			by = unit
		}
		if v > (math.MaxInt64-n[as])/by { // no time or count since a machine's start is that large
			return nil, fmt.Errorf("line %d: %.100q: the number is too large", number, line)
		}
		n[as] += v * by
	}
	if len(n) == 0 {
		return nil, errNoneThere
	}
	return n, nil
}
