//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"tare/notebook"
)

// segments are the host's shared memory segments of System V.
func segments(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// TestServersWithLoadsOfTheirOwn: PostgreSQL, Redis and nginx answer their loads on bare metal, in each way that their parameters have, and leave nothing.
func TestServersWithLoadsOfTheirOwn(t *testing.T) {
	h := newHost(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	before := segments(t)
	h.write("servers.yaml", `name: servers
workloads:
  - {name: postgres, params: {transaction: [tpcb, select], seconds: 1, scale: 1}}
  - {name: redis, params: {operation: [set, get], requests: 1000, keys: 1000}}
  - {name: redis, params: {operation: [zadd], requests: 1000, keys: 1000, sync: [everysec, always], pipeline: 4}}
  - {name: nginx, params: {requests: 50, bytes: 1000, sees: [host, instance]}}
platforms: [{platform: bm}]
instances: [1/1GB]
design: {rounds: {floor: 1, cap: 1}, timeout: 1m}
`)
	h.must("run", "./servers.yaml", "--out", "R")
	n := map[string]int{}
	for _, tr := range h.trials("R") {
		of, _, _ := strings.Cut(tr.Treatment, "{")
		f := tr.Figures
		switch {
		case tr.Failure != nil:
			t.Errorf("%s: %s", tr.Treatment, tr.Failure)
		case !(0 < f["p50"] && f["p50"] <= f["p95"] && f["p95"] <= f["p99"]):
			t.Errorf("%s: %v", tr.Treatment, f)
		// What is measured, times the rate, is what was under way at once.
		case of == "postgres" && tr.Value*f["transactions_per_second"] < 5, of == "nginx" && tr.Value*f["requests_per_second"] < 3, of == "redis" && tr.Value*f["mean"] < 51*4:
			n[of]++
		default:
			t.Errorf("%s: %g, %v", tr.Treatment, tr.Value, f)
		}
	}
	if n["postgres"] != 4 || n["redis"] != 8 || n["nginx"] != 4 { // with A/A
		t.Errorf("trials: %v", n)
	}
	if after := segments(t); after > before {
		t.Errorf("%d shared memory segments were left", after-before)
	}

	// At a rate, pgbench and k6.
	h.write("rates.yaml", `name: rates
workloads: [{name: postgres, params: {transaction: select, scale: 1}}, {name: nginx, params: {bytes: 1000}}]
platforms: [{platform: bm}]
instances: [1/1GB]
capacity: {objective: p99=1m, from: 50, to: 51, hold: 1s}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 1m}
`)
	_, errs, _ := h.run("run", "./rates.yaml", "--out", "C") // whatever the capacity: each trial ends at the greatest rate, and says so
	for _, tr := range h.trials("C") {
		if tr.Failure == nil || !tr.Failure.Is("met-at-greatest-rate") {
			t.Errorf("%s: %v: %s", tr.Treatment, tr.Failure, errs)
		}
	}
}

// TestWithDockerPostgresIgnoresFlushesInGVisor: the shipped study, made short, says in its finding that gVisor's commits do not wait for the disk.
func TestWithDockerPostgresIgnoresFlushesInGVisor(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	need(t, has("runsc"), "runsc")
	h.write("short.yaml", strings.NewReplacer("{floor: 4, cap: 10}", "{floor: 2, cap: 2}", "trials: 3", "trials: 1", "  precision: 5%\n", "", "seconds: 1", "seconds: 1, scale: 1").
		Replace(h.must("study", "show", "postgres")))
	text := h.must("run", "./short.yaml", "--out", "R")
	if n := strings.Count(text, "gnored flushes"); n == 0 || !strings.Contains(text, "postgres syncs what it writes") {
		t.Errorf("nothing says that flushes were ignored: %s", text)
	}
	var f *notebook.Folder
	f, err := notebook.Read(h.dir + "/R")
	if err != nil {
		t.Fatal(err)
	}
	for label, synced := range f.Study.Syncs {
		if synced != strings.Contains(label, "tpcb") {
			t.Errorf("%s: synced %v", label, synced)
		}
	}
	seen := map[string]int{}
	for _, tr := range h.trials("R") {
		if tr.Failure != nil {
			t.Errorf("%s: %s", tr.Treatment, tr.Failure)
		}
		for _, engine := range []string{"docker", "gvisor", "bm"} {
			if strings.Contains(tr.Treatment, " "+engine+" ") {
				seen[engine]++
			}
		}
	}
	if seen["docker"] == 0 || seen["gvisor"] == 0 || seen["bm"] == 0 {
		t.Errorf("trials: %v", seen)
	}
}
