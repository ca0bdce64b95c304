//go:build linux

package require

import (
	"os"
	"strings"
	"testing"
	"time"
)

// NothingMerged requires a kernel that merges no pages now (KSM). What an earlier user of the kernel's merging left merged when it switched it off is taken apart
// first: it stays merged for as long as its processes live, and no test can weigh beside it.
func NothingMerged(t testing.TB) {
	t.Helper()
	Root(t)
	const dir = "/sys/kernel/mm/ksm/"
	says := func(file string) string {
		text, err := os.ReadFile(dir + file)
		That(t, err == nil, "a kernel that can merge pages (CONFIG_KSM)")
		return strings.TrimSpace(string(text))
	}
	set := func(value string) {
		if err := os.WriteFile(dir+"run", []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	run := says("run")
	That(t, run != "1", "a host that merges no pages (/sys/kernel/mm/ksm/run says 1)")
	if says("pages_shared") == "0" {
		return
	}
	t.Logf("%s merged pages, which somebody left, are taken apart", says("pages_shared"))
	set("2")
	defer set(run)
	for late := time.Now().Add(time.Minute); says("pages_shared") != "0"; time.Sleep(10 * time.Millisecond) { // the kernel tells nobody
		if time.Now().After(late) {
			t.Fatalf("%s pages are merged still, a minute after the kernel was told to take them apart", says("pages_shared"))
		}
	}
}
