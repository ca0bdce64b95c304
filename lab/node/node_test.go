//go:build linux

package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/cgroup"
)

// TestMain is also the process of a pod, and what it starts to enter the node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		fmt.Fprintln(os.Stderr, Main(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "pod" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		status, err := Run(ctx, Program{Folder: os.Args[2], Seen: os.Args[3], Args: os.Args[4:], Env: []string{"ASKED=yes"}}, os.Stdout, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 99
		}
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// pod is a process like that of a privileged pod: in namespaces of its own, and in cgroups of its own.
func pod(t *testing.T, unshare uintptr, args ...string) *exec.Cmd {
	t.Helper()
	require.Root(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("tare-test-pod-%d", os.Getpid())
	all, err := cgroup.Mounted()
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for _, h := range all {
		group := filepath.Join(h.At, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		if h.Has("cpuset") && !h.V2 { // the kernel wants them set before a process comes
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				value, err := os.ReadFile(filepath.Join(h.At, file))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(group, file), value, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		script += "echo $$ >" + group + "/cgroup.procs\n"
	}
	t.Cleanup(func() {
		if err := cgroup.RemoveEverywhere(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.Command("/bin/sh", append([]string{"-c", script + `exec "$@"`, "sh", self, "pod"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unshare, Pdeathsig: syscall.SIGKILL}
	return cmd
}

const ofPods = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// place is where a process is: its namespaces, its cgroups and its folder.
const place = `readlink /proc/self/ns/mnt /proc/self/ns/uts /proc/self/ns/ipc /proc/self/ns/pid /proc/self/ns/net; cat /proc/self/cgroup; pwd; echo "asked=$ASKED"`

func TestRunsOnTheHost(t *testing.T) {
	dir := t.TempDir()
	cmd := pod(t, ofPods, dir, dir, "/bin/sh", "-c", place+"; exit 7")
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Fatalf("exit status %d (%v), want the program's 7:\n%s", code, err, out)
	}
	here := exec.Command("/bin/sh", "-c", place)
	here.Dir, here.Env = dir, append(os.Environ(), "ASKED=yes")
	want, err := here.Output()
	if err != nil {
		t.Fatal(err)
	}
	group := func(s string) bool { return strings.Contains(s, ":/") }
	split := func(b []byte) (rest, groups []string) {
		for line := range strings.Lines(string(b)) {
			if group(line) {
				groups = append(groups, line)
			} else {
				rest = append(rest, line)
			}
		}
		return rest, groups
	}
	got, groups := split(out)
	if w, _ := split(want); !slices.Equal(got, w) {
		t.Errorf("the program is in\n%swant\n%s", got, w)
	}
	for _, g := range groups {
		if !strings.HasSuffix(g, ":/\n") {
			t.Errorf("the program is in the cgroup %s", g)
		}
	}
}

// However the pod's process ends, the program gets SIGTERM, and lives on until it has put the host in order.
func TestEndsWithThePod(t *testing.T) {
	for _, with := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(with.String(), func(t *testing.T) {
			dir := t.TempDir()
			cmd := pod(t, ofPods, dir, dir, "/bin/sh", "-c", `trap 'sleep 0.2; echo yes >tidied; exit 5' TERM; echo yes >begun; while :; do sleep 0.05; done`)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			appears(t, filepath.Join(dir, "begun"))
			if err := cmd.Process.Signal(with); err != nil {
				t.Fatal(err)
			}
			cmd.Wait() // it was ended
			if code := cmd.ProcessState.ExitCode(); with == syscall.SIGTERM && code != 5 {
				t.Errorf("exit status %d, want the program's 5", code)
			}
			appears(t, filepath.Join(dir, "tidied"))
		})
	}
}

func appears(t *testing.T, file string) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the program gives no notice
		if b, _ := os.ReadFile(file); bytes.Equal(b, []byte("yes\n")) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s does not appear", file)
		}
	}
}

func TestRefused(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, c := range []struct {
		name    string
		unshare uintptr
		args    []string
		want    string
	}{
		{"network of its own", ofPods | syscall.CLONE_NEWNET, []string{dir, dir, "/bin/true"}, "hostNetwork: true"},
		{"another folder", ofPods, []string{dir, other, "/bin/true"}, "different hosts"},
		{"a program that is missing", ofPods, []string{dir, dir, "/missing"}, "/missing: no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := pod(t, c.unshare, c.args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%v, %q: want one line with %q", err, out, c.want)
			}
		})
	}
}

func FuzzSocketIn(f *testing.F) {
	f.Add("/usr/bin/containerd-shim-runc-v2\x00-namespace\x00k8s.io\x00-id\x000\x00-address\x00/run/containerd/containerd.sock\x00")
	f.Add("containerd-shim\x00-address")
	f.Add("/usr/bin/conmon\x00-address\x00/x")
	f.Fuzz(func(t *testing.T, line string) {
		if at := socketIn(line); at != "" && !filepath.IsAbs(at) {
			t.Errorf("%q is not a path", at)
		}
	})
}

func TestSocketOfTheNode(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/containerd-shim-runc-v2\x00-namespace\x00k8s.io\x00-id\x000\x00-address\x00/run/k3s/containerd/containerd.sock": "/run/k3s/containerd/containerd.sock",
		"/usr/bin/conmon\x00-address\x00/x": "",
		"containerd-shim\x00-address":       "",
		"":                                  "",
	} {
		if got := socketIn(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
