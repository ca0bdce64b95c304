package cgroup

import (
	"testing"
	"time"
)

func TestThrottled(t *testing.T) {
	v2 := process(mountsV2, "0::/a/b", "0-15")
	v2.Put("/sys/fs/cgroup/a/b/cpu.max", "max 100000")
	v2.Put("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 7\nnr_throttled 3\nthrottled_usec 999\n") // without a quota it says nothing
	v2.Put("/sys/fs/cgroup/a/cpu.max", "100000 100000")
	v2.Put("/sys/fs/cgroup/a/cpu.stat", "usage_usec 7\nnr_periods 9\nnr_throttled 3\nthrottled_usec 250000\n")
	if d, err := of(v2.Tree.Tree).throttled("7"); err != nil || d != 250*time.Millisecond {
		t.Errorf("version 2: %v, %v; want 250 ms", d, err)
	}
	free := process(mountsV2, "0::/a/b", "0-15")
	if d, err := of(free.Tree.Tree).throttled("7"); err != nil || d != 0 {
		t.Errorf("without a quota: %v, %v", d, err)
	}
	v2.Put("/sys/fs/cgroup/a/cpu.stat", "throttled_usec -1\n")
	if d, err := of(v2.Tree.Tree).throttled("7"); err == nil {
		t.Errorf("a time below nothing: %v", d)
	}
}

func FuzzParseThrottled(f *testing.F) {
	for _, s := range []string{"throttled_usec 5\n", "nr_periods 1\nnr_throttled 1\nthrottled_time 12345\n", "throttled_usec 9223372036854775807", "throttled_time -1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseThrottled(s); d < 0 || err != nil && d != 0 {
			t.Errorf("parseThrottled(%q) = %v, %v", s, d, err)
		}
	})
}
