//go:build linux

package engine

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that has ended, while it is not known yet since somebody has its output open still, has ended: that is no error.
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
