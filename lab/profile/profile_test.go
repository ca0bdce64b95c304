//go:build linux

package profile

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
)

// The profile contains an existing process, and one that comes and ends during the profile, each as the program that it is.
func TestSeesWhatRuns(t *testing.T) {
	require.Root(t)
	s, err := Begin(499)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
	}
	all, err := s.Stop()
	if err != nil {
		t.Fatal(err)
	}
	own, shell, kernel := 0, 0, 0
	for _, st := range all.Stacks {
		switch {
		case st.PID == os.Getpid():
			own++
		case st.PID == cmd.Process.Pid && (strings.HasSuffix(st.Process.Exe, "sh")):
			if shell++; st.Process.Parent == nil || st.Process.Parent.PID != os.Getpid() && st.Process.Parent.PID != st.PID {
				t.Errorf("the shell's parent is %+v", st.Process.Parent)
			}
		}
		if len(st.Kernel) > 0 {
			kernel++
		}
	}
	if own == 0 || shell == 0 || kernel == 0 {
		t.Errorf("%d samples of the test, %d of the shell, %d of the kernel, of %d; %d lost", own, shell, kernel, len(all.Stacks), all.Lost)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{9, 0, 0, 0, 2, 0, 48, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5})
	f.Add([]byte{10, 0, 0, 0, 0, 0, 90, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		events, _, err := parse(b)
		if err == nil && len(events) > len(b)/headSize {
			t.Errorf("%d events of %d bytes", len(events), len(b))
		}
	})
}
