//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestSlowMappedFiles: the workloads over mapped files whose programs are Debian's do their work on bare metal, and their results are right. The
// others have tests without a platform.
func TestSlowMappedFiles(t *testing.T) {
	h := newHost(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	need(t, has("cc"), "cc")
	h.write("mapped.yaml", `name: mapped
workloads:
  - {name: uriparser, params: {form: dense, megabytes: 1}}
  - {name: uriparser, params: {form: sparse, megabytes: 1}}
  - {name: fio-mapped, params: {does: read, megabytes: 1}}
  - {name: fio-mapped, params: {does: write, megabytes: 1}}
  - {name: fio-mapped, params: {does: mixed, megabytes: 1}}
  - {name: httpd, params: {megabytes: 2, passes: 2}}
platforms: [{platform: bm}]
instances: [1/1GB]
design: {rounds: {floor: 1, cap: 1}, timeout: 1m}
`)
	h.must("run", "./mapped.yaml", "--out", "R")
	done := map[string]bool{}
	for _, tr := range h.trials("R") {
		f := tr.Figures
		of, _, _ := strings.Cut(tr.Treatment, " ")
		switch {
		case tr.Failure != nil || tr.Value <= 0 || tr.Value > 60:
			t.Errorf("%s: %g, %s", tr.Treatment, tr.Value, tr.Failure)
		case strings.HasPrefix(of, "uriparser{"), strings.HasPrefix(of, "fio-mapped{") && f["operations_per_second"] > 0,
			strings.HasPrefix(of, "httpd{") && f["requests_per_second"] > 0 && 0 < f["p50"] && f["p50"] <= f["p99"]:
			done[of] = true
		default:
			t.Errorf("%s: %g s, %v", tr.Treatment, tr.Value, f)
		}
	}
	if len(done) != 6 {
		t.Errorf("done: %v", done)
	}
}
