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
