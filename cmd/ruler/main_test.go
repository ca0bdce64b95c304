//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/programs"
	"tare/lab/programs/programstest"
	"tare/lab/ruler"
)

// What writes a container's state to a hook succeeds, whatever the hook reads of it, and a hook that reads has every byte, its own name, arguments and environment.
func TestHooksNeedNotRead(t *testing.T) {
	program := programstest.Build(t, programs.Ruler)
	state := strings.Repeat("s", ruler.MaxHookState) // far more than a pipe holds
	for name, c := range map[string]struct {
		state, path string
		args        []string
		status      int
		says        string
	}{
		"reads nothing":   {state, "/bin/true", []string{"true"}, 0, ""},
		"fails":           {state, "/bin/sh", []string{"sh", "-c", "exit 3"}, 3, ""},
		"reads all":       {"{}\n" + state[4:], "/bin/sh", []string{"named", "-c", "wc -c; echo $0 $1 $COLOUR", "zero", "one"}, 0, fmt.Sprintln(ruler.MaxHookState-1) + "zero one blue\n"},
		"has no name":     {"{}", "/bin/pwd", nil, 0, "/\n"},
		"does not exist":  {"{}", "/no/such", []string{"such"}, 1, "ruler: /no/such: no such file or directory\n"},
		"state too large": {state + "s", "/bin/true", []string{"true"}, 1, fmt.Sprintf("ruler: the container's state has more than %d bytes\n", ruler.MaxHookState)},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program)
			cmd.Args = ruler.HookArgs(c.path, c.args)
			cmd.Dir, cmd.Env = "/", []string{"COLOUR=blue"}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(in, c.state) // as a runtime does: an error fails the container
			if err := errors.Join(err, in.Close()); err != nil {
				t.Errorf("writing the state: %v", err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != c.status || said.String() != c.says {
				t.Errorf("ended with %v and said %q, want status %d and %q", err, said.String(), c.status, c.says)
			}
		})
	}
}

// A guest's cost of its ruler is bounded, and is not included in the measurements of the work.
func TestTheRulerIsSmall(t *testing.T) {
	require.Root(t) // for the scratch folder at its place in a root of its own
	cc, err := exec.LookPath("cc")
	require.That(t, err == nil, "a C compiler (cc)")
	program := programstest.Build(t, programs.Ruler)
	if st, err := os.Stat(program); err != nil || st.Size() > 4<<20 {
		t.Errorf("the program has %d bytes (%v), want at most 4 MiB", st.Size(), err)
	}
	root := t.TempDir()
	for _, dir := range []string{"proc", "dev", ruler.ScratchDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(t.TempDir(), "true.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(cc, "-O2", "-static", "-o", filepath.Join(root, "true"), source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, said)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(program, "--connect", socket, "--root", root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if err := l.(*net.UnixListener).SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		cmd.Process.Kill()
		t.Fatal(err)
	}
	c, err := ruler.Connect(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resident := func(when string) {
		if kb := status(t, cmd.Process.Pid, "VmRSS"); kb > 6<<10 {
			t.Errorf("%s the ruler has %d KiB resident, want at most 6 MiB", when, kb)
		}
	}
	resident("when it waits for its first order")
	for range 20 {
		r, _, err := c.Run(t.Context(), ruler.Order{Argv: []string{"/true"}, Timeout: 20 * time.Second, OutputLimit: 64 << 10})
		if err != nil || r.Error != "" || r.Exit != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.MaxRSS <= 0 || r.MaxRSS >= 2<<20 {
			t.Errorf("a static true has a peak of %d bytes, want less than 2 MiB: the ruler's own is in it", r.MaxRSS)
		}
	}
	resident("after 20 trials")
}

// status gives a field of /proc/PID/status that is in KiB.
func status(t *testing.T, pid int, field string) (kb int) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), field+":"); ok {
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Fatalf("process %d has no %s", pid, field)
	return 0
}

// What the ruler is made of is bounded too: the standard library without its network, the system calls, the protocol, and the
// vocabulary.
func TestTheRulerIsMadeOfLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"tare/cmd/ruler", "tare/lab/ruler", "tare/lab/ruler/empty", "tare/lab/ruler/frames", "tare/lab/ruler/remains", "tare/notebook", "tare/notebook/durable", "golang.org/x/sys/unix"}
	for _, path := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(path, "/")
		standard := !strings.Contains(first, ".") && first != "tare"
		if path == "net" || !standard && !slices.Contains(allowed, path) {
			t.Errorf("the ruler links %s", path)
		}
	}
}
