//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

func TestCapabilitiesOfThisHost(t *testing.T) {
	answers := slices.Concat(Capabilities(t.Context()), Tools(t.Context()))
	var names []string
	for _, c := range answers {
		names = append(names, c.Name)
		switch c.Answer {
		case notebook.Supported, notebook.Inconclusive:
		case notebook.NotSupported:
			if c.Do == "" {
				t.Errorf("%s is not supported, and nothing is said about what to do", c.Name)
			}
		default:
			t.Errorf("%s has the answer %q", c.Name, c.Answer)
		}
		if c.Why == "" {
			t.Errorf("%s is %s without a reason", c.Name, c.Answer)
		}
		t.Logf("%s: %s: %s", c.Name, c.Answer, c.Why)
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != len(answers) || n < 11 {
		t.Errorf("%d names for %d answers", n, len(answers))
	}
}

// On a machine whose root can do all, the kernel's own capabilities must be found; nothing may be left of it.
func TestProbesFindAndLeaveNothing(t *testing.T) {
	require.Root(t)
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	answers := Capabilities(t.Context())
	require.That(t, supports(answers, "root"), "a root that may do what root may")
	for _, name := range []string{"cgroup cpu", "cgroup cpuset", "cgroup memory", "overlayfs", "network namespaces", "perf software events"} {
		if !supports(answers, name) {
			t.Errorf("%s was not found: %+v", name, answers)
		}
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(after), "tare-probe") {
		t.Errorf("mounts before\n%s\nafter\n%s", before, after)
	}
	left, err := filepath.Glob("/sys/fs/cgroup/*/" + probeGroup + fmt.Sprint(os.Getpid()) + "-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The process's first thread never ends, so it must never be the one that leaves its namespaces.
func TestApartIsNeverTheFirstThread(t *testing.T) {
	require.Root(t)
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		c := inNamespaces(unix.CLONE_NEWNET, func() notebook.Capability {
			ns, err := os.Readlink("/proc/thread-self/ns/net")
			if err != nil || ns == before {
				return inconclusive("%s, %v", ns, err)
			}
			return supported("")
		})
		if c.Answer != notebook.Supported {
			t.Fatalf("not in a namespace of its own: %+v", c)
		}
		if ns, err := os.Readlink("/proc/self/ns/net"); err != nil || ns != before {
			t.Fatalf("the process itself went from %s to %s, %v", before, ns, err)
		}
	}
}

// What a killed probe left goes with the next; a living one's stays.
func TestProbeGroupsOfTheDeadAreRemoved(t *testing.T) {
	require.Root(t)
	g, err := cgroup.Find("memory")
	if err != nil {
		t.Fatal(err)
	}
	require.That(t, g.Dir != "", "a mounted memory controller")
	own, err := proc.StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(g.Top, fmt.Sprintf("%s%d-%d-x", probeGroup, os.Getpid(), own-1))
	living := filepath.Join(g.Top, fmt.Sprintf("%s%d-%d-x", probeGroup, os.Getpid(), own))
	for _, dir := range []string{dead, living} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cgroup.Remove(context.Background(), dir); err != nil {
				t.Error(err)
			}
		})
	}
	if c := tryCgroup("memory"); c.Answer != notebook.Supported {
		t.Errorf("%+v", c)
	}
	if exists(dead) || !exists(living) {
		t.Errorf("there are: the dead one's %v, the living one's %v", exists(dead), exists(living))
	}
}

func TestAsk(t *testing.T) {
	var met sync.WaitGroup
	met.Add(2)
	try := func(context.Context) notebook.Capability {
		met.Done()
		met.Wait() // for the other: they are asked at the same time
		return supported("with another")
	}
	hung := make(chan struct{})
	defer close(hung)
	answers := ask(t.Context(), []probe{
		{name: "a", try: try},
		{name: "hangs", timeout: 10 * time.Millisecond, try: func(context.Context) notebook.Capability { <-hung; return supported("late") }},
		{name: "listens", timeout: 10 * time.Millisecond, try: func(ctx context.Context) notebook.Capability { <-ctx.Done(); return inconclusive("no hello") }},
		{name: "b", try: try},
	})
	var got string
	for _, a := range answers {
		got += fmt.Sprintf("%s: %s, %s%s\n", a.Name, a.Answer, a.Why, a.Do)
	}
	want := "a: supported, with another\nhangs: inconclusive, no answer within 10ms\nlistens: inconclusive, no hello\nb: supported, with another\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c := (probe{name: "x", try: func(ctx context.Context) notebook.Capability { <-ctx.Done(); return unsupported("", "") }}).ask(ctx); c.Answer != notebook.Inconclusive || c.Why != "interrupted" {
		t.Errorf("interrupted: %+v", c)
	}
}

// Tools that are not there, fail, hang or talk without end.
func TestToolProbes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	tool := func(name, script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	version := probe{name: "mmdebstrap", try: func(ctx context.Context) notebook.Capability {
		return tryVersion(ctx, "install it", "tool", "--version")
	}}
	hanging := version
	hanging.timeout = 500 * time.Millisecond
	gcc := probe{name: "gcc", try: tryGCC}
	mmdebstrap := probe{name: "mmdebstrap", try: tryMmdebstrap}
	for _, c := range []struct {
		p            probe
		tool, script string
		want         notebook.Answer
		why          string
	}{
		{version, "", "", notebook.NotSupported, "not installed"},
		{version, "tool", "echo tool version 9; [ $1 = --version ]", notebook.Supported, "tool version 9"},
		{version, "tool", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo and on and on; done", notebook.Supported, "and on"},
		{version, "tool", "echo broken library >&2; exit 127", notebook.NotSupported, "broken library"},
		{hanging, "tool", "while :; do :; done", notebook.Inconclusive, "killed"},
		{version, "tool", "echo tool version 9; echo rubbish >&2", notebook.Supported, "tool version 9"},
		{mmdebstrap, "mmdebstrap", "echo mmdebstrap 9; [ $1 = --version ] || { echo apt-config: not found >&2; exit 25; }", notebook.NotSupported, "apt-config: not found"},
		{mmdebstrap, "mmdebstrap", "echo mmdebstrap 9; [ $1 = --version ] || : >$TMPDIR/left", notebook.Supported, "mmdebstrap 9; made a root"}, // it leaves a file
		{mmdebstrap, "mmdebstrap", "echo apt-config: not found >&2; echo mmdebstrap 9", notebook.Supported, "mmdebstrap 9; made a root"},
		{gcc, "gcc", "echo no headers >&2; exit 1", notebook.NotSupported, "no headers"},
		{gcc, "gcc", "echo nothing", notebook.Inconclusive, "no code"},
	} {
		if c.tool != "" {
			tool(c.tool, c.script)
		}
		got := c.p.ask(t.Context())
		if got.Answer != c.want || !strings.Contains(got.Why, c.why) || (c.want == notebook.NotSupported) != (got.Do != "") {
			t.Errorf("%s with %q: %+v, want %s because %q", c.p.name, c.script, got, c.want, c.why)
		}
	}

	if _, err := os.Stat("/mnt/probe"); err == nil {
		t.Error("what mmdebstrap left is left on the host")
	}

	// A tool that hangs takes along what it started.
	tool("tool", "/bin/sleep 60 & echo $! >"+dir+"/child; wait")
	if c := hanging.ask(t.Context()); c.Answer != notebook.Inconclusive {
		t.Errorf("%+v", c)
	}
	b, err := os.ReadFile(dir + "/child")
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	started, err := proc.StartTime(child)
	if err != nil {
		return // gone already
	}
	fd, err := unix.PidfdOpen(child, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := proc.AwaitEnd(ctx, fd); err != nil {
		t.Errorf("process %d lives: %v", child, errors.Join(err, proc.Kill(t.Context(), child, started)))
	}
}

// supports says whether the capability of this name was found to be supported.
func supports(answers []notebook.Capability, name string) bool {
	return slices.ContainsFunc(answers, func(c notebook.Capability) bool {
		return c.Name == name && c.Answer == notebook.Supported
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
