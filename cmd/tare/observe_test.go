//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/desk/observed"
	"tare/lab/live"
	"tare/notebook"
)

// seen observes a target for two seconds, and returns what the program says.
func (h *testHost) seen(args ...string) *observed.Answer {
	h.t.Helper()
	var a observed.Answer
	a.Observation = &notebook.Observation{}
	out := h.must(append([]string{"observe", "--for", "2s", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	sum := 0.0
	for _, s := range a.Account {
		sum += s.Share.Value
	}
	if a.Seconds < 1.9 || sum < 0.999 || sum > 1.001 {
		h.t.Errorf("%v: the shares of %.3f s add up to %.4f: %+v", args, a.Seconds, sum, a.Account)
	}
	return &a
}

// wanted is the part of the time in which a target ran or was ready to.
func wanted(a *observed.Answer) (sum float64) {
	for _, key := range []string{notebook.WallUser, notebook.WallSystem, notebook.WallStolen, notebook.WallThrottled, notebook.WallCore} {
		sum += a.Of(key).Share.Value
	}
	return sum
}

// A busy guest of each engine is found by its name, as others would name it, and seen busy.
func TestObservedInEachEngine(t *testing.T) {
	for _, c := range []struct{ platform, program, kind string }{
		{"cn:podman", "podman", notebook.TargetContainer}, {"cn:containerd", "containerd", notebook.TargetContainer}, {"cn:cri", "containerd", notebook.TargetPod},
		{"cn:lxc", "lxc-start", notebook.TargetContainer}, {"cn:crun", "crun", notebook.TargetGroup}, {"vm", "qemu-system-x86_64", notebook.TargetVM},
	} {
		t.Run(strings.ReplaceAll(c.platform, ":", "-"), func(t *testing.T) {
			h := newHost(t)
			need(t, has(c.program), c.program)
			if c.kind == notebook.TargetPod {
				startPods(t)
			}
			mark := fmt.Sprint("busy", os.Getpid()) // an argument that no other process has
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := h.command(ctx, "bench", "--image", h.image, "--platforms", c.platform, "--provisioning", "quota", "--instances", "1/512MB", "--rounds", "1", "--out", "R", "--", "sh", "-c", "while :; do :; done", mark)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			cmd.WaitDelay = 10 * time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			name := h.nameOf(ctx, ended, c.kind, mark, &said)
			a := h.seen(name)
			if a.Target.Kind != c.kind || wanted(a) < 0.9 {
				t.Errorf("%s: %+v: %+v", name, a.Target, a.Account)
			}
			if c.kind != notebook.TargetVM && (a.Quota == nil || a.Quota.Cores != 1) {
				t.Errorf("%s: quota %+v", name, a.Quota)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; cmd.ProcessState.ExitCode() != interrupted {
				t.Errorf("%v: %s", err, said.String())
			}
		})
	}
}

// startPods starts a containerd of the test's own, which makes pods, and has CONTAINERD_ADDRESS name it.
func startPods(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"ctr", "runc", "gcc", "/usr/lib/cni/ptp"} {
		need(t, has(tool), tool)
	}
	dir, err := os.MkdirTemp("/var/tmp", "tare-pods-")
	if err != nil {
		t.Fatal(err)
	}
	script := func(what string) error {
		out, err := exec.Command("../../scripts/containerd", what, dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("scripts/containerd %s: %w: %s", what, err, out)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := script("stop"); err != nil {
			t.Error(err)
			return // its mounts may still be there
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := script("start"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERD_ADDRESS", filepath.Join(dir, "containerd.sock"))
}

// nameOf waits until a process with the mark runs in a guest, and returns the guest's name: of a pod the pod's, of a cgroup its path.
func (h *testHost) nameOf(ctx context.Context, ended chan error, kind, mark string, said *bytes.Buffer) string {
	h.t.Helper()
	for {
		guests, pids, err := live.Now(ctx)
		if err != nil && ctx.Err() == nil {
			h.t.Fatal(err)
		}
		for _, g := range guests {
			switch {
			case g.Name == "tare-probe": // the host's check of KVM, which may be busy for as long
			case kind == notebook.TargetVM && g.Kind == notebook.MemoryVM && named(g.PIDs[0], h.state) && h.busy(g.PIDs[0]): // other tests have VMs too
				return g.Name
			case !slices.ContainsFunc(g.PIDs, func(pid int) bool { return named(pid, mark) }):
			case kind == notebook.TargetPod && g.Pod != "":
				return g.Namespace + "/" + g.Pod
			case kind == notebook.TargetContainer:
				return g.Name
			}
		}
		if kind == notebook.TargetGroup {
			for _, pid := range pids {
				if named(pid, mark) && strings.HasPrefix(commandLine(pid), "sh\x00") {
					if group := groupOf(pid); group != "" {
						return group
					}
				}
			}
		}
		select {
		case err := <-ended:
			h.t.Fatalf("it ended before a guest was found: %v: %s", err, said.String())
		case <-ctx.Done():
			h.t.Fatalf("no guest of kind %s was found; %+v", kind, guests)
		case <-time.After(20 * time.Millisecond): // engines give no notice
		}
	}
}

func commandLine(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
	return string(line)
}

func named(pid int, mark string) bool { return strings.Contains(commandLine(pid), mark) }

// busy reports whether a VM has booted and its work is under way: it has used two seconds of CPU time.
func (h *testHost) busy(pid int) bool {
	h.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks, err := strconv.Atoi(f[11])
	if err != nil {
		h.t.Fatal(err)
	}
	return ticks > 200
}

// groupOf is the path of a process's cgroup that has a CPU quota, as /proc has it; empty if it is the root.
func groupOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && (slices.Contains(strings.Split(f[1], ","), "cpu") || f[1] == "") && f[2] != "/" {
			return f[2]
		}
	}
	return ""
}

// A container of Docker by its name and its ID, and a service of a Compose file.
func TestWithDockerObserved(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	name := fmt.Sprint("tare-test-observe-", os.Getpid())
	docker := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "docker", args...).Output()
		if err != nil {
			t.Fatalf("docker %q: %v: %s", args, err, errorOutput(err))
		}
		return strings.TrimSpace(string(out))
	}
	if said, err := exec.CommandContext(t.Context(), "sh", "-c", `tar -C "$(dirname "$(command -v busybox)")" -ch busybox | docker import - `+name).CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v: %s", err, said)
	}
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "-f", name}, {"rmi", name}} {
			if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
				t.Errorf("docker %q: %v: %s", args, err, out)
			}
		}
	})
	file := filepath.Join(h.dir, "compose.yaml")
	if err := os.WriteFile(file, []byte("services: {web: {image: "+name+"}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	id := docker("run", "-d", "--network", "none", "--cpus", "0.5", "--name", name, "--label", "com.docker.compose.service=web", "--label", "com.docker.compose.project.config_files="+file,
		name, "/busybox", "sh", "-c", "while :; do :; done")
	for _, args := range [][]string{{name}, {id[:12]}, {"--compose", file, "--service", "web"}} {
		a := h.seen(args...)
		if a.Target.Name != name || a.Target.Kind != notebook.TargetContainer || a.Quota == nil || a.Quota.Cores != 0.5 || a.Quota.Periods == 0 || wanted(a) < 0.9 {
			t.Errorf("%v: %+v, %+v: %+v", args, a.Target, a.Quota, a.Account)
		}
		if a.Platform.LogDriver == "" || a.Platform.Network != "none" {
			t.Errorf("%+v", a.Platform)
		}
	}
	if text := h.must("observe", name, "--for", "1s", "--counters"); !strings.Contains(text, "CPU limit 0.5 cores") || !strings.Contains(text, "Source: the kernel's counters") {
		t.Error(text)
	}
	for want, args := range map[string][]string{
		"--compose needs --service NAME":                                          {"--compose", file},
		"--service db: is not running; must be one of web":                        {"--compose", file, "--service", "db"},
		`"tare-no-such-thing": no running container`:                              {"tare-no-such-thing"},
		"--for 10ms: must be at least 1s":                                         {name, "--for", "10ms"},
		"--if \"limit=0\": limit=0: must be from 0.01 to 1024 cores, or none":     {name, "--if", "limit=0"},
		"--if \"cores=2\": \"cores\": must be limit, period, burst or cpus":       {name, "--if", "cores=2"},
		"--if and --counters: counters predict nothing; leave out one of the two": {name, "--if", "limit=2", "--counters"},
		"observe: 0 targets; must be one container, pod, VM, unit, PID or cgroup": {},
	} {
		if _, errs, status := h.run(append([]string{"observe"}, args...)...); status == 0 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d: %s; want one line with %q", args, status, errs, want)
		}
	}
}
