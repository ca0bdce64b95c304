//go:build linux

package proc

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestMaps(t *testing.T) {
	got, err := parseMaps("00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b\\012c (deleted)\n" +
		"7ffd-7fff rw-p 00000000 00:00 0 \nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]")
	want := []Mapping{
		{0x400000, 0x452000, "r-xp", 0x1000, "08:02", 173521, "/usr/bin/a b\nc (deleted)"},
		{0x7ffd, 0x7fff, "rw-p", 0, "00:00", 0, ""},
		{0xffffffffff600000, 0xffffffffff601000, "--xp", 0, "00:00", 0, "[vsyscall]"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parseMaps = %+v, %v", got, err)
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add("00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon")
	f.Add("2-1 rwxp 0 0 0")
	f.Add("-\n")
	f.Fuzz(func(t *testing.T, s string) {
		all, err := parseMaps(s)
		if err != nil {
			return
		}
		if len(all) > strings.Count(s, "\n")+1 {
			t.Errorf("%d mappings", len(all))
		}
		for _, m := range all {
			if m.End < m.Start {
				t.Errorf("%+v ends before it starts", m)
			}
		}
	})
}

const smaps = "7f0000000000-7f0040000000 rw-p 00000000 00:00 0 \nSize:            1048576 kB\nKernelPageSize:        4 kB\nAnonHugePages:   1048576 kB\nVmFlags: rd wr hg\n" +
	"7f1000000000-7f1020000000 rw-s 00000000 00:0f 5 /memfd:a b: (deleted)\nSize:             524288 kB\nKernelPageSize:     2048 kB\nTHPeligible:    0\nVmFlags: rd wr ht\n"

func TestBackings(t *testing.T) {
	got, err := parseBackings(smaps)
	want := []Backing{
		{Mapping{0x7f0000000000, 0x7f0040000000, "rw-p", 0, "00:00", 0, ""}, 4096},
		{Mapping{0x7f1000000000, 0x7f1020000000, "rw-s", 0, "00:0f", 5, "/memfd:a b: (deleted)"}, 2 << 20},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, s := range []string{"KernelPageSize: 4 kB\n", "1-2 rw-p 0 0:0 0\nKernelPageSize: much kB\n", "no mapping\n"} {
		if got, err := parseBackings(s); err == nil {
			t.Errorf("%q: %+v, want an error", s, got)
		}
	}
	all, err := Backings(os.Getpid())
	if err != nil || len(all) == 0 || all[0].PageSize != int64(os.Getpagesize()) {
		t.Errorf("of this process: %d mappings, %v", len(all), err)
	}
}

func FuzzParseBackings(f *testing.F) {
	f.Add(smaps)
	f.Add("-:\nKernelPageSize: 9223372036854775807 kB")
	f.Fuzz(func(t *testing.T, s string) {
		all, err := parseBackings(s)
		if err != nil {
			return
		}
		for _, b := range all {
			if b.End < b.Start || b.PageSize < 0 || b.PageSize%1024 != 0 {
				t.Errorf("%+v of %q", b, s)
			}
		}
	})
}

func FuzzParseRollup(f *testing.F) {
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("Rss: 9223372036854775807 kB\nPss: 1 kB")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseRollup(s)
		if err == nil && (r.RSS < 0 || r.USS < 0 || r.RSS%1024 != 0) {
			t.Errorf("%+v of %q", r, s)
		}
	})
}
