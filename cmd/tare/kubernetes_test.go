//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/lab/fleet/kube"
	"tare/notebook"
)

// These tests need a cluster of one node, which is this host: scripts/test-kubernetes starts it, runs them and stops it.
// TARE_KUBERNETES is the folder of scripts/kubernetes.

// cluster is the cluster, as its administrator sees it, with a study.
type cluster struct {
	t   *testing.T
	h   *testHost
	dir string
}

const clusterNode = "tare-node"

// newCluster lets kubectl and tare reach the cluster as its administrator. At the end of the test it must have no object of Tare's.
func newCluster(t *testing.T) *cluster {
	dir := os.Getenv("TARE_KUBERNETES")
	if dir == "" {
		t.Skip("needs a cluster: make test-kubernetes")
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("KUBECACHEDIR", filepath.Join(dir, "cache"))
	c := &cluster{t, newHost(t), dir}
	c.as("kubeconfig")
	c.study(12)
	t.Cleanup(func() {
		c.as("kubeconfig")
		c.end()
		c.nothing()
		c.must("uncordon", clusterNode)
	})
	return c
}

// study writes short.yaml, a study with so many rounds.
func (c *cluster) study(rounds int) {
	c.h.write("short.yaml", fmt.Sprintf(`name: short
title: A short study
workloads: [{name: nap, image: %s, command: [sh, -c, "sleep 0.05"]}]
platforms: [{platform: bm}, {platform: cn, engines: [containerd], provisioning: [vanilla]}]
instances: [1/512MB]
design: {rounds: {floor: %d, cap: %[2]d}, trials: 4}
`, c.h.image, rounds))
}

// end ends the fleet of a test that failed.
func (c *cluster) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if _, err := os.Stat(filepath.Join(c.h.dir, "F")); err != nil {
		return // there was none
	}
	if said, err := c.h.command(ctx, "fleet", "cancel", "F").CombinedOutput(); err != nil {
		c.t.Errorf("tare fleet cancel: %v: %s", err, said)
	}
}

// as chooses the user by the kubeconfig in the folder of the cluster.
func (c *cluster) as(config string) { c.t.Setenv("KUBECONFIG", filepath.Join(c.dir, config)) }

// nothing checks that neither the cluster nor the node has anything of a fleet.
func (c *cluster) nothing() {
	c.t.Helper()
	kinds := c.must("api-resources", "--verbs=list", "--output=name")
	if left := c.must("get", strings.ReplaceAll(kinds, "\n", ","), "--all-namespaces", "--selector", kube.Label, "--output=name", "--ignore-not-found"); left != "" {
		c.t.Errorf("left in the cluster: %s", left)
	}
	if left := c.must("get", "nodes", "--output=jsonpath={range .items[*]}{.metadata.labels} {.spec.taints}{end}"); strings.Contains(left, kube.Label) {
		c.t.Errorf("left at a node: %s", left)
	}
	if _, err := os.Stat(filepath.Dir(kube.Folder("x"))); !errors.Is(err, fs.ErrNotExist) {
		c.t.Errorf("left on the node: %s, %v", filepath.Dir(kube.Folder("x")), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if said, err := c.h.command(ctx, "clean").CombinedOutput(); err != nil || string(said) != "Nothing to do.\n" {
		c.t.Errorf("tare clean: %v: %s", err, said)
	}
}

// command is a call of kubectl, bounded in time.
func (c *cluster) command(stdin io.Reader, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	c.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"))
	cmd.Stdin = stdin
	return cmd
}

// must runs kubectl as the administrator, which must succeed, and returns what it prints.
func (c *cluster) must(args ...string) string { return c.give("", args...) }

// give does it with a standard input.
func (c *cluster) give(stdin string, args ...string) string {
	c.t.Helper()
	cmd := c.command(strings.NewReader(stdin), args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return strings.TrimSpace(string(out))
}

// until waits until the condition holds; the cluster tells nobody.
func (c *cluster) until(what string, holds func() bool) {
	c.t.Helper()
	for late := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(late) {
			c.t.Fatalf("not within three minutes: %s\n%s\n%s", what, c.must("get", "jobs,pods,nodes", "--all-namespaces", "-o", "wide"), c.must("get", "events", "--all-namespaces"))
		}
	}
}

// driver is a `tare fleet run` that goes on.
type driver struct {
	*exec.Cmd
	said bytes.Buffer
}

// drive starts it.
func (c *cluster) drive(args ...string) *driver {
	c.t.Helper()
	d := &driver{Cmd: c.h.command(c.t.Context(), append([]string{"fleet", "run", "./short.yaml", "--kubernetes"}, args...)...)}
	d.Stdout, d.Stderr = &d.said, &d.said
	if err := d.Start(); err != nil {
		c.t.Fatal(err)
	}
	return d
}

// ends waits for its end, with a status.
func (c *cluster) ends(d *driver, status int) {
	c.t.Helper()
	stop := time.AfterFunc(4*time.Minute, func() { d.Process.Kill() })
	defer stop.Stop()
	d.Wait() // its status says it
	c.t.Logf("%s\n%s", d, d.said.String())
	if got := d.ProcessState.ExitCode(); got != status {
		c.t.Fatalf("status %d, want %d", got, status)
	}
}

// interrupt is Ctrl-C.
func (c *cluster) interrupt(d *driver) {
	c.t.Helper()
	if err := d.Process.Signal(os.Interrupt); err != nil {
		c.t.Fatal(err)
	}
	c.ends(d, interrupted)
	if !strings.Contains(d.said.String(), "the tasks go on") {
		c.t.Errorf("an interrupt says: %s", d.said.String())
	}
}

// id waits until a fleet's folder exists, and returns the fleet's ID.
func (c *cluster) id(fleet string) (id string) {
	c.t.Helper()
	c.until("a fleet", func() bool {
		f, err := notebook.ReadFleet(filepath.Join(c.h.dir, fleet))
		if err == nil {
			id = f.ID
		}
		return err == nil
	})
	return id
}

// runs counts the runs recorded on the node.
func (c *cluster) runs(id string) int {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(notebook.NodeResults(kube.Folder(id), clusterNode), "trials.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// more waits for more runs.
func (c *cluster) more(id, what string) {
	c.t.Helper()
	had := c.runs(id)
	c.until("more runs "+what, func() bool { return c.runs(id) > had+6 })
}

// pod is the fleet's pod that runs.
func (c *cluster) pod(namespace, id string) (name string) {
	c.t.Helper()
	c.until("a pod that runs", func() bool {
		name = c.must("get", "pods", "--namespace", namespace, "--selector", kube.Label+"="+id, "--field-selector", "status.phase=Running",
			"-o", `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}`)
		return name != "" && !strings.Contains(name, "\n")
	})
	return name
}

// operators makes a namespace, and gives the group of the operator the rights for it.
func (c *cluster) operators(namespace string, labels ...string) {
	c.t.Helper()
	roles, err := kube.Operator(namespace, "operators")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		c.end()
		c.give(roles, "delete", "--ignore-not-found", "-f", "-")
		c.must("delete", "--ignore-not-found", "namespace", namespace)
	})
	c.must("create", "namespace", namespace)
	c.must(append([]string{"label", "namespace", namespace, "of=test"}, labels...)...)
	c.give(roles, "apply", "-f", "-")
}

// A pod carries Tare to its node, where it measures bare metal and the node's own containerd. The pod is deleted, its process killed, the node
// drained; the command is interrupted, and the same command goes on. The results come back whole, and nothing stays. An operator with few rights
// does it.
func TestKubernetesFleet(t *testing.T) {
	c := newCluster(t)
	const namespace = "fleets"
	c.operators(namespace)
	c.study(40)
	c.as("operator")
	d := c.drive("--namespace", namespace, "--out", "F")
	id := c.id("F")
	c.more(id, "before the pod is deleted")
	c.must("delete", "pod", "--namespace", namespace, c.pod(namespace, id))
	c.more(id, "after the pod was deleted")
	if said, other, status := c.h.run("fleet", "run", "./short.yaml", "--kubernetes", "--out", "F"); status == 0 || !strings.Contains(other, "another tare fleet run is using") {
		t.Errorf("a second one at the same time: %d: %s%s", status, said, other)
	}
	if _, said, status := c.h.run("fleet", "run", "./short.yaml", "--kubernetes", "--namespace", namespace, "--out", "F2"); status == 0 || !strings.Contains(said, "the fleet "+id+" measures on it") {
		t.Errorf("another fleet at the same time: %d: %s", status, said)
	}
	c.until("results so far", func() bool { return c.h.status("F")[clusterNode].Runs > 0 })
	c.interrupt(d)
	if s := c.h.status("F")[clusterNode]; s.State != "measuring" || s.Host == "" {
		t.Errorf("after an interrupt: %+v", s)
	}
	killLauncher(t)
	d = c.drive("--out", "F")
	c.more(id, "after the pod's process was killed")
	c.must("drain", clusterNode, "--ignore-daemonsets", "--force")
	if s := c.h.status("F")[clusterNode]; s.State != "queued" || !strings.Contains(c.h.must("fleet", "status", "F"), "cordoned") {
		t.Errorf("after a drain: %+v", s)
	}
	c.must("uncordon", clusterNode)
	c.ends(d, 0)
	c.nothing()
	results := notebook.NodeResults(filepath.Join(c.h.dir, "F"), clusterNode)
	c.h.whole(results)
	if out := c.h.must("summary", results); !strings.Contains(out, "containerd") {
		t.Errorf("the summary does not name the node's containerd:\n%s", out)
	}
	if s := c.h.status("F")[clusterNode]; s.State != "done" {
		t.Errorf("at the end: %+v", s)
	}
	c.ends(c.drive("--out", "F"), 0) // has nothing to do
}

// A fleet that is cancelled in the middle leaves nothing in the cluster or on the node, and brings its results. The same command continues with
// them: the node gets them back.
func TestKubernetesCancel(t *testing.T) {
	c := newCluster(t)
	d := c.drive("--out", "F")
	id := c.id("F")
	c.more(id, "before the fleet is cancelled")
	if _, said, status := c.h.run("fleet", "cancel", "F"); status == 0 || !strings.Contains(said, "Ctrl-C") {
		t.Errorf("a cancel while the command works: %d: %s", status, said)
	}
	c.interrupt(d)
	c.must("cordon", clusterNode)
	if said := c.h.must("fleet", "cancel", "F"); !strings.Contains(said, "1 node free again") {
		t.Errorf("cancel: %s", said)
	}
	c.nothing()
	c.must("uncordon", clusterNode)
	if s := c.h.status("F")[clusterNode]; s.State != "stopped" || s.Runs == 0 {
		t.Errorf("after a cancel: %+v", s)
	}
	if said := c.h.must("fleet", "cancel", "F"); said != "The fleet has no jobs.\n" {
		t.Errorf("a second cancel: %s", said)
	}
	c.ends(c.drive("--out", "F"), 0)
	c.h.whole(notebook.NodeResults(filepath.Join(c.h.dir, "F"), clusterNode))
}

// Wrong use, missing rights and nodes that cannot be used are said in one line, before anything is made.
func TestKubernetesRefuses(t *testing.T) {
	c := newCluster(t)
	c.operators("strict", "pod-security.kubernetes.io/enforce=baseline")
	nobody := filepath.Join(c.h.dir, "nobody")
	c.h.write("nobody", strings.Replace(readFile(t, filepath.Join(c.dir, "kubeconfig")), ":16443", ":1", 1))
	refused := func(want string, args ...string) {
		t.Helper()
		said, errs, status := c.h.run(append([]string{"fleet", "run", "./short.yaml", "--kubernetes", "--out", "F"}, args...)...)
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(errs), "\n"), func(line string) bool { return strings.HasPrefix(line, "Left out: ") })
		if status == 0 || said != "" || len(lines) != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d: %s%s; want one line with %q", args, status, said, errs, want)
		}
	}
	refused("nosuch", "--context", "nosuch")
	refused("no node with these labels", "--node-selector", "disk=ssd")
	refused("must be labels of nodes", "--node-selector", "disk in (a)")
	refused("must be KEY", "--toleration", "=a")
	refused("not the name of an image", "--image", "a b")
	c.must("cordon", clusterNode)
	refused("it is cordoned")
	c.must("uncordon", clusterNode)
	c.must("taint", "node", clusterNode, "gpu=only:NoSchedule")
	refused("it has the taint gpu=only:NoSchedule; --toleration gpu=only:NoSchedule allows it")
	if said := c.h.must("fleet", "run", "./short.yaml", "--kubernetes", "--toleration", "gpu", "--plan"); !strings.Contains(said, "kind: Job") || !strings.Contains(said, "kubectl label node") {
		t.Errorf("the plan: %s", said)
	}
	c.must("taint", "node", clusterNode, "gpu-")
	refused("forbids privileged pods", "--namespace", "strict")
	refused("not found", "--namespace", "nosuch")
	c.as("operator")
	refused("forbids privileged pods", "--namespace", "strict")
	refused(`cannot create resource "namespaces"`)
	c.must("delete", "clusterrolebinding", "tare-operator-strict")
	refused(`cannot list resource "nodes"`, "--namespace", "strict")
	c.as("kubeconfig")
	c.must("create", "quota", "none", "--namespace", "strict", "--hard=pods=0") // no label says so
	c.must("label", "namespace", "strict", "--overwrite", "pod-security.kubernetes.io/enforce=privileged", "pod-security.kubernetes.io/warn=baseline")
	if _, said, status := c.h.run("fleet", "run", "./short.yaml", "--kubernetes", "--out", "F", "--namespace", "strict"); status == 0 || !strings.Contains(said, "the cluster refuses to make the pods") {
		t.Errorf("a namespace that may have no pods: %d: %s", status, said)
	}
	c.nothing()
	if err := os.RemoveAll(filepath.Join(c.h.dir, "F")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", nobody)
	refused("the cluster does not answer")
	t.Setenv("PATH", t.TempDir())
	refused("kubectl is not installed here")
	t.Setenv("PATH", c.dir+":/usr/bin:/bin")
	if _, err := os.Stat(filepath.Join(c.h.dir, "F")); err == nil {
		t.Error("a fleet that could not start left its folder")
	}
}

// hollow adds nodes to the cluster on which pods run only in name: Kubernetes's own for tests of its scheduler.
func (c *cluster) hollow(names ...string) {
	c.t.Helper()
	kubectl, err := filepath.EvalSymlinks(filepath.Join(c.dir, "kubectl"))
	if err != nil {
		c.t.Fatal(err)
	}
	// kubemark's files are in /tmp, whatever TMPDIR says.
	files := func() map[string]bool {
		all := map[string]bool{}
		for _, pattern := range []string{"/tmp/hollow-kubelet.*", "/tmp/kubelet_remote_*.sock"} {
			found, err := filepath.Glob(pattern)
			if err != nil {
				c.t.Fatal(err)
			}
			for _, f := range found {
				all[f] = true
			}
		}
		return all
	}
	before := files()
	c.t.Cleanup(func() {
		for f := range files() {
			if !before[f] {
				os.RemoveAll(f)
			}
		}
	})
	for i, name := range names {
		cmd := exec.Command(filepath.Join(filepath.Dir(kubectl), "kubemark"), "--morph=kubelet", "--use-host-image-service=false", "--name="+name, "--kubeconfig="+filepath.Join(c.dir, "kubeconfig"),
			fmt.Sprintf("--kubelet-port=%d", 10261+i), fmt.Sprintf("--kubelet-read-only-port=%d", 10271+i))
		if err := cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() {
			c.end() // while the node answers
			cmd.Process.Kill()
			cmd.Wait() // it was killed
			c.must("delete", "--ignore-not-found", "node", name)
		})
	}
	for _, name := range names {
		c.until(name, func() bool {
			return strings.Contains(c.must("get", "node", name, "--ignore-not-found", `--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`), "True")
		})
	}
}

// Each node gets one pod, and none of another fleet. A cancel gives back nodes that cannot be reached, and says so.
func TestKubernetesSpread(t *testing.T) {
	c := newCluster(t)
	c.must("cordon", clusterNode)
	nodes := []string{"hollow-1", "hollow-2"}
	c.hollow(nodes...)
	d := c.drive("--out", "F")
	id := c.id("F")
	c.until("a pod on each node", func() bool {
		on := strings.Fields(c.must("get", "pods", "--namespace", id, "--field-selector", "status.phase=Running", "--output=jsonpath={.items[*].spec.nodeName}"))
		slices.Sort(on)
		return slices.Equal(on, nodes)
	})
	if _, said, status := c.h.run("fleet", "run", "./short.yaml", "--kubernetes", "--out", "F2"); status == 0 || !strings.Contains(said, "Left out: hollow-1, hollow-2: the fleet "+id+" measures on it") {
		t.Errorf("another fleet: %d: %s", status, said)
	}
	c.interrupt(d)
	if _, said, status := c.h.run("fleet", "cancel", "F"); status == 0 || !strings.Contains(said, "could not be reached") {
		t.Errorf("cancel: %d: %s", status, said)
	}
	c.nothing()
}

// killLauncher kills the pod's process, as the kernel would.
func killLauncher(t *testing.T) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, _ := os.ReadFile(file) // it may have ended
		if !bytes.HasPrefix(line, []byte(kube.Mount+"/tare\x00on-node\x00")) || !bytes.Contains(line, []byte("\x00task\x00")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the pod has no process")
}
