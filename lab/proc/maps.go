//go:build linux

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mapping is a range of a process's addresses: a line of /proc/PID/maps (proc_pid_maps(5)).
type Mapping struct {
	Start, End uint64 // addresses; End is the first one after it
	Perms      string // such as "rw-p"
	Offset     uint64 // in the file, bytes
	Device     string // of the file, such as "08:01"
	Inode      uint64 // of the file; 0 where it has none
	Path       string // of the file, or the kernel's name such as "[heap]"; may be empty
}

// Maps lists the mappings of a process in the order of their addresses; none if it has ended, or is the kernel's own.
func Maps(pid int) ([]Mapping, error) {
	return parsed(Host, fmt.Sprintf("/proc/%d/maps", pid), parseMaps)
}

func parseMaps(text string) ([]Mapping, error) {
	var all []Mapping
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		var m Mapping
		var err [4]error
		f := strings.SplitN(line, " ", 6)
		if len(f) < 5 {
			return nil, fmt.Errorf("%.100q is not a line of /proc/PID/maps", line)
		}
		start, end, _ := strings.Cut(f[0], "-")
		m.Start, err[0] = strconv.ParseUint(start, 16, 64)
		m.End, err[1] = strconv.ParseUint(end, 16, 64)
		m.Offset, err[2] = strconv.ParseUint(f[2], 16, 64)
		m.Inode, err[3] = strconv.ParseUint(f[4], 10, 64)
		m.Perms, m.Device = f[1], f[3]
		if len(f) == 6 {
			m.Path = strings.ReplaceAll(strings.TrimLeft(f[5], " "), `\012`, "\n")
		}
		if e := errors.Join(err[:]...); e != nil || m.End < m.Start || len(m.Perms) != 4 {
			return nil, fmt.Errorf("%.100q is not a line of /proc/PID/maps", line)
		}
		all = append(all, m)
	}
	return all, nil
}

// parsed reads a file of the tree and parses it; an error of parse names the file.
func parsed[T any](t Tree, file string, parse func(text string) ([]T, error)) ([]T, error) {
	text, err := t.Read(file)
	if err != nil {
		return nil, err
	}
	all, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// Backing is a mapping with the size of its pages (KernelPageSize of /proc/PID/smaps, proc_pid_smaps(5)).
type Backing struct {
	Mapping
	PageSize int64 // bytes: of a page of the pool of huge pages (hugetlb), or of an ordinary page; transparent huge pages count as ordinary
}

// Backings lists the mappings of a process with the sizes of their pages, in the order of their addresses; none if it has ended, or is
// the kernel's own. The kernel walks all of the process's pages for it.
func Backings(pid int) ([]Backing, error) {
	return parsed(Host, fmt.Sprintf("/proc/%d/smaps", pid), parseBackings)
}

func parseBackings(text string) (all []Backing, err error) {
	for line := range strings.Lines(text) {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case !strings.HasSuffix(first, ":"):
			maps, err := parseMaps(line)
			if err != nil {
				return nil, err
			}
			all = append(all, Backing{Mapping: maps[0]})
		case first == "KernelPageSize:":
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			if err != nil || kb <= 0 || len(all) == 0 {
				return nil, fmt.Errorf("%.100q must be a number of kB after a mapping", strings.TrimSpace(line))
			}
			all[len(all)-1].PageSize = kb * 1024
		}
	}
	return all, nil
}

// Rollup is the kernel's account of a process's memory, in bytes, from /proc/PID/smaps_rollup (proc_pid_smaps(5)).
type Rollup struct {
	RSS, PSS                    int64 // sum of all mapped pages, and of each page's share for one of its mappings
	USS                         int64 // pages that are mapped once: Private_Clean and Private_Dirty
	PSSAnon, PSSFile, PSSShared int64 // PSS by kind of page
	Referenced                  int64 // part of RSS that the processor has accessed since it was mapped, or since the accessed bits were cleared
	Swap                        int64
}

// RollupOf asks the kernel for the memory of a process. If it has ended, or has no memory of its own, the error is fs.ErrNotExist.
func RollupOf(pid int) (Rollup, error) {
	file := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	text, err := Host.Read(file)
	if errors.Is(err, unix.ESRCH) || err == nil && text == "" {
		err = fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return Rollup{}, err
	}
	r, err := parseRollup(text)
	if err != nil {
		return Rollup{}, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func parseRollup(text string) (r Rollup, err error) {
	var clean, dirty int64
	for _, f := range []struct {
		name string
		to   *int64
	}{{"Rss", &r.RSS}, {"Pss", &r.PSS}, {"Pss_Anon", &r.PSSAnon}, {"Pss_File", &r.PSSFile}, {"Pss_Shmem", &r.PSSShared},
		{"Private_Clean", &clean}, {"Private_Dirty", &dirty}, {"Referenced", &r.Referenced}, {"Swap", &r.Swap}} {
		kb, err := strconv.ParseInt(strings.TrimSuffix(Field(text, f.name), " kB"), 10, 64)
		if err != nil || kb < 0 || kb >= math.MaxInt64/2048 {
			return Rollup{}, fmt.Errorf("must have a line %s with a number of kB", f.name)
		}
		*f.to = kb * 1024
	}
	r.USS = clean + dirty
	return r, nil
}
