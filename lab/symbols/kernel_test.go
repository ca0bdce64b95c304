//go:build linux

package symbols

import (
	"strings"
	"testing"
)

const kallsyms = `ffffffff81000000 T _stext
ffffffff81001000 t mem_cgroup_charge
ffffffff81002000 D some_data
ffffffff81003000 T __schedule
ffffffff81004000 t do_sys_open	[module]
`

func TestSymbols(t *testing.T) {
	s, err := Parse(strings.NewReader(kallsyms))
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[uint64]string{
		0xffffffff81000000: "_stext", 0xffffffff81000fff: "_stext", 0xffffffff81002800: "mem_cgroup_charge",
		0xffffffff81003001: "__schedule", 0xffffffffffffffff: "do_sys_open", 0x1000: "0x1000",
	} {
		if got := s.Name(ip); got != want {
			t.Errorf("%#x is in %s, want %s", ip, got, want)
		}
	}
	for _, hidden := range []string{"0000000000000000 T _stext\n", "xyz T _stext\n"} {
		if _, err := Parse(strings.NewReader(hidden)); err == nil {
			t.Errorf("%q was taken", hidden)
		}
	}
}

func FuzzSymbols(f *testing.F) {
	f.Add(kallsyms, uint64(0xffffffff81003001))
	f.Fuzz(func(t *testing.T, text string, ip uint64) {
		if s, err := Parse(strings.NewReader(text)); err == nil && s.Name(ip) == "" && !strings.Contains(text, " T ") {
			t.Errorf("%#x is in a function without a name", ip)
		}
	})
}
