//go:build linux

package proc

import (
	"fmt"
	"strconv"
	"strings"
)

// Mount is one line of a mountinfo file.
type Mount struct {
	Root    string   // the folder of the file system that is mounted
	Point   string   // where
	Type    string   // of the file system
	Options []string // of the file system: a version 1 cgroup hierarchy names its controllers here
	Device  string   // MAJOR:MINOR of the file system, the same wherever it is mounted
}

// ParseMounts reads /proc/PID/mountinfo (proc_pid_mountinfo(5)).
func ParseMounts(s string) ([]Mount, error) {
	var mounts []Mount
	n := 0
	for line := range strings.Lines(s) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE SOURCE OPTIONS; the source may be empty.
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Split(before, " "), strings.Split(after, " ")
		if !ok || len(f) < 6 || len(g) < 2 {
			return nil, fmt.Errorf("line %d: %.100q is not a line of mountinfo", n, line)
		}
		mounts = append(mounts, Mount{unescape(f[3]), unescape(f[4]), g[0], strings.Split(g[len(g)-1], ","), f[2]})
	}
	return mounts, nil
}

// unescape takes back the kernel's \ooo for white space and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Mounts lists what is mounted in this process's mount namespace, in the order in which it was mounted.
func (t Tree) Mounts() ([]Mount, error) {
	const file = "/proc/self/mountinfo"
	text, err := t.Read(file)
	if err != nil {
		return nil, err
	}
	mounts, err := ParseMounts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return mounts, nil
}

// MountsBelow lists the mount points at and below dir, a path without symbolic links, in the order in which they were
// mounted; one that is mounted over several times is listed as often.
func MountsBelow(dir string) ([]string, error) {
	mounts, err := Host.Mounts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range mounts {
		if within(dir, m.Point) {
			found = append(found, m.Point)
		}
	}
	return found, nil
}
