//go:build linux

package require

import (
	"os"
	"strings"
	"testing"
	"time"
)

// NothingMerged requires a host on which KSM merges no pages now. An earlier user of KSM may have left merged pages, which stay merged as long as
// their processes live and would distort what a test measures. NothingMerged splits such pages first.
func NothingMerged(t testing.TB) {
	t.Helper()
	Root(t)
	const dir = "/sys/kernel/mm/ksm/"
	says := func(file string) string {
		text, err := os.ReadFile(dir + file)
		That(t, err == nil, "a kernel with KSM (CONFIG_KSM)")
		return strings.TrimSpace(string(text))
	}
	set := func(value string) {
		if err := os.WriteFile(dir+"run", []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	run := says("run")
	That(t, run != "1", "a host on which KSM is not active (/sys/kernel/mm/ksm/run says 1)")
	if says("pages_shared") == "0" {
		return
	}
	t.Logf("splitting %s merged pages that an earlier user left", says("pages_shared"))
	set("2")
	defer set(run)
	for late := time.Now().Add(time.Minute); says("pages_shared") != "0"; time.Sleep(10 * time.Millisecond) { // the kernel tells nobody
		if time.Now().After(late) {
			t.Fatalf("%s pages are still merged, a minute after the kernel was told to split them", says("pages_shared"))
		}
	}
}
