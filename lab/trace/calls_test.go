//go:build linux

package trace

import (
	"maps"
	"os/exec"
	"slices"
	"testing"

	"tare/notebook"
)

// Each kind of calls is counted: as many calls as the load makes, and the bytes that they move.
func TestCallsAreCountedByKind(t *testing.T) {
	k := openKit(t, notebook.TracerCalls, notebook.TracerThreads)
	const few = 40 // that any program makes to begin and to end
	none, _ := watched(t, k, 1, loadCommand(t, "sleep", "0", "0"))
	counted := slices.DeleteFunc(slices.Collect(maps.Keys(none.Figures)), func(name string) bool {
		return !slices.ContainsFunc(callFigures[:], func(f struct{ calls, bytes string }) bool { return f.calls == name })
	})
	if len(counted) != callKinds {
		t.Errorf("counted %q, want each of %d kinds", counted, callKinds)
	}
	file := t.TempDir() + "/file"
	for _, c := range []struct {
		args []string
		of   string
		want float64
	}{
		{[]string{"sleep", "0", "1000"}, "sleep_calls", 1000},
		{[]string{"pingpong", "1000"}, "pipe_calls", 4000},
		{[]string{"pingpong", "1000"}, "pipe_bytes", 4000},
		{[]string{"datagrams", "1000", "100"}, "socket_calls", 2000},
		{[]string{"datagrams", "1000", "100"}, "socket_bytes", 200000},
		{[]string{"write", file, "1000"}, "file_calls", 1000},
		{[]string{"write", file, "1000"}, "file_bytes", 4096000},
		{[]string{"futex", "0", "1000"}, "futex_calls", 1000},
	} {
		p, _ := watched(t, k, 1, loadCommand(t, c.args...))
		if got := p.Figures[c.of] - none.Figures[c.of]; got < c.want || got > 1.01*c.want+few {
			t.Errorf("%q: %g more %s than a load that does nothing, want %g", c.args, got, c.of, c.want)
		}
	}
	// Writes to a file that is opened so are flushes, too.
	dd := needTool(t, "dd", "coreutils")
	for flag, want := range map[string]float64{"oflag=dsync": 200, "oflag=append": 0} {
		p, _ := watched(t, k, 1, exec.CommandContext(t.Context(), dd, "if=/dev/zero", "of="+file, "bs=4096", "count=200", "conv=notrunc", flag))
		if got := p.Figures["sync_calls"]; got != want || p.Figures["file_calls"] < 200 {
			t.Errorf("%s: %g sync_calls, want %g; %g file_calls", flag, got, want, p.Figures["file_calls"])
		}
	}
	shell := needTool(t, "sh", "dash")
	// A shell makes a process that shares its memory for a program, and one with a copy for a subshell.
	p, _ := watched(t, k, 1, exec.CommandContext(t.Context(), shell, "-c", `i=0; while [ $i -lt 200 ]; do /bin/true; (i=9); i=$((i + 1)); done`))
	// It may look more than once whether a process has ended.
	for of, most := range map[string]float64{"exec_calls": 202, "process_calls": 1202, "fork_calls": 402, "open_calls": 10000, "memory_calls": 10000} {
		if got := p.Figures[of]; got < 200 || got > most {
			t.Errorf("200 programs: %g %s, want 200 to %g", got, of, most)
		}
	}
}
