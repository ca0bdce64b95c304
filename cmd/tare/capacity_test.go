//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/notebook/kinds/capacity"
	"tare/notebook/notebooktest"
)

// TestACapacity searches for the capacity of a small web server in the user's own image, over HTTP. Each search begins where the
// rehearsal found it. Other tests run at the same time, so even a busy host meets the objective at the lowest rate.
func TestACapacity(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	h.write("study.yaml", `name: mine
workloads: [{name: web, image: ./image, command: [busybox, httpd, -f, -p, "18081", -h, /bin], service: 18081, load: /busybox}]
platforms: [{platform: bm}, {platform: cn, engines: [crun], provisioning: [pinned]}]
instances: [1/1GB]
capacity: {objective: p99=1s, from: 10, to: 20000, raise: 100%, hold: 1s}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 1m}
`)
	out := h.must("run", "./study.yaml", "--out", "R")
	for _, tr := range h.trials("R") {
		steps := notebooktest.Seen[capacity.Seen](&tr).Steps
		if tr.Failure != nil || len(steps) < 4 || tr.Figures["capacity_rate"] < 10 || tr.Value*tr.Figures["capacity_rate"] < 0.999 || tr.Load == nil {
			t.Errorf("trial %+v", tr)
		}
		missed := 0
		for _, s := range steps {
			if !s.Met {
				missed++
			}
		}
		if missed == 0 || missed == len(steps) {
			t.Errorf("the objective was missed in %d of %+v, want some", missed, steps)
		}
	}
	if !strings.Contains(out, ". Requests a second at p99 ≤ ") {
		t.Errorf("the table has no requests a second: %s", out)
	}
	page, err := os.ReadFile(filepath.Join(h.dir, "R", "report.html"))
	if err != nil || !strings.Contains(string(page), "Throughput against latency") {
		t.Errorf("the report has no figure of it: %v", err)
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--service", "80", "--load", "/", "--objective", "fast"}, "objective: "},
		{[]string{"--service", "80"}, "--service: needs --load"},
		{[]string{"--load", "/"}, "with --service PORT"},
		{[]string{"--service", "80", "--load", "ab http://{address}"}, "{rate}"},
	} {
		_, errs, status := h.run(append([]string{"bench", "--image", h.image}, c.args...)...)
		if status != wrongUse || !strings.Contains(errs, c.want) || strings.Count(strings.TrimSpace(errs), "\n") > 0 {
			t.Errorf("%q: %d, %s", c.args, status, errs)
		}
	}
}
