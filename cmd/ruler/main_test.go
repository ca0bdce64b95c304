//go:build linux

package main

import (
	"bufio"
	"fmt"
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

// What a guest pays for its ruler is bounded, and none of it is in what is said of the work.
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
	allowed := []string{"tare/cmd/ruler", "tare/lab/ruler", "tare/lab/ruler/empty", "tare/lab/ruler/frames", "tare/notebook", "tare/notebook/durable", "golang.org/x/sys/unix"}
	for _, path := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(path, "/")
		standard := !strings.Contains(first, ".") && first != "tare"
		if path == "net" || !standard && !slices.Contains(allowed, path) {
			t.Errorf("the ruler links %s", path)
		}
	}
}
