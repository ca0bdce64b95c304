//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
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
)

func FuzzParseMounts(f *testing.F) {
	f.Add(mountsHybrid)
	f.Add(mountsInDocker)
	f.Add(`1 2 0:1 / /a\040b\134 rw shared:1 - tmpfs  rw`)
	f.Add(`1 2 0:1 / /a\99 rw - tmpfs`)
	f.Fuzz(func(t *testing.T, s string) {
		mounts, err := ParseMounts(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("%v names no line", err)
			}
			return
		}
		if lines := strings.Count(s, "\n") + 1; len(mounts) > lines {
			t.Errorf("%d mounts on %d lines", len(mounts), lines)
		}
	})
}

func TestMountinfoEscapes(t *testing.T) {
	mounts, err := ParseMounts(`1 2 0:1 /r\011 /a\040b\134c rw shared:1 - tmpfs tmpfs rw,size=1k`)
	if err != nil || len(mounts) != 1 || mounts[0].Root != "/r\t" || mounts[0].Point != `/a b\c` || mounts[0].Type != "tmpfs" || len(mounts[0].Options) != 2 {
		t.Errorf("ParseMounts = %q, %v", mounts, err)
	}
}

func FuzzParseStartTime(f *testing.F) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20")
	f.Add("7 (")
	f.Add(")")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseStartTime(s)
		if err == nil && !bytes.Contains([]byte(s), fmt.Append(nil, n)) && !strings.Contains(s, "0") && !strings.Contains(s, "+") {
			t.Errorf("%d is not in %q", n, s)
		}
	})
}

func TestStartTimeOfAStrangeName(t *testing.T) {
	n, err := parseStartTime("7 (a) S 1 (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20")
	if err != nil || n != 777 {
		t.Errorf("parseStartTime = %d, %v, want 777", n, err)
	}
}
