//go:build linux

package main

import (
	"strings"
	"testing"

	"tare/lab/fault"
	"tare/notebook"
	"tare/notebook/kinds/paging"
	"tare/notebook/notebooktest"
)

// A mapper is a workload with a known page table: 16 MiB of its own, and a file of 4 MiB that it reads.
const mapper = `name: mapper
title: maps memory and a file
image: {reference: ../image}
files: [data]
build: {mapper: mapper.c}
command: ["{work}/mapper", "{work}/data"]
metric: {name: execution time, unit: s}
`

const mapperSource = `#include <err.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OWN = 16 << 20, FILE_SIZE = 4 << 20, PAGE = 4096 };

int main(int argc, char **argv) {
	volatile char sum = 0;
	int fd = open(argc > 1 ? argv[1] : "", O_RDONLY);
	if (fd < 0) err(1, "open");
	char *file = mmap(0, FILE_SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	char *own = mmap(0, OWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file == MAP_FAILED || own == MAP_FAILED) err(1, "mmap");
	if (madvise(own, OWN, MADV_NOHUGEPAGE)) err(1, "madvise");
	for (int i = 0; i < FILE_SIZE; i += PAGE) sum += file[i];
	for (int i = 0; i < OWN; i += PAGE) own[i] = 1;
	for (int n = 0; n < 400; n++) { /* for 20 s, until it has been read, on a busy host too: uses every second page again and again */
		for (int i = 0; i < OWN; i += 2 * PAGE) own[i]++;
		usleep(50000);
	}
	return 0;
}
`

// Two guests of known page tables: what both map of a file is groupable where addresses are fixed, and at other addresses where they are not; their own memory is
// exclusive, and faults in once a page.
func TestPageTablesAndFaultsOfGuests(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	if err := fault.Supported(); err != nil {
		need(t, false, "page faults that can be seen: "+err.Error())
	}
	h.write("mapper/workload.yaml", mapper)
	h.write("mapper/mapper.c", mapperSource)
	h.write("mapper/data", strings.Repeat("some text of 16 ", 4<<20/16))
	h.write("study.yaml", `name: pages
workloads: [{name: ./mapper}]
platforms: [{platform: cn, engines: [crun], provisioning: [pinned]}]
instances: [1/512MB]
paging: {guests: 2, initial: 4s, steady: 0s, faults: 1s, addresses: [fixed, random], huge_pages: [never]}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`)
	h.must("run", "./study.yaml", "--out", "R")
	trials := h.trials("R")
	if len(trials) != 2 {
		t.Fatalf("%d trials, want one with fixed addresses and one with random ones", len(trials))
	}
	const own, file = 4096, 1024 // pages
	for _, tr := range trials {
		if tr.Failure != nil || len(notebooktest.Seen[paging.Seen](&tr).PageTables) != 1 || notebooktest.Seen[paging.Seen](&tr).PageFaults == nil {
			t.Fatalf("%s: %s, %d readings, faults %v", tr.Treatment, tr.Failure, len(notebooktest.Seen[paging.Seen](&tr).PageTables), notebooktest.Seen[paging.Seen](&tr).PageFaults)
		}
		p, f := notebooktest.Seen[paging.Seen](&tr).PageTables[0], notebooktest.Seen[paging.Seen](&tr).PageFaults
		shared, other := p.Groupable, p.Elsewhere
		if strings.Contains(tr.Treatment, "addresses="+notebook.AddressesRandom) {
			shared, other = other, shared
		}
		if p.State != paging.Initial || p.Guests != 2 || p.Processes != 2 || shared < 2*file || shared > 2*file+1000 {
			t.Errorf("%s: %+v, want the file's %d pages shared by both", tr.Treatment, p, file)
		}
		if other > 600 { // a static program's own pages are at one address, and the kernel's [vdso] at others
			t.Errorf("%s: %d entries are shared the other way", tr.Treatment, other)
		}
		if exclusive := p.Entries - p.Groupable - p.Elsewhere; exclusive < 2*own || exclusive > 2*own+1000 || p.Huge != 0 {
			t.Errorf("%s: %d exclusive entries, %d of huge pages, want %d and a few, and none", tr.Treatment, exclusive, p.Huge, 2*own)
		}
		if n := f.Kinds[fault.Anonymous.String()]; n+f.Kinds[fault.Unknown.String()] < 2*own || n > 2*own+500 || f.Lost != 0 || f.Kinds[fault.Unknown.String()] > own/100 {
			// A fault's mapping is not found while the same trial clears accessed bits: see docs/method.md.
			t.Errorf("%s: %+v, want %d anonymous faults and a few, none lost and few unknown", tr.Treatment, f, 2*own)
		}
		// Half of each guest's own pages are used in each half of the time, and few others. A half has to be longer than it takes to map them, on a
		// slow host too.
		if p.HalvesS < 0.5 || p.Reused < own || p.Reused > own+500 {
			t.Errorf("%s: %d entries are used in each half of %g s, want %d and a few", tr.Treatment, p.Reused, 2*p.HalvesS, own)
		}
		// The runtime makes the second guest while it is watched; it forks, and so has write-protect faults.
		if b := notebooktest.Seen[paging.Seen](&tr).BringUp; b == nil || b.Guests != 1 || b.Kinds[fault.WriteProtect.String()] < 10 || b.Kinds[fault.Read.String()] < 10 || b.Faults() > 20000 {
			t.Errorf("%s: %+v, want the faults of making one guest", tr.Treatment, b)
		}
		// Which of them a fault maps around another is chance: lab/fault's tests count them to the fault.
		if repeats, reads := f.Repeated[fault.Read.String()], f.Kinds[fault.Read.String()]; repeats < 1 || repeats >= reads {
			t.Errorf("%s: %d of %d read faults repeat the other guest's", tr.Treatment, repeats, reads)
		}
	}
	h.must("claims", "R", "--study", "characterization")
	h.must("report", "R")
	if out := h.must("summary", "R"); !strings.Contains(out, "exclusive entries, initial in %") {
		t.Errorf("the summary does not name what was read: %s", out)
	}
	h.nothingLeft()
}

// A real database maps one file in all guests: what they search is in the same frames for all of them, and is used again and again.
func TestADatabaseThatAllGuestsMap(t *testing.T) {
	h := newHost(t)
	need(t, has("crun"), "crun")
	need(t, has("mmdebstrap"), "mmdebstrap")
	h.write("study.yaml", `name: database
workloads: [{name: slapd, params: {entries: 2000, operations: 500}}]
platforms: [{platform: cn, engines: [crun], provisioning: [pinned]}]
instances: [1/512MB]
paging: {guests: 3, initial: 250ms, steady: 3s, addresses: [fixed], huge_pages: [never]}
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`)
	h.must("run", "./study.yaml", "--out", "R")
	trials := h.trials("R")
	if len(trials) != 1 || trials[0].Failure != nil {
		t.Fatalf("%d trials, %v", len(trials), trials)
	}
	tables := notebooktest.Seen[paging.Seen](&trials[0]).PageTables
	if len(tables) != 2 || tables[1].State != paging.Steady {
		t.Fatalf("%d readings", len(tables))
	}
	p := tables[1]
	if of := float64(p.Entries); p.Guests != 3 || p.Processes < 3 || float64(p.Groupable) < 0.3*of || p.Data.Groupable < 300 || p.Engine.Entries == 0 {
		t.Errorf("%+v, want the database's file in all guests", p)
	}
	if p.HalvesS > 0 && p.ReusedGroupable < 300 {
		t.Errorf("%d groupable entries are used repeatedly; a search uses some hundred", p.ReusedGroupable)
	}
	h.nothingLeft()
}
