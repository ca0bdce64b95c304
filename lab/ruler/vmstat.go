package ruler

import (
	"io/fs"
	"strconv"
	"strings"
)

// OOMKills is the number of processes that the kernel has killed for memory since its start, including those that reached a
// cgroup's limit; 0 where it does not count. proc is its file system.
func OOMKills(proc fs.FS) int64 {
	stat, err := fs.ReadFile(proc, "vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(stat)) {
		if rest, ok := strings.CutPrefix(line, "oom_kill "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}
