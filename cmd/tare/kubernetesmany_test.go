//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/lab/fleet/kube"
)

// recorded are nodes that exist only in the cluster's records. The test is their kubelet: it says that they are ready, and that their pods have
// ended; no pod runs there.
type recorded struct {
	c             *cluster
	client        *http.Client
	server, token string
	names         []string
	lost          atomic.Bool // they are not ready any more
}

// record adds nodes, and ends them with the test.
func (c *cluster) record(n int) *recorded {
	c.t.Helper()
	config := func(path string) string {
		return c.must("config", "view", "--raw", "--output=jsonpath={"+path+"}")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(readFile(c.t, config(".clusters[0].cluster.certificate-authority")))) {
		c.t.Fatal("the cluster's certificate cannot be read")
	}
	r := &recorded{c: c, server: config(".clusters[0].cluster.server"), token: config(".users[0].user.token"),
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}}
	var list strings.Builder
	for i := range n {
		name := fmt.Sprintf("recorded-%03d", i)
		r.names = append(r.names, name)
		fmt.Fprintf(&list, `---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {of: test, kubernetes.io/hostname: %[1]s, kubernetes.io/os: linux, kubernetes.io/arch: %s}}
status:
  capacity: {cpu: "16", memory: 64Gi, pods: "110"}
  nodeInfo: {operatingSystem: linux, architecture: %[2]s}
  conditions: [{type: Ready, status: "True", reason: Recorded, message: for a test}]
`, name, runtime.GOARCH)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var kubelet sync.WaitGroup
	c.t.Cleanup(func() {
		c.end() // while there is a kubelet
		cancel()
		kubelet.Wait()
		c.must("delete", "nodes", "--selector=of=test")
	})
	c.give(list.String(), "create", "--filename=-")
	kubelet.Go(func() { r.live(ctx) })
	c.until("nodes on which pods may come", func() bool {
		return c.must("get", "nodes", "--selector=of=test", "--output=jsonpath={.items[*].spec.taints}") == ""
	})
	return r
}

// ask sends a request to the API, and reads the answer into to unless it is nil.
func (r *recorded) ask(ctx context.Context, method, path, content, body string, to any) error {
	request, err := http.NewRequestWithContext(ctx, method, r.server+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Content-Type", content)
	answer, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotFound { // not found: somebody else was faster
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	if err == nil && to != nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

// live does what kubelets do until the nodes go away.
func (r *recorded) live(ctx context.Context) {
	const beat = 10 * time.Second // the cluster waits 50 s
	var said time.Time
	for {
		var err error
		if time.Since(said) > beat {
			said = time.Now()
			err = r.say(ctx)
		}
		err = errors.Join(err, r.bury(ctx))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.c.t.Log(err) // it is done again; what stays undone fails the test
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond): // as kubelets would learn it from the API
		}
	}
}

// say tells the cluster whether the nodes are ready.
func (r *recorded) say(ctx context.Context) (err error) {
	ready := "True"
	if r.lost.Load() {
		ready = "False"
	}
	now := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %q, "reason": "Recorded", "message": "for a test", "lastHeartbeatTime": %q}]}}`, ready, now)
	for _, name := range r.names {
		err = errors.Join(err, r.ask(ctx, http.MethodPatch, "/api/v1/nodes/"+name+"/status", "application/strategic-merge-patch+json", body, nil))
	}
	return err
}

// recordedPod is what the API has of a pod.
type recordedPod struct {
	Metadata struct {
		Name, Namespace   string
		DeletionTimestamp *time.Time
	}
	Spec struct{ NodeName string }
}

// pods are those of all fleets.
func (r *recorded) pods(ctx context.Context) ([]recordedPod, error) {
	var list struct{ Items []recordedPod }
	err := r.ask(ctx, http.MethodGet, "/api/v1/pods?labelSelector="+kube.Label, "", "", &list)
	return list.Items, err
}

// bury says of each pod that shall end that it has ended.
func (r *recorded) bury(ctx context.Context) error {
	all, err := r.pods(ctx)
	for _, p := range all {
		if p.Metadata.DeletionTimestamp != nil && strings.HasPrefix(p.Spec.NodeName, "recorded-") {
			path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", p.Metadata.Namespace, p.Metadata.Name)
			err = errors.Join(err, r.ask(ctx, http.MethodPatch, path+"/status", "application/strategic-merge-patch+json", `{"status": {"phase": "Failed"}}`, nil))
			err = errors.Join(err, r.ask(ctx, http.MethodDelete, path, "application/json", `{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}`, nil))
		}
	}
	return err
}

// placed are the pods by node, if each node has exactly one that does not end.
func (r *recorded) placed() (by map[string]string, all bool) {
	r.c.t.Helper()
	pods, err := r.pods(r.c.t.Context())
	if err != nil {
		r.c.t.Fatal(err)
	}
	by = map[string]string{}
	for _, p := range pods {
		if p.Metadata.DeletionTimestamp != nil || p.Spec.NodeName == "" {
			return nil, false
		}
		if by[p.Spec.NodeName] != "" {
			r.c.t.Fatalf("%s has two pods", p.Spec.NodeName)
		}
		by[p.Spec.NodeName] = p.Metadata.Name
	}
	return by, len(by) == len(r.names)
}

// Of two hundred nodes each gets one pod, and another one after an eviction. When the nodes are lost, a cancel gives all of them back and removes the
// pods.
func TestKubernetesManyNodes(t *testing.T) {
	c := newCluster(t)
	c.must("cordon", clusterNode)
	r := c.record(200)
	began := time.Now()
	d := c.drive("--out", "F")
	id := c.id("F")
	var pods map[string]string
	c.until("a pod on each node", func() (all bool) { pods, all = r.placed(); return all })
	t.Logf("after %v each of %d nodes has a pod", time.Since(began).Round(time.Second), len(pods))
	evicted := map[string]bool{}
	for _, node := range r.names[:20] {
		evicted[pods[node]] = true
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", id, pods[node])
		if err := r.ask(t.Context(), http.MethodPost, path+"/eviction", "application/json", fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, pods[node]), nil); err != nil {
			t.Fatal(err)
		}
	}
	c.until("other pods for those that were evicted", func() (all bool) {
		pods, all = r.placed()
		for _, pod := range pods {
			all = all && !evicted[pod]
		}
		return all
	})
	c.interrupt(d)
	r.lost.Store(true)
	if err := r.say(t.Context()); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if _, said, status := c.h.run("fleet", "cancel", "F"); status == 0 || !strings.Contains(said, "recorded-007 and 192 more could not be reached") {
		t.Errorf("cancel: %d: %s", status, said)
	}
	t.Logf("after %v each node is free", time.Since(began).Round(time.Second))
	c.nothing()
}
