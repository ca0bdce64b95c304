package ruler

import (
	"io/fs"
	"strconv"
	"strings"
)

// OOMKills is how many processes the kernel has killed for memory since it was started, those that reached a cgroup's limit among them;
// 0 where it does not say. proc is its file system.
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
