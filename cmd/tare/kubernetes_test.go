//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/lab/fleet/kube"
	"tare/notebook"
)

// These tests need a cluster of one node, which is this host: scripts/test-kubernetes starts it, runs them and stops it.
// TARE_KUBERNETES is the folder of scripts/kubernetes.

// cluster is the cluster, as one of its users sees it.
type cluster struct {
	t         *testing.T
	dir       string
	config    string // the user's kubeconfig
	namespace string
}

const (
	clusterNode = "tare-node"
	testFleet   = "tare-t1"
)

func newCluster(t *testing.T) *cluster {
	dir := os.Getenv("TARE_KUBERNETES")
	if dir == "" {
		t.Skip("needs a cluster: make test-kubernetes")
	}
	return &cluster{t: t, dir: dir, config: filepath.Join(dir, "kubeconfig"), namespace: "fleets"}
}

// command is a call of kubectl, bounded in time.
func (c *cluster) command(stdin io.Reader, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	c.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, "kubectl"), append([]string{"--kubeconfig", c.config, "--namespace", c.namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(c.dir, "cache"))
	cmd.Stdin = stdin
	return cmd
}

// must runs kubectl, which must succeed, and returns what it prints.
func (c *cluster) must(stdin string, args ...string) string {
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
			c.t.Fatalf("not within three minutes: %s\n%s\n%s", what, c.must("", "get", "jobs,pods,nodes", "-o", "wide"), c.must("", "get", "events"))
		}
	}
}

// pod waits for a pod of the fleet that is in a phase, and returns its name.
func (c *cluster) pod(phase string) (name string) {
	c.t.Helper()
	c.until("a pod that is "+phase, func() bool {
		name = c.must("", "get", "pods", "--selector", kube.Label+"="+testFleet, "--field-selector", "status.phase="+phase,
			"-o", `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}`)
		return name != "" && !strings.Contains(name, "\n")
	})
	return name
}

// objects are those of a fleet that runs a study on the node.
func (c *cluster) objects(h *testHost) string {
	c.t.Helper()
	folder := kube.Folder(testFleet)
	args := []string{"on-node", folder, kube.Mount, "/usr/bin/env"}
	args = append(args, h.env()[1], folder+"/tare", "run", "study.yaml", "--out", "R") // the tests' lock
	text, err := kube.Objects{Fleet: testFleet, Namespace: c.namespace, Nodes: 1, Arch: runtime.GOARCH, Image: "busybox:stable", Args: args, Limit: time.Hour}.YAML()
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// send brings the program and the study to the node.
func (c *cluster) send(pod string, h *testHost) {
	c.t.Helper()
	program, err := os.ReadFile(h.tare)
	if err != nil {
		c.t.Fatal(err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := z.Write(program); err != nil {
		c.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.must(packed.String(), "exec", "-i", pod, "--", "sh", "-c", "gunzip >/fleet/tare.new && chmod 755 /fleet/tare.new && mv /fleet/tare.new /fleet/tare")
	study, err := exec.Command("tar", "-C", h.dir, "-cf", "-", "study.yaml", "image").Output()
	if err != nil {
		c.t.Fatal(err)
	}
	c.must(string(study), "exec", "-i", pod, "--", "tar", "-C", kube.Mount, "-xf", "-")
	c.must("", "exec", pod, "--", "sh", "-c", ": >/fleet/"+kube.Ready)
}

// fetch returns a copy of the results that a pod has so far, which comes through the API.
func (c *cluster) fetch(pod string) string {
	c.t.Helper()
	dir := c.t.TempDir()
	packed := c.command(nil, "exec", pod, "--", "tar", "-C", kube.Mount, "-cf", "-", "R")
	out, err := packed.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	unpack := exec.Command("tar", "-C", dir, "-xf", "-")
	unpack.Stdin = bytes.NewReader(out)
	if said, err := unpack.CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, said)
	}
	return filepath.Join(dir, "R")
}

// runs counts the runs recorded on the node.
func runs(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kube.Folder(testFleet), "R", "trials.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// A pod carries Tare to its node, where it measures bare metal and the node's own containerd. The pod is deleted, killed and evicted in the
// middle; each time the run ends in order, and the next pod continues the folder, which comes back whole. An operator with few rights does it.
func TestKubernetesNode(t *testing.T) {
	admin := newCluster(t)
	h := newHost(t)
	h.write("study.yaml", `name: short
title: A short study
workloads: [{name: nap, image: ./image, command: [sh, -c, "sleep 0.05"]}]
platforms: [{platform: bm}, {platform: cn, engines: [containerd], provisioning: [vanilla]}]
instances: [1/512MB]
design: {rounds: {floor: 12, cap: 12}, trials: 4}
`)
	roles, err := kube.Operator(admin.namespace, "operators")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Before its namespace: otherwise the cluster removes the pods first, and the job holds them.
		admin.must("", "delete", "--ignore-not-found", "--cascade=foreground", "job", testFleet)
		admin.must(roles, "delete", "--ignore-not-found", "-f", "-")
		admin.must("", "delete", "--ignore-not-found", "namespace", admin.namespace)
		admin.must("", "label", "node", clusterNode, kube.Label+"-")
		admin.command(nil, "taint", "node", clusterNode, kube.Label+"-").Run() // it may be gone already
		admin.must("", "uncordon", clusterNode)
		if err := os.RemoveAll(kube.Folder(testFleet)); err != nil {
			t.Error(err)
		}
		os.Remove(filepath.Dir(kube.Folder(testFleet))) // unless another fleet has a folder there
	})
	admin.must("", "create", "namespace", admin.namespace)
	admin.must(roles, "apply", "-f", "-")
	c := *admin
	c.config = filepath.Join(c.dir, "operator")
	objects := c.objects(h)
	c.must(objects, "apply", "--dry-run=server", "-f", "-")
	c.must("", "label", "node", clusterNode, kube.Label+"="+testFleet)
	c.must("", "taint", "node", clusterNode, kube.Label+"="+testFleet+":NoSchedule")
	c.must(objects, "apply", "-f", "-")
	c.send(c.pod("Running"), h)

	for _, end := range []struct {
		name string
		do   func(pod string)
	}{
		{"deleted", func(pod string) { c.must("", "delete", "pod", pod) }},
		{"killed", func(string) { killLauncher(t) }},
		{"evicted", func(string) {
			admin.must("", "drain", clusterNode, "--ignore-daemonsets", "--force")
			admin.must("", "uncordon", clusterNode)
		}},
	} {
		had := runs(t)
		c.until("more runs before the pod is "+end.name, func() bool { return runs(t) > had+6 })
		pod := c.pod("Running")
		if f, err := notebook.Read(c.fetch(pod)); err != nil {
			t.Errorf("the results of a run that goes on: %v", err)
		} else if f.Host.Hostname == "" {
			t.Error("the results do not name their host")
		}
		end.do(pod)
		c.until("the end of the run whose pod was "+end.name, func() bool { return !living(t, "tare", "study.yaml") || c.pod("Running") != pod })
	}
	c.until("the end of the job", func() bool {
		return c.must("", "get", "job", testFleet, "-o", "jsonpath={.status.succeeded}") == "1"
	})
	results := filepath.Join(kube.Folder(testFleet), "R") // the last pod has ended: nothing carries them back yet
	whole(t, results, 3*12*4)
	if out := h.must("summary", results); !strings.Contains(out, "containerd") {
		t.Errorf("the summary does not name the node's containerd:\n%s", out)
	}
	c.must("", "taint", "node", clusterNode, kube.Label+"-")
}

// whole checks that a folder has so many runs, none of them twice.
func whole(t *testing.T, dir string, want int) {
	t.Helper()
	f, err := notebook.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	if err := f.Trials(func(trial *notebook.Trial) error {
		if trial.Failure != nil {
			t.Errorf("a run failed: %+v", trial.Failure)
		}
		key := fmt.Sprint(trial.Treatment, trial.Round, trial.Index, trial.Warmup)
		if seen[key] {
			t.Errorf("there twice: %s", key)
		}
		if seen[key] = true; trial.Warmup {
			return nil
		}
		want--
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want != 0 {
		t.Errorf("%d runs are missing", want)
	}
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
		if !bytes.HasPrefix(line, []byte(kube.Mount+"/tare\x00on-node\x00")) {
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
