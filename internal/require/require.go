// Package require skips a test that needs something this host lacks, and says what. With TARE_REQUIRE=all in the environment such
// a test fails instead, so that nothing is left out.
package require

import (
	"os"
	"os/exec"
	"testing"
)

// That skips the test unless ok, or fails it with TARE_REQUIRE=all. what is the need, with any reason.
func That(t testing.TB, ok bool, what string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("TARE_REQUIRE") == "all" {
		t.Fatalf("needs %s, and TARE_REQUIRE=all", what)
	}
	t.Skipf("needs %s", what)
}

// Root requires that the test runs as root.
func Root(t testing.TB) {
	t.Helper()
	That(t, os.Geteuid() == 0, "root")
}

// Program requires programs in PATH.
func Program(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := exec.LookPath(name)
		That(t, err == nil, name)
	}
}
