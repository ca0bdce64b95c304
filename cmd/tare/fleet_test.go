//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/lab/remote/remotetest"
	"tare/notebook"
)

// slurm starts a Slurm cluster of two nodes, which are both this machine, for a test.
func slurm(t *testing.T) {
	t.Helper()
	for _, program := range []string{"slurmctld", "slurmd", "sbatch", "munged"} {
		need(t, has(program), program+" (slurmctld, slurmd, slurm-client, munge)")
	}
	dir := filepath.Join(t.TempDir(), "slurm")
	script := func(what string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if said, err := exec.CommandContext(ctx, "../../scripts/slurm", what, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("scripts/slurm %s: %w: %s", what, err, said)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := script("stop"); err != nil {
			t.Error(err)
		}
	})
	if err := script("start"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
}

// status is what tare fleet status says of each node.
func (h *testHost) status(fleet string) map[string]nodeStatus {
	h.t.Helper()
	var all []nodeStatus
	if err := json.Unmarshal([]byte(h.must("fleet", "status", fleet, "--format", "json")), &all); err != nil {
		h.t.Fatal(err)
	}
	by := map[string]nodeStatus{}
	for _, s := range all {
		by[s.Node] = s
	}
	return by
}

// await waits until the status of the fleet is as it should be.
func (h *testHost) await(fleet, what string, is func(map[string]nodeStatus) bool) map[string]nodeStatus {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Minute)
	defer cancel()
	for {
		s := h.status(fleet)
		if is(s) {
			return s
		}
		select {
		case <-ctx.Done():
			logs := ""
			for node := range s {
				text, err := os.ReadFile(filepath.Join(h.dir, fleet, "logs", node+".txt"))
				logs += fmt.Sprintf("\n%s: %v %s", node, err, text)
			}
			h.t.Fatalf("not within ten minutes: %s: %+v%s", what, s, logs)
		case <-time.After(200 * time.Millisecond): // the scheduler gives no notice
		}
	}
}

// Two nodes that are one machine measure one after the other. A task that is killed and requeued continues its folder: no run is lost or repeated.
func TestFleetOnSlurm(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	slurm(t)
	for _, e := range h.env() { // which the jobs inherit
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	h.must("fleet", "run", "quick", "--slurm", "--platforms", "bm,cn:crun", "--rounds", "2", "--out", "F")
	s := h.await("F", "one measures, the other waits", func(s map[string]nodeStatus) bool {
		return s["n1"].Runs+s["n2"].Runs > 0 && (s["n1"].State == "waiting" || s["n2"].State == "waiting")
	})
	first, second := "n1", "n2"
	if s["n1"].State == "waiting" {
		first, second = second, first
	}
	job := s[first].Job
	ask := func(name string, args ...string) {
		t.Helper()
		if said, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, said)
		}
	}
	ask("scancel", "--signal=KILL", job)
	h.await("F", "the killed one stops, the other measures", func(s map[string]nodeStatus) bool {
		return s[first].State == "stopped" && s[second].State == "measuring"
	})
	ask("scontrol", "requeue", job)
	ask("scontrol", "update", "JobId="+job, "StartTime=now+3") // Slurm would wait two minutes; it refuses a job that it killed in the same second
	s = h.await("F", "both are done", func(s map[string]nodeStatus) bool { return s["n1"].State == "done" && s["n2"].State == "done" })
	if s["n2"].SameHostAs != "n1" || s["n1"].SameHostAs != "" {
		t.Errorf("two nodes of one machine: %+v", s)
	}
	for _, node := range []string{"n1", "n2"} {
		h.whole(notebook.NodeResults(filepath.Join(h.dir, "F"), node))
	}
	f, err := notebook.Read(notebook.NodeResults(filepath.Join(h.dir, "F"), first))
	if err != nil || len(f.Sessions) < 4 {
		t.Errorf("the killed task has the sessions %v, %v; want two", f.Sessions, err)
	}
	if said := h.must("fleet", "run", "quick", "--slurm", "--out", "F"); !strings.Contains(said, "nothing to start") {
		t.Errorf("a second fleet run: %s", said)
	}
	if said := h.must("fleet", "cancel", "F"); said != "The fleet has no jobs.\n" {
		t.Errorf("cancel: %s", said)
	}
}

// whole tests that a folder has each run of its study's rounds once.
func (h *testHost) whole(dir string) {
	h.t.Helper()
	f, err := notebook.Read(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	type key struct {
		treatment    string
		round, index int
	}
	seen, rounds := map[key]int{}, map[string][]int{}
	if err := f.Trials(func(t *notebook.Trial) error {
		if t.Failure != nil {
			h.t.Errorf("%s: a run failed: %v", dir, t.Failure)
		}
		if !t.Warmup { // the guests of a continued run are new, and warm up again
			seen[key{t.Treatment, t.Round, t.Index}]++
		}
		if !slices.Contains(rounds[t.Treatment], t.Round) {
			rounds[t.Treatment] = append(rounds[t.Treatment], t.Round)
		}
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	for k, n := range seen {
		if n != 1 {
			h.t.Errorf("%s: %d times %+v", dir, n, k)
		}
	}
	if d := f.Study.Design; len(seen) != len(f.Study.Treatments)*d.Cap*d.Trials {
		h.t.Errorf("%s has %d measured runs, want %d rounds of %d configurations with %d each", dir, len(seen), d.Cap, len(f.Study.Treatments), d.Trials)
	}
	for _, t := range f.Study.Treatments {
		if len(rounds[t.ID]) != f.Study.Design.Cap {
			h.t.Errorf("%s: %s has the rounds %v, want %d", dir, t.ID, rounds[t.ID], f.Study.Design.Cap)
		}
	}
	if f.Torn {
		h.t.Errorf("%s: the last record is cut off", dir)
	}
}

// Wrong use of a fleet is refused before anything is submitted.
func TestFleetRefuses(t *testing.T) {
	h := newHost(t)
	h.write("broken/fleet.json", `{"version":1,"id":"tare-1","study":"quick","nodes":["../n1"]}`)
	h.write("newer/fleet.json", `{"version":2}`)
	h.write("full/other", "")
	h.write("bad.txt", "# machines\na b\n")
	h.write("beside/workload.yaml", "name: beside\ntitle: beside the study\nimage: {reference: busybox}\ncommand: [\"true\"]\nmetric: {name: execution time, unit: s}\n")
	h.write("beside.yaml", "name: near\ntitle: x\nworkloads: [{name: ./beside}]\nplatforms: [{platform: bm}]\ninstances: [1/512MB]\ndesign: {rounds: {floor: 1, cap: 1}, trials: 1}\n")
	t.Setenv("PATH", t.TempDir()) // no scheduler
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "name one study"},
		{[]string{"run", "quick"}, "exactly one of them must be given"},
		{[]string{"run", "quick", "--hosts", "nosuch"}, "nosuch: no such file"},
		{[]string{"run", "quick", "--hosts", "bad.txt"}, `line 2: "a b" is not a machine`},
		{[]string{"run", "quikc", "--slurm"}, "did you mean quick"},
		{[]string{"run", "quick", "--slurm", "--max-hosts", "0"}, "--max-hosts 0: must be at least 1"},
		{[]string{"run", "quick", "--slurm", "--compare", "R"}, "--compare: this flag of tare run is not allowed for a fleet"},
		{[]string{"run", "quick", "--slurm", "--only", "workload=nosuch"}, "--only workload=nosuch: the study quick has"},
		{[]string{"run", "quick", "--slurm", "--no-host-code"}, "use platforms without bm"},
		{[]string{"run", "quick", "--slurm", "--load-from", "ssh://x"}, "no workload of the study quick is a service"},
		{[]string{"run", "./beside.yaml", "--slurm"}, "the nodes get only the study file"},
		{[]string{"run", "quick", "--slurm", "--", "-wn1"}, "-- -wn1: must be one of --account"},
		{[]string{"run", "quick", "--slurm", "--", "n1"}, "-- n1: must be one of --account"},
		{[]string{"run", "quick", "--slurm", "--out", "a%j"}, "without %"},
		{[]string{"run", "quick", "--slurm", "--out", "F"}, "scontrol is not installed here"},
		{[]string{"run", "quick", "--slurm", "--out", "broken"}, `"../n1" is not the name of a node`},
		{[]string{"status", "newer"}, `"version" is 2`},
		{[]string{"status", "full"}, "is not the folder of a fleet"},
		{[]string{"cancel"}, "name the folder of one fleet"},
	} {
		_, said, status := h.run(append([]string{"fleet"}, c.args...)...)
		if status == 0 || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("fleet %v: status %d: %s; want one line with %q", c.args, status, said, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(h.dir, "F")); err == nil {
		t.Error("a fleet that could not be submitted left its folder")
	}
}

// A machine that shares no folder gets the program by ssh, and its results come back. An interrupt ends its run in order, and the same command
// continues it. Nothing stays there.
func TestFleetBySSH(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	m := remotetest.New(t)
	h.write("spin.yaml", fmt.Sprintf(`name: spin
workloads:
  - {name: spin, image: %s, command: [busybox, sleep, "0.2"]}
platforms:
  - platform: bm
  - {platform: cn, engines: [crun], provisioning: [pinned]}
instances: [1/512MB]
design: {rounds: {floor: 8, cap: 8}, trials: 2, warmups: 0, timeout: 1m}
`, h.image))
	h.write("hosts.txt", "# one machine, twice\nroot@"+m.Address+" # and again\n\nroot@"+m.Address+":22\n")
	nodes := []string{m.Address, m.Address + "-22"}
	args := []string{"fleet", "run", "./spin.yaml", "--hosts", "hosts.txt", "--out", "F"}
	if said := h.must(append(args, "--plan")...); !strings.Contains(said, "\n  "+nodes[1]+"\n") || !strings.Contains(said, "study.yaml") {
		t.Errorf("the plan: %s", said)
	}
	// until starts the command, does something when a round has begun there, and returns the status and what was said.
	until := func(round string, do func(cmd *exec.Cmd)) (status int, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := h.command(ctx, args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for text := ""; !strings.Contains(text, round); { // the machine gives no other notice
			if ctx.Err() != nil {
				t.Fatalf("%s has not begun within five minutes: %s\n%s", round, said.String(), text)
			}
			time.Sleep(20 * time.Millisecond)
			text = ""
			for _, node := range nodes {
				all, err := os.ReadFile(filepath.Join(h.dir, "F", "logs", node+".txt"))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				text += string(all)
			}
		}
		do(cmd)
		cmd.Wait() // the status says how it ended
		return cmd.ProcessState.ExitCode(), said.String()
	}
	if status, said := until("round 2", func(*exec.Cmd) { m.Kill() }); status != 1 || !strings.Contains(said, "the results are still in /var/lib/tare-fleet/") {
		t.Errorf("with a broken connection: %d: %s", status, said)
	}
	m.Serve()
	status, said := until("round 4", func(cmd *exec.Cmd) {
		if _, other, status := h.run(args...); status == 0 || !strings.Contains(other, "another tare fleet run is using") {
			t.Errorf("a second one at the same time: %d: %s", status, other)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as a terminal does it: to all processes
			t.Error(err)
		}
	})
	if status != interrupted {
		t.Fatalf("status %d after an interrupt: %s", status, said)
	}
	if s := h.status("F"); s[nodes[0]].State != "stopped" || s[nodes[1]].State != "stopped" || s[nodes[0]].Runs+s[nodes[1]].Runs == 0 {
		t.Errorf("after an interrupt: %+v", s)
	}
	h.must(args...)
	for _, node := range nodes {
		if s := h.status("F")[node]; s.State != "done" {
			t.Errorf("at the end: %+v", s)
		}
		h.whole(notebook.NodeResults(filepath.Join(h.dir, "F"), node))
	}
	if left := m.Processes(); len(left) > 0 {
		t.Errorf("left running there: %q", left)
	}
	if _, err := os.Stat(m.Lib() + "/tare-fleet"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left there: %v, %s", err, m.Must("ls", "-R", m.Lib()+"/tare-fleet"))
	}
}
