//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/notebook"
)

// segments are the IDs of the host's shared memory segments of System V.
func segments(t *testing.T) (ids []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		ids = append(ids, strings.Fields(line)[1])
	}
	return ids
}

// leftSegments fails if segments remain that were not there before. Other programs of the host make segments too and remove them, so each has
// time for that.
func leftSegments(t *testing.T, before []string) {
	t.Helper()
	var left []string
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Second / 4) {
		left = slices.DeleteFunc(segments(t), func(id string) bool { return slices.Contains(before, id) })
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("shared memory segments were left: %v", left)
}

// answered checks the trials that a run left, and counts them by engine and workload.
func (h *testHost) answered(out string) map[string]int {
	h.t.Helper()
	n := map[string]int{}
	for _, tr := range h.trials(out) {
		of, _, _ := strings.Cut(tr.Treatment, "{")
		_, where, _ := strings.Cut(tr.Treatment, "} ")
		engine := strings.Fields(strings.TrimPrefix(where, "cn "))[0]
		f := tr.Figures
		switch {
		case tr.Failure != nil:
			h.t.Errorf("%s: %s", tr.Treatment, tr.Failure)
		case !(0 < f["p50"] && f["p50"] <= f["p95"] && f["p95"] <= f["p99"]):
			h.t.Errorf("%s: %v", tr.Treatment, f)
		// The measured time multiplied by the rate is the number of simultaneous requests.
		case of == "postgres" && tr.Value*f["transactions_per_second"] < 5, of == "nginx" && tr.Value*f["requests_per_second"] < 3, of == "redis" && tr.Value*f["mean"] < 51*4:
			n[engine+" "+of]++
		default:
			h.t.Errorf("%s: %g, %v", tr.Treatment, tr.Value, f)
		}
	}
	return n
}

// atARate lets a load send requests at a rate on bare metal. Whatever the capacity is, each trial ends at the greatest rate, and
// says so.
func (h *testHost) atARate(use string) {
	h.t.Helper()
	h.write("rate.yaml", "name: rate\nworkloads: ["+use+`]
platforms: [{platform: bm}]
instances: [1/1GB]
capacity: {objective: p99=1m, from: 50, to: 51, hold: 1s}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 1m}
`)
	_, errs, _ := h.run("run", "./rate.yaml", "--out", "C") // it fails, because no trial finds a capacity
	if _, err := notebook.Read(h.dir + "/C"); err != nil {
		h.t.Fatalf("the study did not begin: %v: %s", err, errs)
	}
	all := h.trials("C")
	for _, tr := range all {
		if tr.Failure == nil || !tr.Failure.Is("met-at-greatest-rate") {
			h.t.Errorf("%s: %v: %s", tr.Treatment, tr.Failure, errs)
		}
	}
	if len(all) != 2 { // with A/A
		h.t.Errorf("%d trials at a rate: %s", len(all), errs)
	}
}

// TestServersWithLoadsOfTheirOwn checks that Redis and nginx answer their loads on bare metal, in each way that their parameters
// allow.
func TestServersWithLoadsOfTheirOwn(t *testing.T) {
	h := newHost(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	h.write("servers.yaml", `name: servers
workloads:
  - {name: redis, params: {operation: get, requests: 1000, keys: 1000}}
  - {name: redis, params: {operation: set, requests: 1000, keys: 1000, sync: everysec}}
  - {name: redis, params: {operation: zadd, requests: 1000, keys: 1000, sync: always, pipeline: 4}}
  - {name: nginx, params: {requests: 50, bytes: 1000, sees: [host, instance]}}
platforms: [{platform: bm}]
instances: [1/1GB]
design: {rounds: {floor: 1, cap: 1}, timeout: 1m}
`)
	h.must("run", "./servers.yaml", "--out", "R")
	if n := h.answered("R"); n["bm redis"] != 6 || n["bm nginx"] != 4 { // with A/A
		t.Errorf("trials: %v", n)
	}
	h.atARate("{name: nginx, params: {bytes: 1000}}")
}

// TestWithDockerPostgresIgnoresFlushesInGVisor runs the shipped study, shortened. It measures PostgreSQL on bare metal, in Docker
// and in gVisor, leaves nothing behind, and finds that gVisor's commits do not wait for the disk.
func TestWithDockerPostgresIgnoresFlushesInGVisor(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	need(t, has("runsc"), "runsc")
	before := segments(t)
	h.write("short.yaml", strings.NewReplacer("{floor: 4, cap: 10}", "{floor: 1, cap: 1}", "trials: 3", "trials: 1", "warmups: 1", "warmups: 0",
		"  precision: 5%\n", "", "seconds: 1", "seconds: 1, scale: 1").Replace(h.must("study", "show", "postgres")))
	text := h.must("run", "./short.yaml", "--out", "R")
	if n := strings.Count(text, "gnored flushes"); n == 0 || !strings.Contains(text, "postgres syncs what it writes") {
		t.Errorf("nothing says that flushes were ignored: %s", text)
	}
	f, err := notebook.Read(h.dir + "/R")
	if err != nil {
		t.Fatal(err)
	}
	for label, synced := range f.Study.Syncs {
		if synced != strings.Contains(label, "tpcb") {
			t.Errorf("%s: synced %v", label, synced)
		}
	}
	if n := h.answered("R"); n["bm postgres"] != 4 || n["docker postgres"] != 2 || n["gvisor postgres"] != 2 { // with A/A
		t.Errorf("trials: %v", n)
	}
	h.atARate("{name: postgres, params: {transaction: select, scale: 1}}")
	leftSegments(t, before)
}

// TestWithDockerPostgresInAnImage follows the README: a script builds an image with PostgreSQL and pgbench, which is the load.
func TestWithDockerPostgresInAnImage(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	before := segments(t)
	build, err := filepath.Abs("../../scripts/postgres-image")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), build, "postgres.tar", "1")
	cmd.Dir = h.dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	sh := newShell(t, `{ printf '%s\0' "$@"; printf '\1'; } >>"$ARGS"`)
	for _, c := range commandsOf(t, readme) {
		if strings.Contains(c.line, "./postgres.tar") {
			h.must(append(sh.words(c.line)[0], "--rounds", "1", "--provisioning", "set")...)
		}
	}
	n := map[string]int{}
	for _, tr := range h.trials("pgbench") {
		if tr.Failure != nil || tr.Value <= 0 || tr.Value > 1000 {
			t.Errorf("%s: %g ms, %v", tr.Treatment, tr.Value, tr.Failure)
		}
		n[strings.Fields(tr.Treatment[strings.LastIndex(tr.Treatment, "} "):])[1]]++
	}
	if n["bm"] == 0 || n["cn"] == 0 {
		t.Errorf("trials: %v", n)
	}
	leftSegments(t, before)
}
