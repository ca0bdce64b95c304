//go:build linux

package engine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
)

// It is not an error to end a process that has just ended but is not yet known to have ended, because somebody has its output open.
func TestTheEndOfAProcessThatJustEnded(t *testing.T) {
	p, err := Start(exec.Command("sh", "-c", "sleep 0.4 & exit 0"), nil) // what is left behind has its output for a while
	if err != nil {
		t.Fatal(err)
	}
	for unix.Kill(p.PID(), 0) == nil { // until it was waited for
		time.Sleep(time.Millisecond)
	}
	select {
	case <-p.Done():
		t.Fatal("its output was closed with it")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.End(ctx, time.Minute); err != nil {
		t.Error(err)
	}
}

// A state folder on a file system that starts no programs is named as the cause.
func TestAProgramThatMayNotBeStarted(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, "size=1m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(exec.Command(program), nil); err == nil || !strings.Contains(err.Error(), "noexec") || !strings.Contains(err.Error(), "TARE_STATE") {
		t.Errorf("on a file system without programs: %v", err)
	}
	if _, err := Start(exec.Command(dir+"/nothing"), nil); err == nil || strings.Contains(err.Error(), "noexec") {
		t.Errorf("a program that does not exist: %v", err)
	}
}
