//go:build linux

package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/engine/qemu"
	"tare/notebook"
	"tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// A holder is a workload that uses a known amount of memory: some of its pages are all different, and some are all alike.
const holder = `name: holder
title: holds memory
image: {reference: ../image}
build: {holder: holder.c}
params:
  own: {default: "16", values: 1 to 1000, help: MiB of pages that are all different}
  alike: {default: "4", values: 0 to 1000, help: MiB of pages that are all the same and may be merged}
command: ["{work}/holder", "{own}", "{alike}"]
metric: {name: execution time, unit: s}
`

const holderSource = `#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char *map(size_t n) {
	char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) err(1, "mmap");
	madvise(p, n, MADV_NOHUGEPAGE);
	return p;
}

int main(int argc, char **argv) {
	if (argc != 3) errx(2, "OWN ALIKE, in MiB");
	size_t own = strtoul(argv[1], 0, 10) << 20, alike = strtoul(argv[2], 0, 10) << 20;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now); /* so that no two holders hold the same */
	char *p = map(own);
	for (size_t i = 0; i < own; i += 4096) {
		uint64_t v[3] = { i + 1, now.tv_sec, now.tv_nsec };
		memcpy(p + i, v, sizeof v);
	}
	if (alike) {
		char *q = map(alike);
		memset(q, 'x', alike);
		if (madvise(q, alike, MADV_MERGEABLE)) err(1, "MADV_MERGEABLE");
	}
	for (;;) pause();
}
`

func (h *testHost) holder() {
	h.t.Helper()
	_, err := os.Stat("/sys/kernel/mm/ksm/run")
	need(h.t, err == nil, "a kernel that can merge pages (CONFIG_KSM)")
	require.NothingMerged(h.t)
	h.write("holder/workload.yaml", holder)
	h.write("holder/holder.c", holderSource)
}

// The memory of guests whose use is known, with and without merged pages.
func TestSlowGuestsAreWeighed(t *testing.T) {
	h := newHost(t)
	need(t, has("lxc-start"), "lxc-start (lxc)")
	need(t, has("qemu-system-x86_64"), "qemu-system-x86_64 (qemu-system-x86)")
	h.holder()
	h.write("study.yaml", `name: weights
workloads: [{name: ./holder}]
platforms:
  - platform: bm
  - {platform: cn, engines: [lxc], provisioning: [pinned]}
instances: [1/512MB]
memory: {guests: [1, 3], ksm: paper}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`)
	h.must("run", "./study.yaml", "--out", "R")
	trials := h.trials("R")
	if len(trials) != 3 {
		t.Errorf("%d trials, want those of bare metal, its twin and a container", len(trials))
	}
	for _, tr := range trials {
		if tr.Failure != nil {
			t.Errorf("%s: %s", tr.Treatment, tr.Failure)
			continue
		}
		// 16 and 4 MiB are the holder's; the rest is its library and, for a container, the engine's own process.
		for _, c := range []struct {
			metric    notebook.Metric
			low, high float64
		}{
			{memory.PSS, 20, 24}, {memory.Alone, 20, 25}, {memory.Added, 20, 24},
			{memory.Merged, 16, 20}, {memory.AddedKSM, 16, 20}, {memory.Within, 3.9, 5},
		} {
			if got := tr.Figures[c.metric.Name]; got < c.low || got > c.high {
				t.Errorf("%s: %s is %.2f MiB, want %g to %g", tr.Treatment, c.metric.Name, got, c.low, c.high)
			}
		}
		// A container's cgroup is charged with at least stacks, page tables and slabs. Bare metal is in no group of its own.
		kernel, told := tr.Figures[memory.Kernel.Name]
		if container := strings.Contains(tr.Treatment, "lxc"); told != container || told && (kernel < 0.05 || kernel > 20) {
			t.Errorf("%s: the kernel has %.3f MiB for it, known: %v", tr.Treatment, kernel, told)
		}
		t.Logf("%s: kernel memory %.3f MiB, %v", tr.Treatment, kernel, told)
		// Of three times 1024 identical pages at least one page for each 256 remains (max_page_sharing).
		if got := tr.Value - tr.Figures[memory.Merged.Name]; got < 3.9 || got > 4.2 {
			t.Errorf("%s: KSM takes %.2f MiB of each guest, want 4", tr.Treatment, got)
		}
		if !slices.ContainsFunc(notebooktest.Seen[memory.Seen](&tr).Weights, func(w memory.Weight) bool {
			return w.Guests == 3 && slices.ContainsFunc(w.Last.Processes, func(p notebook.MemoryProcess) bool { return p.Name == "holder" && p.PSS > 20*notebook.MiB })
		}) {
			t.Errorf("%s: the holder is not among the processes of the last guest: %+v", tr.Treatment, notebooktest.Seen[memory.Seen](&tr).Weights)
		}
	}
	if got := force(t, "/sys/kernel/mm/ksm/run"); got != "0" {
		t.Errorf("after the run the kernel merges pages: %s", got)
	}
	h.must("report", "R")
	h.must("claims", "R")
	h.must("export", "R")

	// A VM's memory is QEMU's, which includes the guest's.
	h.write("vm.yaml", `name: vms
workloads: [{name: ./holder}]
platforms: [{platform: vm, provisioning: [pinned]}]
instances: [1/512MB]
memory: {guests: [1]}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
allow_emulation: true
`)
	h.must("run", "./vm.yaml", "--out", "V")
	kernel, err := qemu.FindKernel(t.Context(), h.state)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.Stat(kernel.Image)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range h.trials("V") {
		// QEMU's copy of the kernel's file has a line of its own: all of it except its real-mode part and two pages that other
		// things share.
		if got, want := tr.Figures[memory.Copy.Name]*notebook.MiB, float64(image.Size()); got > want || got < want-(128<<10) {
			t.Errorf("%s: QEMU's copy of the kernel has %.0f bytes, the file %.0f", tr.Treatment, got, want)
		}
		t.Logf("%s: kernel memory %.3f MiB", tr.Treatment, tr.Figures[memory.Kernel.Name])
		if tr.Failure != nil || tr.Value < 50 || tr.Value > 600 {
			t.Errorf("a VM of 512 MB: %.1f MiB, %s; want more than its guest's programs take, and not much more than all of it", tr.Value, tr.Failure)
		}
	}
	h.nothingLeft()
}

// A kill while the kernel merges pages leaves settings that the next command puts back.
func TestKSMIsPutBackAfterAKill(t *testing.T) {
	h := newHost(t)
	h.holder()
	const run, pages = "/sys/kernel/mm/ksm/run", "/sys/kernel/mm/ksm/pages_to_scan"
	before := map[string]string{run: force(t, run), pages: force(t, pages)}
	h.write("study.yaml", `name: weights
workloads: [{name: ./holder}]
platforms: [{platform: bm}]
instances: [1/512MB]
memory: {guests: [1, 2, 3, 4], ksm: paper}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := h.command(ctx, "run", "./study.yaml", "--out", "R")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for force(t, run) != "1" { // the kernel gives no notice
		select {
		case err := <-ended:
			t.Fatalf("it ended before anything was merged: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if got := force(t, run); got != "1" {
		t.Errorf("after kill -9 %s says %q: was it changed at all?", run, got)
	}
	h.must("clean")
	for file, was := range before {
		if got := force(t, file); got != was {
			t.Errorf("%s says %q, want %q", file, got, was)
		}
	}
}
