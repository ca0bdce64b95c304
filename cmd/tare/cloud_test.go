//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/words"
	"tare/notebook"
	"tare/workloads"
)

// HPCC and IOR run without limits on bare metal and in a container, and give every figure; a disk that is full is the cause of a failed trial.
func TestSlowCloudBenchmarking(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	ior, err := workloads.FS.ReadFile("ior/ior.sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"full/ior.sh": string(ior),
		// What a container has at /dev/shm is half of its memory, and no more.
		"full/workload.yaml": `name: full
image: {suite: trixie, packages: [fio, jq, gcc, libc6-dev, libopenmpi-dev, openmpi-bin]} # as ior has it
files: [ior.sh]
command: [/usr/bin/env, TARE_SCRATCH=/dev/shm, /bin/sh, "{work}/ior.sh", posix, write, sequential, "300", "0", "1", "1", "512", "0"]
metric: {name: operations per second, unit: 1/s, better: higher, from: operations_per_second}
`,
		"cloud.yaml": `name: cloud
workloads:
  - {name: hpcc, params: {n: 256, nb: 64}}
  - {name: ior, params: {api: [posix, direct, mpiio], operation: write, access: random, megabytes: 4, seconds: 30}}
  - {name: ./full, instances: [1/512MB]}
platforms:
  - platform: bm
  - {platform: cn, engines: [crun|runc], provisioning: [whole, vanilla]}
instances: [host]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`,
	} {
		file := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h.run("run", "./cloud.yaml", "--out", "R") // its status is of the full disk
	type also struct {
		Name string
		Mean *float64
	}
	var rows []struct {
		Workload, Platform, Provisioning string
		Instance                         string
		AA                               bool `json:"aa_control"`
		Mean                             *float64
		Failed                           int
		Also                             []also `json:"secondary_metrics"`
	}
	decodeRows(t, h.must("summary", "R", "--format", "json"), &rows)
	seen := map[string]int{}
	for _, r := range rows {
		if r.Workload == "full" {
			continue
		}
		seen[r.Workload+" "+strings.TrimSpace(r.Platform+" "+r.Provisioning)]++
		if r.Failed > 0 || r.Mean == nil || !(*r.Mean > 0) || r.Instance != "host" {
			t.Errorf("%+v", r)
		}
		want := map[string]int{"hpcc": 22, "ior": 3}[r.Workload]
		if len(r.Also) != want {
			t.Errorf("%s on %s has %d other figures, want %d: %+v", r.Workload, r.Platform, len(r.Also), want, r.Also)
		}
		for _, a := range r.Also {
			if a.Mean == nil || !(*a.Mean > 0) {
				t.Errorf("%s on %s: %s: %v", r.Workload, r.Platform, a.Name, a.Mean)
			}
		}
	}
	for row, want := range map[string]int{"hpcc bm": 2, "hpcc cn whole": 1, "hpcc cn vanilla": 1, "ior bm": 6, "ior cn whole": 3, "ior cn vanilla": 3} {
		if seen[row] != want {
			t.Errorf("%d rows of %s, want %d; all: %v", seen[row], row, want, seen)
		}
	}
	trials, err := os.ReadFile(filepath.Join(h.dir, "R", "trials.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cause := ""
	for line := range strings.Lines(string(trials)) {
		var x struct {
			Treatment string
			Failure   *notebook.Message
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(x.Treatment, "full cn ") {
			cause = words.Message(x.Failure)
		}
	}
	if !strings.Contains(cause, "No space left on device") {
		t.Errorf("a full disk: %q; want what the kernel says of it", cause)
	}
}
