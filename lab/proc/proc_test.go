//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moby/sys/mountinfo"
)

// mountsOf reads a mount table.
func mountsOf(table string) ([]*mountinfo.Info, error) {
	return Tree{fstest.MapFS{"proc/self/mountinfo": &fstest.MapFile{Data: []byte(table)}}}.Mounts()
}

func FuzzParseMounts(f *testing.F) {
	f.Add("31 23 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:5 - tmpfs tmpfs ro,mode=755\n34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 master:3 - cgroup cgroup rw,cpu,cpuacct")
	f.Add(`1 2 0:1 / /a\040b\134 rw shared:1 - tmpfs  rw`)
	f.Add(`1 2 0:1 / /a\99 rw - tmpfs`)
	f.Fuzz(func(t *testing.T, s string) {
		mounts, err := mountsOf(s)
		if err != nil {
			return
		}
		if lines := strings.Count(s, "\n") + 1; len(mounts) > lines {
			t.Errorf("%d mounts on %d lines", len(mounts), lines)
		}
	})
}

func TestMountinfoEscapes(t *testing.T) {
	mounts, err := mountsOf(`1 2 0:1 /r\011 /a\040b\134c rw shared:1 - tmpfs  rw,size=1k`) // from no source
	if err != nil || len(mounts) != 1 || mounts[0].Root != "/r\t" || mounts[0].Mountpoint != `/a b\c` || mounts[0].FSType != "tmpfs" || mounts[0].VFSOptions != "rw,size=1k" {
		t.Errorf("Mounts = %+v, %v", mounts, err)
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
		if of, err := statFields(s, 10, 44); err == nil && max(of[0], of[1]) > math.MaxInt64 {
			t.Errorf("%d of %q", of, s)
		}
		of, err := statFields(s, 22)
		if err == nil && !bytes.Contains([]byte(s), fmt.Append(nil, of[0])) && !strings.Contains(s, "0") && !strings.Contains(s, "+") {
			t.Errorf("%d is not in %q", of[0], s)
		}
	})
}

func TestStartTimeOfAStrangeName(t *testing.T) {
	of, err := statFields("7 (a) S 1 (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20", 22)
	if err != nil || len(of) != 1 || of[0] != 777 {
		t.Errorf("field 22 is %d, %v, want 777", of, err)
	}
}

func TestTailIsBounded(t *testing.T) {
	var b Tail
	for range 1000 {
		b.Write([]byte(strings.Repeat("x", 5000) + "end"))
	}
	if got := b.String(); len(got) != tailSize || !strings.HasSuffix(got, "xend") {
		t.Errorf("kept %d bytes that end in %q", len(got), got[len(got)-8:])
	}
}
