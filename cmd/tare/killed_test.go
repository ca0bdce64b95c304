//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If the program is killed while a guest lives, `tare clean` finds everything that it leaves; if interrupted, it leaves nothing.
// This tests the engines that TestWithDockerKilledAtAnyMoment does not use.
func TestKilledWithAGuestOfEveryEngine(t *testing.T) {
	for _, c := range []struct{ platform, program, process string }{
		{"cn:podman", "podman", "sleep"}, {"cn:containerd", "containerd", "sleep"}, {"cn:lxc", "lxc-start", "sleep"}, {"vm", "qemu-system-x86_64", "qemu-system"},
	} {
		t.Run(c.program, func(t *testing.T) {
			h := newHost(t)
			need(t, has(c.program), c.program)
			for i, signal := range []os.Signal{syscall.SIGKILL, os.Interrupt} {
				mark := fmt.Sprintf("%d.%d", 2000+i, os.Getpid()) // an argument that no other process has
				cut := func() bool { return living(t, c.process, mark) }
				if strings.HasPrefix(c.program, c.process) { // a guest whose processes the host does not see
					cut = func() bool { return living(t, c.process, h.state) }
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				cmd := h.command(ctx, "bench", "--image", h.image, "--platforms", c.platform, "--instances", "1/512MB", "--rounds", "1", "--out", fmt.Sprint("R", i), "--", "sleep", mark)
				var said bytes.Buffer
				cmd.Stdout, cmd.Stderr = &said, &said
				cmd.WaitDelay = 10 * time.Second
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for !cut() { // the program gives no notice
					if ctx.Err() != nil {
						t.Fatalf("no guest within two minutes:\n%s", said.String())
					}
					time.Sleep(10 * time.Millisecond)
				}
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				cmd.Wait() // it was ended
				if signal == syscall.SIGKILL {
					if entries, err := os.ReadDir(filepath.Join(h.state, "journal")); err != nil || len(entries) == 0 {
						t.Errorf("after a kill the journal's folder has %v, %v; was there a guest?", entries, err)
					}
					h.must("clean")
				} else if status := cmd.ProcessState.ExitCode(); status != 130 {
					t.Errorf("exit status %d, want 130:\n%s", status, said.String())
				}
				cancel()
				h.nothingLeft()
				if living(t, "sleep", mark) {
					t.Errorf("after %v the guest's command lives on", signal)
				}
			}
		})
	}
}

// living reports whether a process of a program with this text in its command line lives.
func living(t *testing.T, program, text string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, _ := os.ReadFile(f) // it may have ended
		first, rest, _ := strings.Cut(string(line), "\x00")
		if strings.HasPrefix(filepath.Base(first), program) && strings.Contains(rest, text) {
			return true
		}
	}
	return false
}
