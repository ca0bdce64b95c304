//go:build linux

package idle

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// process starts a shell command on the CPU, and ends it with the test.
func process(t *testing.T, command string) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if err := proc.Bind(cmd.Process.Pid, cpu(t)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func cpu(t *testing.T) []int {
	t.Helper()
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return online[len(online)-1:]
}

// The ratio is that of the turns next to the processes to those without. In each pair one turn is without, and at the end all go on.
func TestCostComparesTurns(t *testing.T) {
	stopped, stops, first := false, 0, 0
	var turns int
	q, err := cost(t.Context(), func(sig unix.Signal) error {
		if stopped = sig == unix.SIGSTOP; stopped {
			stops++
			first += 1 - turns%2
		}
		return nil
	}, func() time.Duration {
		turns++
		if stopped {
			return time.Second
		}
		return time.Second + time.Second/4
	})
	if err != nil || q.Value != 1.25 || q.N != pairs || stops != pairs || turns != 2*pairs || stopped {
		t.Errorf("%+v, %v after %d turns, %d of them without; stopped at the end: %v", q, err, turns, stops, stopped)
	}
	if first < pairs/8 || first > pairs-pairs/8 { // random: beyond that once in a million runs
		t.Errorf("the turn without came first %d times of %d", first, pairs)
	}
}

// Stopped processes go on afterwards, and a process that has ended is not an error.
func TestEveryProcessGoesOn(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	pid := process(t, "while :; do :; done")
	if _, err := Cost(t.Context(), cpu(t), []int{pid, ended.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		state, err := stateOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains([]byte("RS"), state) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the process is %c", state)
		}
	}
}

// stateOf is the letter by which the kernel names a process's state.
func stateOf(pid int) (byte, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, found := bytes.Cut(b, []byte(") "))
	if !found || len(after) == 0 {
		return 0, fmt.Errorf("%q has no state", b)
	}
	return after[0], nil
}
