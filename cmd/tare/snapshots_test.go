package main

import (
	"strings"
	"testing"

	"tare/notebook"
	record "tare/notebook/kinds/arrivals"
	"tare/notebook/notebooktest"
)

// Requests restore snapshots of runc's containers at a rate, and their functions then end. An engine that saves no container is left out of that,
// with the reason.
func TestSnapshotsAtARate(t *testing.T) {
	h := newHost(t)
	for _, tool := range []string{"mmdebstrap", "cc", "criu", "runc", "crun"} {
		need(t, has(tool), tool)
	}
	h.write("s.yaml", `name: s
workloads: [{name: hashing, params: {megabytes: 1}}]
platforms: [{platform: cn, engines: [runc, crun], provisioning: [vanilla]}]
instances: [1/256MB]
arrivals: {rates: [4], from: [created, snapshot], for: 1s, least: 4, most: 4}
figures: [{name: From, title: Start time, workload: hashing, by: from}]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`)
	_, said, status := h.run("run", "./s.yaml", "--out", "R")
	if status != 0 || !strings.Contains(said, "cn crun vanilla 1/256MB: cn with crun cannot give a saved state: Tare saves only containers of runc") {
		t.Fatalf("exit status %d, or it does not say that crun saves no container:\n%s", status, said)
	}
	seen := map[string]bool{}
	for _, tr := range h.trials("R") {
		b := notebooktest.Seen[record.Seen](&tr).Bringup
		if tr.Failure != nil || b == nil || len(b.Starts) != 4 {
			t.Errorf("%s: %s, %+v", tr.Treatment, tr.Failure, b)
			continue
		}
		for i, s := range b.Starts {
			if restored := strings.Contains(tr.Treatment, notebook.FromSnapshot); !(0 < s.CallS && 0 < s.AnswerS) || restored && s.CallS > s.AnswerS {
				t.Errorf("%s: request %d: %+v", tr.Treatment, i, s)
			}
		}
		seen[tr.Treatment] = true
	}
	if len(seen) != 3 {
		t.Errorf("measured: %v", seen)
	}
	if out := h.must("summary", "R"); !strings.Contains(out, notebook.FactorFrom.Name+"="+notebook.FromSnapshot) {
		t.Error(out)
	}
	h.must("report", "R")
}
