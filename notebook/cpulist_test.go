package notebook

import (
	"slices"
	"testing"
)

func TestCPUList(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "\n": "", "0": "0", "0-3,8\n": "0-3,8", "8,0-3": "0-3,8", "1,1,1-2": "1-2", "0,2,4-5,7": "0,2,4-5,7", "0-1": "0-1",
	} {
		got, err := ParseCPUList(in)
		if err != nil || FormatCPUList(got) != want {
			t.Errorf("ParseCPUList(%q) = %v, %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{"x", "-1", "1-", "3-1", "0-65536", "1,,2", "1 2", "0x1", "0-99999999999999999999", "0-1-2", "0-10:1/2"} {
		if got, err := ParseCPUList(bad); err == nil {
			t.Errorf("ParseCPUList(%q) = %v", bad, got)
		}
	}
}

func FuzzParseCPUList(f *testing.F) {
	for _, s := range []string{"", "0-3,8", "0", "0-65535,0-65535,0-65535", "1,,2", "5-1", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := ParseCPUList(s)
		if err != nil {
			return
		}
		again, err := ParseCPUList(FormatCPUList(cpus))
		if err != nil || !slices.Equal(again, cpus) {
			t.Errorf("%q: %v, and written and read again %v, %v", s, cpus, again, err)
		}
		for i, c := range cpus {
			if c < 0 || c >= maxCPU || i > 0 && c <= cpus[i-1] {
				t.Errorf("%q: %v", s, cpus)
			}
		}
	})
}
