//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A suite boots on an emulated machine without a network, runs its study on that machine's bare metal and in a container, and
// switches the machine off. Its results are read from its disk.
func TestSlowSuiteThatBoots(t *testing.T) {
	h := newHost(t)
	need(t, has("mmdebstrap") && has("qemu-system-x86_64") && has("qemu-img"), "mmdebstrap, qemu-system-x86_64 and qemu-img")
	if err := os.WriteFile(filepath.Join(h.dir, "study.yaml"), []byte(`name: booted
workloads: [{name: ladder-cpu, params: {millions: 20}}]
platforms: [{platform: bm}, {platform: cn, engines: [crun], provisioning: [whole]}]
instances: [host]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 5m}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(h.dir, "suite.qcow2")
	said := h.must("image", "--study", "./study.yaml", "--out", disk)
	if !strings.Contains(said, "runs the study booted on the machine that boots it") {
		t.Errorf("it said %q", said)
	}
	if _, errs, status := h.run("image", "--study", "./study.yaml", "--out", disk); status == 0 || !strings.Contains(errs, "file exists") {
		t.Errorf("onto a file: exit status %d, %s", status, errs)
	}
	if _, errs, status := h.run("image", "results", disk, "--out", "R"); status == 0 || !strings.Contains(errs, "its study has not ended yet") {
		t.Errorf("before the first boot: exit status %d, %s", status, errs)
	}

	// An emulated machine takes about ten times as long as others. It has one CPU: with several emulated ones, one may meet the
	// breakpoint with which another's kernel changes its own code, and panic. A machine that panics restarts, which ends QEMU here.
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var screen bytes.Buffer
	machine := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", "2G", "-display", "none", "-nic", "none", "-no-reboot",
		"-serial", "stdio", "-drive", "file="+disk+",if=virtio,cache=unsafe")
	machine.Stdout, machine.Stderr = &screen, &screen
	start := time.Now()
	if err := machine.Run(); err != nil {
		t.Fatalf("%v: %s", err, screen.Bytes())
	}
	t.Logf("it was switched off after %v", time.Since(start).Round(time.Second))
	for _, want := range []string{"Tare runs the study /etc/tare/study.yaml", "The results are kept on this disk"} {
		if !strings.Contains(screen.String(), want) {
			t.Fatalf("the machine did not say %q: %s", want, screen.Bytes())
		}
	}

	h.must("image", "results", disk, "--out", "R")
	var rows []struct {
		Platform string
		Mean     *float64
		Failed   int
	}
	decodeRows(t, h.must("summary", "R", "--format", "json"), &rows)
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.Platform] = true
		if r.Mean == nil || r.Failed != 0 {
			t.Errorf("%+v", r)
		}
	}
	if !seen["bm"] || !seen["cn"] {
		t.Errorf("it was run on %v: %s", seen, screen.Bytes())
	}
}
