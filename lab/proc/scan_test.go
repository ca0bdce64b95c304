//go:build linux

package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Other work that starts and ends processes all the time, as a compiler does, keeps nobody from telling that a folder has none.
func TestEndAllBesideBusyStrangers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can read the roots of other users' processes")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var strangers sync.WaitGroup
	stop := make(chan struct{})
	defer func() { close(stop); strangers.Wait() }()
	for range 4 {
		strangers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := exec.Command("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do (:); done").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		if err := EndAll(t.Context(), dir, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// EndAll ends a process that has the variable in its environment, whatever its program. It does not end a process of another guest whose folder's name
// begins with the same text.
func TestEndAllByVariable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can read the roots of other users' processes")
	}
	dir := t.TempDir()
	const name = "TARE_TEST_OF_A_FOLDER="
	started := func(value string) (ended chan error) {
		cmd := exec.Command("/bin/sleep", "600")
		cmd.Env = []string{name + value}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended = make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() { cmd.Process.Kill() })
		return ended
	}
	ours, another := started(dir), started(dir+"-2")
	if err := EndAll(t.Context(), dir, nil, name+dir); err != nil {
		t.Fatal(err)
	}
	if err := <-ours; err == nil {
		t.Error("it ended by itself")
	}
	select {
	case err := <-another:
		t.Errorf("another process has ended: %v", err)
	default:
	}
}
