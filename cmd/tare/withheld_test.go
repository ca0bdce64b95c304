//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/desk/words"
	"tare/notebook"
)

// memoryOf is a field of the host's /proc/meminfo, in bytes.
func memoryOf(t *testing.T, field string) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 44)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("/proc/meminfo has no %s", field)
	return 0
}

// TestAloneBareMetalsMemory: bare metal has little more memory than its instance, so it reads a larger file from the disk again. All of the
// host's memory is back afterwards, also when `tare clean` comes after a kill. The instance is small, but leaves a large host some memory for
// other programs. The file is mostly a hole, which takes the page cache but no disk. Its first pass fills the cache; the next two are read.
func TestAloneBareMetalsMemory(t *testing.T) {
	h := newHost(t)
	const gb, data = 1 << 30, 64 << 20
	_, err := os.Stat("/sys/kernel/mm/hugepages")
	need(t, err == nil, "a kernel with huge pages")
	_, err = os.Stat("/proc/self/io")
	need(t, err == nil, "a kernel that counts what a process reads (CONFIG_TASK_IO_ACCOUNTING)")
	total, before := memoryOf(t, "MemTotal"), memoryOf(t, "Hugetlb")
	rest := max(2*gb, total-before-memoryOf(t, "MemAvailable")+gb) // what the host keeps in addition to the instance
	instance := min(max((total-before-rest)/2/gb, 1), 4)
	need(t, total-before-rest-instance*gb >= gb/4, "3.3 GB of memory, or 1.3 GB in addition to what is in use")
	size := instance + 3 // bare metal has the instance's memory, and at most 2 GB of the rest
	study := func(memory string) string {
		return fmt.Sprintf(`name: twice
workloads:
  - name: twice
    image: %s
    command:
      - sh
      - -c
      - |
        dd if=/dev/urandom of=data bs=1M count=%d conv=fsync && dd if=/dev/zero of=data bs=1 count=0 seek=%dG || exit 1
        was() { busybox sed -n 's/^read_bytes: //p' /proc/$$/io; }
        pass() { dd if=data of=/dev/null bs=1M || exit 1; }
        pass; a=$(was); pass; b=$(was); pass; c=$(was)
        echo once=$((b-a)) again=$((c-b)); busybox rm data
    metrics: [{name: time, unit: s}, {name: once, unit: B, match: "once=([0-9]+)"}, {name: again, unit: B, match: "again=([0-9]+)"}]
platforms: [{platform: bm%s}]
instances: [1/%dGB]
design: {rounds: {floor: 1, cap: 1}, warmups: 0, timeout: 5m}
`, h.image, data>>20, size, memory, instance)
	}
	h.write("twice.yaml", study(", other_memory: withheld"))
	h.must("run", "./twice.yaml", "--out", "R")
	if now := memoryOf(t, "Hugetlb"); now != before {
		t.Errorf("after the run %d MiB are huge pages, want %d", now>>20, before>>20)
	}
	f, err := notebook.Read(filepath.Join(h.dir, "R"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Guests) != 2 {
		t.Errorf("%d guests, want bare metal and its control", len(f.Guests))
	}
	scattered := false // the kernel had free memory in small pieces only, and bare metal's record says so
	for _, g := range f.Guests {
		notes := strings.Join(words.MessagesOf(g.Notes), "; ")
		t.Log(notes)
		scattered = scattered || strings.Contains(notes, "the kernel found too few large blocks")
		if !strings.Contains(notes, "GB of memory with its page cache, and Tare withheld ") {
			t.Errorf("of its memory the guest's record says %q", notes)
		}
	}
	const most = data / 2 // the kernel chooses which pages to drop first, and some of them may stay
	for _, tr := range h.trials("R") {
		if tr.Failure != nil || !scattered && (tr.Figures["once"] < most || tr.Figures["again"] < most) {
			t.Errorf("%s: %v and %v bytes came from the disk, want more than %d each time: %s", tr.Treatment, tr.Figures["once"], tr.Figures["again"], most, tr.Failure)
		}
	}
	if memoryOf(t, "MemAvailable") > (size+2)*gb { // a smaller host has no room for the file either way
		h.write("all.yaml", study(""))
		h.must("run", "./all.yaml", "--out", "A")
		for _, tr := range h.trials("A") {
			if tr.Failure != nil || tr.Figures["again"] >= most {
				t.Errorf("%s, with all of the memory: %v bytes came from the disk again: %s", tr.Treatment, tr.Figures["again"], tr.Failure)
			}
		}
	}

	cmd := h.command(t.Context(), "run", "./twice.yaml", "--out", "K", "--rounds", "50")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); memoryOf(t, "Hugetlb") == before; {
		if time.Now().After(deadline) {
			cmd.Process.Kill() // Fatal ends the test, whatever this says
			t.Fatal("no memory was withheld in a minute")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is our kill
	if memoryOf(t, "Hugetlb") == before {
		t.Error("the kill alone gave the memory back: tare clean has nothing to undo")
	}
	if said := h.must("clean"); !strings.Contains(said, "withheld memory") {
		t.Errorf("tare clean does not say that it gave memory back: %s", said)
	}
	if now := memoryOf(t, "Hugetlb"); now != before {
		t.Errorf("after tare clean %d MiB are huge pages, want %d", now>>20, before>>20)
	}
}
