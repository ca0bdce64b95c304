//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A command has the device that it was measured with on bare metal, in a container of a runtime and in LXC, with what comes with it; gVisor is
// left out, and so is a device that there is not, each with the reason.
func TestACommandWithADevice(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	need(t, has("lxc-start") && has("runsc"), "LXC and gVisor")
	const dir = "/var/run/cdi" // where descriptions are that last as long as the host is up
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("tare-test-%d", os.Getpid())
	file := filepath.Join(dir, name+".yaml")
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
	described := fmt.Sprintf(`cdiVersion: 0.6.0
kind: tare.test/%s
devices:
- name: log
  containerEdits: {env: [WHERE=/dev/own/log], deviceNodes: [{path: /dev/own/log, hostPath: /dev/kmsg}]}
- name: gone
  containerEdits: {deviceNodes: [{path: /dev/no-such-device-here}]}
`, name)
	if err := os.WriteFile(file, []byte(described), 0o644); err != nil {
		t.Fatal(err)
	}
	device := "tare.test/" + name + "=log"
	// It opens the device and works a little.
	command := []string{"sh", "-c", ": >$WHERE && " + count[2]}
	said := h.must(append([]string{"bench", "--image", h.image, "--device", device, "--platforms", "bm,cn:crun|runc,cn:lxc,cn:gvisor", "--instances", "1/512MB", "--rounds", "1", "--out", "R", "--"}, command...)...)
	if !strings.Contains(said, "devices="+device) {
		t.Errorf("the table does not name the device: %s", said)
	}
	var names []string
	for _, r := range rows(t, h.must("summary", "R", "--format", "json")) {
		names = append(names, r.name())
		if r.Failed != 0 || r.Mean == nil {
			t.Errorf("%+v", r)
		}
	}
	slices.Sort(names)
	if want := []string{"bm", "bm aa", "cn lxc pinned", "cn lxc vanilla", "cn oci pinned", "cn oci vanilla"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	if !strings.Contains(said, "nvproxy") {
		t.Errorf("why gVisor is left out is not said: %s", said)
	}

	for asked, want := range map[string]string{
		"tare.test/" + name + "=other": "has no device tare.test/" + name + "=other",
		"tare.test/" + name + "=gone":  "/dev/no-such-device-here",
	} {
		if _, errs, status := h.run(append([]string{"bench", "--image", h.image, "--device", asked, "--platforms", "bm", "--rounds", "1", "--out", "N", "--"}, command...)...); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit status %d, %s; want %q", asked, status, errs, want)
		}
	}
	if _, errs, status := h.run("bench", "--device", "gpu", "--", "true"); status == 0 || !strings.Contains(errs, "VENDOR/CLASS=DEVICE") {
		t.Errorf("no device's name: exit status %d, %s", status, errs)
	}
}

// A guest that does the measured work without end is beside the measured one, on another CPU where there is one; of work whose length cannot be chosen there is no such
// neighbour.
func TestNeighboursThatDoTheSame(t *testing.T) {
	h := newHost(t)
	need(t, has("crun") || has("runc"), "crun or runc")
	const loop = `name: loop
image: {reference: %s}
%scommand: [sh, -c, "i=0; while [ $i -lt $0 ]; do i=$((i+1)); done", "%s"]
metric: {name: time, unit: s}
`
	h.write("loop/workload.yaml", fmt.Sprintf(loop, h.image, "length: times\nparams: {times: {default: \"300000\", values: 1 to 999999999}}\n", "{times}"))
	h.write("short/workload.yaml", strings.Replace(fmt.Sprintf(loop, h.image, "", "300000"), "name: loop", "name: short", 1))
	study := `name: same
workloads: [{name: ./loop}]
platforms: [{platform: bm}, {platform: cn, engines: [crun|runc], provisioning: [pinned]}]
instances: [1/256MB]
neighbours: [{work: 0}, {work: 1}]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`
	h.write("same.yaml", study)
	h.must("run", "./same.yaml", "--out", "R")
	beside := 0
	for _, tr := range h.trials("R") {
		if tr.Failure != nil {
			t.Errorf("%s: %s", tr.Treatment, tr.Failure)
		}
		if strings.Contains(tr.Treatment, "neighbours=none") {
			continue
		}
		beside++
		if tr.Neighbours == nil || len(tr.Neighbours.Neighbours) != 1 {
			t.Fatalf("%s: %+v", tr.Treatment, tr.Neighbours)
		}
		if n := tr.Neighbours.Neighbours[0]; n.Busy != "work" || n.RanS <= 0 || (n.Seat == 0) != (runtime.NumCPU() < 2) {
			t.Errorf("%s: %+v", tr.Treatment, n)
		}
	}
	if beside != 3 { // bare metal twice, and the container
		t.Errorf("%d trials beside a neighbour", beside)
	}
	h.write("same.yaml", strings.Replace(study, "./loop", "./short", 1))
	if _, said, status := h.run("run", "./same.yaml", "--out", "S"); status == 0 || !strings.Contains(said, "workload short ends by itself, because its length cannot be chosen") {
		t.Errorf("exit status %d: %s", status, said)
	}
	h.nothingLeft()
}
