//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shortCalibration is a calibration that is about as short as one can be: one round of a few more programs than the least number, because
// a tracer may miss one of so short runs. It is not a good one.
const shortCalibration = `name: short-calibration
workloads:
  - {name: events, params: {ms: 20, kind: [cpu, simple, descriptor, path, open, file-read, pipe, memory, fault, fork]}}
  - {name: ladder-syscall, params: {rounds: [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]}}
  - {name: ladder-fork, params: {children: [20, 30, 40, 50, 60, 70, 80, 90]}}
  - {name: pingpong, params: {trips: [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]}}
platforms:
  - platform: bm
  - {platform: cn, engines: [docker], provisioning: [pinned]}
instances: [1/1GB]
explain: calls,scheduler,cpu,memory
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0}
`

// A calibration is measured. It says how good its predictions are, and predicts a run, a workload that it runs, a command, and a container
// that runs.
func TestWithDockerPredict(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	if err := os.WriteFile(filepath.Join(h.dir, "short.yaml"), []byte(shortCalibration), 0o644); err != nil {
		t.Fatal(err)
	}
	h.must("run", "short.yaml", "--out", "C")
	const programs, least = 25, 19
	var checks []struct {
		Cannot             *string
		Predicted, Refused int
		Left               []struct{ Workload string } `json:"left_out"`
	}
	if out := h.must("predict", "C", "--format", "json"); json.Unmarshal([]byte(out), &checks) != nil {
		t.Fatal(out)
	}
	if len(checks) != 1 || checks[0].Cannot != nil {
		t.Fatal(h.must("predict", "C"))
	}
	if n := len(checks[0].Left); checks[0].Predicted+checks[0].Refused != n || n < least || n > programs {
		t.Errorf("%+v", checks)
	}
	// The one-round intervals may be too wide for any prediction: then the reason is given.
	predicted := func(reference string, environments int, args ...string) {
		t.Helper()
		var got struct {
			Works []struct {
				Reference   *string
				Predictions []struct {
					Ratio   *float64
					Refused *string
					Parts   []struct {
						Rate float64 `json:"per_second"`
					}
				}
			}
		}
		out := h.must(append([]string{"predict", "C", "--format", "json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(got.Works) != 1 || len(got.Works[0].Predictions) != environments || (got.Works[0].Reference != nil) != (reference != "") {
			t.Fatalf("%v: %s", args, out)
		}
		for _, p := range got.Works[0].Predictions {
			if (p.Ratio == nil) == (p.Refused == nil) || p.Ratio != nil && (!(*p.Ratio > 0) || math.IsInf(*p.Ratio, 0)) {
				t.Errorf("%v: %s", args, out)
			}
		}
	}
	predicted("", 1, "--workload", "ladder-fork", "--size", "1/1GB", "--rounds", "1", "--out", "R", "-q")
	predicted("", 1, "--of", "R")
	predicted("", 1, "--image", h.image, "--size", "1/1GB", "--rounds", "1", "--out", "S", "-q", "--", "sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done")

	name := fmt.Sprint("tare-test-predict-", os.Getpid())
	if said, err := exec.CommandContext(t.Context(), "sh", "-c", `tar -C "$(dirname "$(command -v busybox)")" -ch busybox | docker import - `+name+
		` && docker run -d --network none --cpuset-cpus 0 --name `+name+` `+name+` /busybox sh -c 'while :; do /busybox true; done'`).CombinedOutput(); err != nil {
		t.Fatalf("docker: %v: %s", err, said)
	}
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "-f", name}, {"rmi", name}} {
			if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
				t.Errorf("docker %q: %v: %s", args, err, out)
			}
		}
	})
	predicted("docker", 1, "--from-container", name, "--for", "2s") // relative to Docker: bare metal

	for want, args := range map[string][]string{
		"--of and --workload: name one thing to predict":      {"C", "--of", "R", "--workload", "cpu"},
		"--workload and a command: name one thing to predict": {"C", "--workload", "cpu", "--", "true"},
		"--for: needs --from-container":                       {"C", "--for", "2s"},
		"--service: needs --image":                            {"C", "--service", "80"},
		"no calibration: ":                                    {"R"},
		"--from-container: ":                                  {"C", "--from-container", "tare-no-such-container"},
	} {
		if _, errs, status := h.run(append([]string{"predict"}, args...)...); status == 0 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d: %s; want one line with %q", args, status, errs, want)
		}
	}
}
