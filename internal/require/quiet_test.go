//go:build linux

package require

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRecorder(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Errorf("%d is not %d", 1, 2)
		r.Fatal("the end")
		r.Error("after the end")
	}()
	<-done
	if want := []string{"1 is not 2", "the end"}; !r.Failed() || !slices.Equal(r.said, want) || t.Failed() {
		t.Errorf("failed %v, said %q; want %q, and that the test itself goes on", r.Failed(), r.said, want)
	}
	if share := stolen(t, func() {}); share < 0 || share > 1 {
		t.Errorf("a share of %v was stolen", share)
	}
	n := 0
	Quiet(t, func(testing.TB) { n++ })
	if n != 1 {
		t.Errorf("a check that does not fail was made %d times", n)
	}
}

// A check that fails on a busy host is made twice, and its test is skipped by name.
func TestQuietSkips(t *testing.T) {
	defer spin()()
	said, skips, err := runChild(t)
	if err != nil || !strings.Contains(said, "check 2") || !strings.HasPrefix(skips, "TestChild: needs a quiet host") {
		t.Errorf("%v, said %q, on the list %q; want two checks and a skip", err, said, skips)
	}
}

// On a quiet host it fails at once.
func TestQuietFails(t *testing.T) {
	said, skips, err := runChild(t)
	if strings.Contains(said, "check 2") {
		return // the host is busy itself
	}
	if err == nil || !strings.Contains(said, "it took too long") || skips != "" {
		t.Errorf("%v, said %q, on the list %q; want a failure", err, said, skips)
	}
}

// runChild runs TestChild, whose check fails, and gives what it said and the list of skips.
func runChild(t *testing.T) (said, skips string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "skips")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), "TARE_REQUIRE=all", SkipsFile+"="+file, child+"=yes")
	out, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(out), string(text), err
}

// child is the variable with which TestChild does something.
const child = "TARE_QUIET_CHILD"

func TestChild(t *testing.T) {
	if os.Getenv(child) == "" {
		return // runChild runs it
	}
	n := 0
	Quiet(t, func(t testing.TB) {
		n++
		fmt.Printf("check %d\n", n)
		t.Error("it took too long")
	})
}

// spin keeps all CPUs busy until it is stopped.
func spin() (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() { over.Store(true); all.Wait() }
}
