package main

import (
	"os/exec"
	"strings"
	"testing"

	"tare/notebook"
)

// A start that pulls has the image before the guest. An engine that pulls no images is left out. Nothing remains of the registry or of what
// was pulled.
func TestWithDockerPulls(t *testing.T) {
	h := newHost(t)
	for _, tool := range []string{"mmdebstrap", "cc", "docker-registry", "crun"} {
		need(t, has(tool), tool)
	}
	h.write("pulls.yaml", `name: pulls
workloads: [{name: cpu, params: {millions: 1}}]
platforms: [{platform: cn, engines: [docker, crun], provisioning: [vanilla]}]
instances: [1/512MB]
starting: {cache: [warm, cold], pull: ["no", "gzip:4"]}
design: {rounds: {floor: 1, cap: 1}, timeout: 2m}
`)
	_, said, status := h.run("run", "./pulls.yaml", "--out", "R")
	if status != 0 || !strings.Contains(said, "the engines docker and cri pull images") {
		t.Fatalf("exit status %d, or it does not say that crun pulls no image:\n%s", status, said)
	}
	seen := map[string]bool{}
	for _, tr := range h.trials("R") {
		f := tr.Figures
		image, pulled := f[notebook.MomentImage]
		if tr.Failure != nil || !(tr.Value > 0) {
			t.Errorf("%s: %g, %s", tr.Treatment, tr.Value, tr.Failure)
		}
		if want := strings.Contains(tr.Treatment, "gzip:4"); pulled != want || pulled && !(0 < image && image < f[notebook.MomentCreated]) {
			t.Errorf("%s: the image is there after %g s, the guest after %g s", tr.Treatment, image, f[notebook.MomentCreated])
		}
		seen[tr.Treatment] = true
	}
	if len(seen) != 6 { // docker both ways with both caches, crun with both
		t.Errorf("measured: %v", seen)
	}
	if out, err := exec.Command("docker", "images", "--format", "{{.Repository}}").CombinedOutput(); err != nil || strings.Contains(string(out), "tare/root") {
		t.Errorf("left in Docker: %s, %v", out, err)
	}
}
