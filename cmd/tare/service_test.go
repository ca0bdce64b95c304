//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// write makes a file of a test's own workload or study.
func (h *testHost) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// trials reads the trials that a run left.
func (h *testHost) trials(out string) (all []notebook.Trial) {
	h.t.Helper()
	f, err := notebook.Read(filepath.Join(h.dir, out))
	if err == nil {
		err = f.Trials(func(t *notebook.Trial) error { all = append(all, *t); return nil })
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// A shop is a user's own workload with a service: a small server, and a client that sends it requests again and again.
const shop = `name: shop
title: a page is served
image: {reference: ../image}
build: {shop: shop.c}
params:
  page: {default: page, values: "[a-z]+", help: which page is asked for}
service:
  command: ["{work}/shop", serve, "{address}", "{port}"]
  port: 18080
  timeout: 10s
load:
  ready: ["{work}/shop", ask, "{address}", "{port}", "1", page]
  command: ["{work}/shop", ask, "{address}", "{port}", "20", "{page}"]
metric: {name: response time, unit: s, from: mean}
also:
  - {name: requests, unit: "1"}
  - {name: errors, unit: "1"}
`

const shopSource = `#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
	if (argc < 4) errx(2, "serve ADDRESS PORT, or ask ADDRESS PORT TIMES PAGE");
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[3])) };
	if (inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) errx(2, "%s is not an address", argv[2]);
	char b[64];
	if (!strcmp(argv[1], "serve")) {
		int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
		signal(SIGPIPE, SIG_IGN);
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(s, (struct sockaddr *)&at, sizeof at)) err(1, "port %s", argv[3]);
		if (listen(s, 64)) err(1, "listen");
		for (;;) {
			int c = accept(s, 0, 0);
			if (c < 0) err(1, "accept");
			ssize_t n = read(c, b, sizeof b);
			if (n > 0 && write(c, b, n) != n) warn("write");
			close(c);
		}
	}
	int n = atoi(argv[4]), errors = 0;
	double from = now();
	for (int i = 0; i < n; i++) {
		int c = socket(AF_INET, SOCK_STREAM, 0);
		struct timeval limit = { .tv_sec = 20 };
		setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		if (connect(c, (struct sockaddr *)&at, sizeof at)) err(1, "connecting to %s", argv[2]);
		ssize_t want = strlen(argv[5]), got = write(c, argv[5], want) == want ? read(c, b, sizeof b) : -1;
		if (got != 4 || memcmp(b, "page", 4)) errors++;
		close(c);
	}
	if (errors) fprintf(stderr, "%d of %d pages were wrong\n", errors, n);
	printf("{\"mean\":%g,\"requests\":%d,\"errors\":%d}\n", (now() - from) / n, n, errors);
	return 0;
}
`

func (h *testHost) shop() {
	h.write("shop/workload.yaml", shop)
	h.write("shop/shop.c", shopSource)
}

// TestWithDockerAServiceInContainers measures the user's own service on bare metal and in containers, on every network that they
// can have.
func TestWithDockerAServiceInContainers(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	need(t, has("runc"), "runc")
	h.shop()
	h.write("shop/workload.yaml", strings.Replace(shop, "18080", "18082", 1)) // other tests use the shop's port at the same time
	h.shops(`  - platform: bm
  - {platform: cn, engines: [docker, runc], provisioning: [pinned], networks: [bridge, host, none]}
  - {platform: cn, engines: [runc], provisioning: [pinned], networks: [macvlan]}
`, []string{"bm", "bm aa", "cn docker pinned bridge", "cn docker pinned host", "cn oci pinned bridge", "cn oci pinned host", "cn oci pinned macvlan"},
		"its service needs a network")
	if text := h.must("export", "R", "--format", "csv"); !strings.Contains(text, "load_cpu_s") {
		t.Errorf("the export has no column for the load's CPU: %.300s", text)
	}
}

// TestAServiceInVMs measures the same in virtual machines, and in containers there.
func TestAServiceInVMs(t *testing.T) {
	h := newHost(t)
	need(t, has("qemu-system-x86_64"), "qemu-system-x86_64 (qemu-system-x86)")
	h.shop()
	h.shops(`  - {platform: vm, provisioning: [vanilla], networks: [bridge, host]}
  - {platform: vmcn, provisioning: [vanilla], networks: [bridge, host]}
`, []string{"vm qemu vanilla bridge", "vmcn qemu vanilla bridge", "vmcn qemu vanilla host"},
		"vm with qemu cannot give the network host")
}

// shops runs the shop on platforms, and checks that these are measured, and that another is reported as left out.
func (h *testHost) shops(platforms string, want []string, leftOut string) {
	h.t.Helper()
	h.write("study.yaml", `name: shops
workloads: [{name: ./shop}]
platforms:
`+platforms+`instances: [1/1GB]
design: {rounds: {floor: 2, cap: 2, emulated: 1}, trials: 2, warmups: 1, timeout: 2m}
allow_emulation: true
`)
	out, errs, status := h.run("run", "./study.yaml", "--out", "R", "--format", "json")
	if status != 0 {
		h.t.Fatalf("exit status %d: %s", status, errs)
	}
	var all []struct {
		row
		Network   *string
		CHR       float64 `json:"chr"`
		HostCores int     `json:"host_cores"`
		Also      []struct {
			Name string
			Mean float64
		} `json:"secondary_metrics"`
	}
	decodeRows(h.t, out, &all)
	var names []string
	for _, r := range all {
		name := r.name()
		if r.Network != nil {
			name += " " + *r.Network
		}
		names = append(names, name)
		if r.Failed > 0 || r.Trials == 0 || r.Mean == nil || len(r.Also) == 0 || r.Also[0].Mean != 20 {
			h.t.Errorf("%s: %+v", name, r)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		h.t.Errorf("measured\n%q\nwant\n%q", names, want)
	}
	if !strings.Contains(errs, leftOut) {
		h.t.Errorf("it was not said that %q was left out: %s", leftOut, errs)
	}
	for _, tr := range h.trials("R") {
		if tr.Load == nil || len(tr.Load.CPUs) == 0 || tr.ElapsedS <= 0 {
			h.t.Errorf("trial without its load: %+v", tr)
		}
	}
}

// TestTheNetwork checks that the network study's workloads give plausible figures, in a container behind a cable.
func TestTheNetwork(t *testing.T) {
	h := newHost(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	need(t, has("runc"), "runc")
	h.write("network.yaml", `name: network
workloads:
  - {name: network-stream, params: {seconds: 1, connections: 2}}
  - {name: network-request, params: {requests: 1000, connections: 4, bytes: 1000, connect: always}}
  - {name: network-loopback, params: {seconds: 1}}
platforms: [{platform: cn, engines: [runc], provisioning: [pinned], networks: [bridge]}]
instances: [1/1GB]
design: {rounds: {floor: 1, cap: 1}, timeout: 1m}
`)
	h.must("run", "./network.yaml", "--out", "R")
	n := 0
	for _, tr := range h.trials("R") {
		if tr.Failure != nil {
			t.Errorf("%s: %s", tr.Treatment, tr.Failure)
			continue
		}
		f := tr.Figures
		gigabytes := tr.Value * f["gigabits_per_second"] / 8 // tr.Value is a time per gigabyte
		switch {
		case f["gigabits_per_second"] > 0 && math.Abs(gigabytes-1) < 0.01:
			n++
		case f["requests_per_second"] > 0 && 0 < f["p50"] && f["p50"] <= f["p99"] && tr.Value*f["requests_per_second"] < 8: // four at a time
			n++
		default:
			t.Errorf("%s: %g s, %v", tr.Treatment, tr.Value, f)
		}
	}
	if n != 3 {
		t.Errorf("%d trials, want 3", n)
	}
}

// TestBadLuckWithAService checks that each failure has its cause in the record and on one line on the screen, and leaves nothing
// behind.
func TestBadLuckWithAService(t *testing.T) {
	h := newHost(t)
	need(t, has("runc"), "runc")
	h.shop()
	busy, err := net.Listen("tcp", "0.0.0.0:18080")
	if err != nil {
		t.Fatal(err)
	}
	busy.Close()
	for _, c := range []struct {
		name, from, to string // in the workload
		platform, want string
		busy           bool
	}{
		{name: "never ready", from: `"{work}/shop", serve, "{address}", "{port}"`, to: `sleep, "1000"`, platform: "{platform: cn, engines: [runc], provisioning: [vanilla]}",
			want: "its service was not ready in 10s: the last request gave:"},
		{name: "it ends", from: `"{work}/shop", serve, "{address}", "{port}"`, to: `cat, /nosuch`, platform: "{platform: cn, engines: [runc], provisioning: [vanilla]}",
			want: "its service ended before it was ready: exit status 1: cat: can't open '/nosuch'"},
		{name: "errors", from: "default: page", to: "default: other", platform: "{platform: cn, engines: [runc], provisioning: [vanilla]}",
			want: "20 of its requests failed: 20 of 20 pages were wrong"},
		{name: "the client cannot connect", from: `"{port}", "20"`, to: `"9", "20"`,
			platform: "{platform: cn, engines: [runc], provisioning: [vanilla]}", want: "connecting to 198.18."},
		{name: "port in use", platform: "{platform: bm}", busy: true, want: "in use"},
		{name: "bare metal is rehearsed", from: "default: page", to: "default: other", platform: "{platform: bm}",
			want: "tare: workload ./shop failed when it was tried once on bare metal, before the study: 20 of its requests failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(shop, c.from, c.to, 1)
			if c.from != "" && text == shop {
				t.Fatal("the case changes nothing")
			}
			h.write("shop/workload.yaml", text)
			h.write("bad.yaml", fmt.Sprintf("name: bad\nworkloads: [{name: ./shop}]\nplatforms: [%s]\ninstances: [1/512MB]\ndesign: {rounds: {floor: 1, cap: 1}, timeout: 1m}\n", c.platform))
			if c.busy {
				l, err := net.Listen("tcp", "0.0.0.0:18080")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			out := strings.ReplaceAll(c.name, " ", "-")
			_, errs, status := h.run("run", "./bad.yaml", "--out", out)
			if status == 0 {
				t.Fatalf("exit status 0: %s", errs)
			}
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			said := lines[len(lines)-1]
			if notebook.Exists(filepath.Join(h.dir, out)) {
				all := h.trials(out)
				if len(all) == 0 || all[0].Failure == nil {
					t.Fatalf("no failed trial in the record: %+v", all)
				}
				said = words.Message(all[0].Failure)
			}
			if !strings.Contains(strings.ReplaceAll(said, "workload shop", "workload ./shop"), c.want) || strings.Contains(said, "\n") {
				t.Errorf("got  %s\nwant … %s …", said, c.want)
			}
		})
	}
	h.nothingLeft()
}

// interrupts are the CPUs that serve the host's interrupts.
func interrupts(t *testing.T) (all string) {
	t.Helper()
	files, err := filepath.Glob("/proc/irq/[0-9]*/smp_affinity_list")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil { // otherwise it is gone
			all += f + " " + string(b)
		}
	}
	return all
}

// bindInterrupt binds one of the host's interrupts to that CPU until the end of the test, so that the kernel must move it when the
// CPU goes.
func bindInterrupt(t *testing.T, cpu string) {
	t.Helper()
	files, err := filepath.Glob("/proc/irq/[0-9]*/smp_affinity_list")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		was, err := os.ReadFile(f)
		if err != nil || os.WriteFile(f, []byte(cpu), 0) != nil {
			continue // the kernel manages it
		}
		t.Cleanup(func() {
			if err := os.WriteFile(f, was, 0); err != nil {
				t.Error(err)
			}
		})
		return
	}
	need(t, false, "an interrupt that lets its CPUs be chosen")
}

// TestAloneASmallerHost checks that the host is made smaller and restored, including its interrupts, in order, and by `tare clean`
// after a kill.
func TestAloneASmallerHost(t *testing.T) {
	h := newHost(t)
	need(t, has("runc"), "runc")
	const file = "/sys/devices/system/cpu/online"
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat("/sys/devices/system/cpu/cpu1/online")
	need(t, err == nil, "a second CPU that can go offline")
	bindInterrupt(t, "1")
	served := interrupts(t)
	backAgain := func(when string) {
		t.Helper()
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, whole) {
			t.Fatalf("online %s: %q, %v, want %q", when, now, err, whole)
		}
		if now := interrupts(t); now != served {
			t.Errorf("interrupts are served %s by\n%swant\n%s", when, now, served)
		}
	}
	h.write("small.yaml", `name: small
workloads: [{name: cpu, params: {millions: 30}}]
platforms: [{platform: bm}, {platform: cn, engines: [runc], provisioning: [pinned]}]
instances: [1/512MB]
host_cores: [1, all, 4096]
figures: [{name: Figure 7, title: one size, workload: cpu, by: host_cores}]
design: {rounds: {floor: 2, cap: 2}}
`)
	out := h.must("run", "./small.yaml", "--out", "R", "--format", "json")
	var all []struct {
		HostCores int `json:"host_cores"`
		CHR       float64
		Trials    int
		Ratio     *float64
	}
	decodeRows(t, out, &all)
	sizes := map[int]int{}
	for _, r := range all {
		sizes[r.HostCores]++
		if r.CHR != 1/float64(r.HostCores) || r.Trials != 2 || r.Ratio == nil {
			t.Errorf("%+v", r)
		}
	}
	if len(sizes) != 2 || sizes[1] != 3 {
		t.Errorf("rows by host size: %v, want 3 on one CPU and 3 on all", sizes)
	}
	backAgain("after the run")

	// Bare metal without neighbours, as in the paper: without the other CPUs if nobody needs them. So it is on a smaller host too.
	h.shop()
	h.write("alone.yaml", `name: alone
workloads: [{name: cpu, params: {millions: 30}}, {name: ./shop}]
platforms: [{platform: bm, other_cpus: offline}]
instances: [1/512MB]
host_cores: [1, all]
design: {rounds: {floor: 1, cap: 1}, timeout: 1m}
`)
	h.must("run", "./alone.yaml", "--out", "A")
	notes := map[string]string{}
	f, err := notebook.Read(filepath.Join(h.dir, "A"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Guests {
		notes[strings.TrimSuffix(g.Treatment, " aa")] += strings.Join(words.MessagesOf(g.Notes), "; ") + " on " + g.Limits.CPUs + "\n"
	}
	const alone, beside = "the host's other CPUs were offline for bare metal on 0\n", "the host's other CPUs stayed online for bare metal: its load runs there on "
	for id, want := range map[string]string{
		"cpu{millions=30} bm 1/512MB": alone, "cpu{millions=30} bm 1/512MB on 1 CPUs": alone,
		"shop{page=page} bm 1/512MB": beside, "shop{page=page} bm 1/512MB on 1 CPUs": "the host's other CPUs were offline for bare metal; its load shares its CPUs: the host has no others on 0\n",
	} {
		if got := notes[id]; strings.Count(got, want) != 2 {
			t.Errorf("%s: %q, want twice %q", id, got, want)
		}
	}
	backAgain("after only bare metal")

	cmd := h.command(t.Context(), "run", "./small.yaml", "--out", "K", "--rounds", "50")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		now, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(now, whole) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no CPU went offline in a minute")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is our kill
	h.must("clean")
	backAgain("after tare clean")
	if dockerAnswers() {
		// The kernel takes the CPUs from Docker's cgroup for good. A container on the last of them shows that the cgroup has it
		// back.
		cpus := strings.FieldsFunc(strings.TrimSpace(string(whole)), func(r rune) bool { return r == '-' || r == ',' })
		set := "/sys/fs/cgroup/cpuset/docker/cpuset.cpus"
		if b, err := os.ReadFile(set); err == nil && !strings.Contains(string(b), cpus[len(cpus)-1]) {
			t.Errorf("%s is %q", set, b)
		}
	}
}

// TestWithDockerSlowPaper runs a small and further shortened study of the paper, and judges its claims. The servers are the real
// ones, and traced. Cassandra, which takes half a minute to start, starts only to be seeded, on bare metal, and in one container.
// WordPress alone is compared in several treatments and emulated.
func TestWithDockerSlowPaper(t *testing.T) {
	h := newHost(t)
	needDocker(t)
	need(t, has("mmdebstrap"), "mmdebstrap")
	need(t, has("pip3"), "pip3 (python3-pip)")
	short := h.must("study", "show", "pinning-small")
	const cassandra = `  # Rows gather in 2 MiB, so that twenty seconds meet flushes and compactions.
  - name: cassandra
    params: {threads: 20, rate: 500, operations: 10000, warm: 3000, memtable: 2}
    rounds: 3
`
	for _, c := range []struct{ long, short string }{
		// CPUs go offline in TestAloneASmallerHost.
		{"    other_cpus: offline\n", ""},
		// Memory is withheld in TestAloneBareMetalsMemory, because other tests run at the same time.
		{"    other_memory: withheld\n", ""},
		{cassandra, ""},
		{"  - {name: Figure 6, title: \"Cassandra, mean response time by instance type\", workload: cassandra, by: instance}\n", ""},
		{"rounds: 4", "rounds: 1"},
		{"floor: 6, cap: 6", "floor: 3, cap: 3"}, // with two rounds, a busy host leaves no interval, and nothing to advise
		{"warmups: 1", "warmups: 0"},
		{"frames: 60 or more, width: 480", "frames: 12, width: 160"},
		{"millions: 50 or more", "millions: 2"},
		{"users: 5", "users: 2"},
	} {
		if !strings.Contains(short, c.long) {
			t.Fatalf("the study has no %q: this test makes it shorter by its text", c.long)
		}
		short = strings.ReplaceAll(short, c.long, c.short)
	}
	h.write("paper.yaml", short)
	out, errs, status := h.run("run", "./paper.yaml", "--only", "platform=cn", "--explain=deep", "--out", "R", "--format", "json")
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	var all []struct {
		row
		Workload string
	}
	decodeRows(t, out, &all)
	n := map[string]int{}
	for _, r := range all {
		n[r.Workload]++
		if r.Failed > 0 || r.Trials == 0 {
			t.Errorf("%s %s: %+v", r.Workload, r.name(), r)
		}
	}
	for w, want := range map[string]int{"ffmpeg": 8, "mpi-search": 8, "pingpong": 4, "wordpress": 4} {
		if n[w] != want {
			t.Errorf("%s: %d rows, want %d", w, n[w], want)
		}
	}
	// Shorter than the ten seconds after which Cassandra writes its commit log to the disk by itself.
	h.write("nosql.yaml", `name: nosql
workloads: [{name: cassandra, params: {threads: 20, rate: 500, rows: 1000, operations: 300, warm: 200, sync: batch}}]
platforms: [{platform: cn, engines: [docker], provisioning: [pinned]}]
instances: [1/2GB]
figures: [{name: Figure 6, title: "Cassandra, mean response time by instance type", workload: cassandra, by: instance}]
claims: [pinning]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 10m}
`)
	if rows := rows(t, h.must("run", "./nosql.yaml", "--explain=deep", "--out", "C", "--format", "json")); len(rows) != 1 || rows[0].Failed > 0 || rows[0].Trials != 1 {
		t.Errorf("Cassandra: %+v, want one row, of one trial", rows)
	}

	// Their requests reach the disk, on bare metal too, where no cgroup counts it. The parts of the response time add up to it.
	type seconds struct {
		Key     string
		Seconds struct{ Value float64 }
	}
	var explained struct {
		Accounts []struct {
			Treatment, Workload, Of string
			PerRequest              *struct{ Value float64 } `json:"disk_operations_per_request"`
			Spent                   []seconds
		}
	}
	if err := json.Unmarshal([]byte(h.must("explain", "R", "C", "--format", "json")), &explained); err != nil {
		t.Fatal(err)
	}
	served := 0
	for _, a := range explained.Accounts {
		if a.Workload != "wordpress" && a.Workload != "cassandra" {
			continue
		}
		served++
		if a.PerRequest == nil || a.PerRequest.Value <= 0 {
			t.Errorf("%s: disk operations a request: %+v, want more than 0", a.Treatment, a.PerRequest)
		}
		all, rest, service := 0.0, math.NaN(), 0.0
		for _, s := range a.Spent {
			all += s.Seconds.Value
			switch s.Key {
			case "remainder":
				rest = s.Seconds.Value
			case "running":
				service = s.Seconds.Value
			}
		}
		if a.Of != "mean" || !(math.Abs(rest) <= 0.1*all) || service <= 0 {
			t.Errorf("%s: the account is of %q, with a remainder of %v s of %v s, and %v s of running", a.Treatment, a.Of, rest, all, service)
		}
	}
	if served != 5 {
		t.Errorf("%d accounts of servers, want 5", served)
	}

	var verdicts []struct{ ID, Verdict, Why string }
	if err := json.Unmarshal([]byte(h.must("claims", "R", "C", "--format", "json")), &verdicts); err != nil {
		t.Fatal(err)
	}
	large := false
	for _, v := range verdicts {
		if !slices.Contains([]string{"holds here", "does not hold here", "not decided", "not testable here"}, v.Verdict) || v.Why == "" && v.Verdict == "not testable here" {
			t.Errorf("%+v", v)
		}
		large = large || strings.Contains(v.Why, "112")
	}
	if len(verdicts) < 30 || !large {
		t.Errorf("%d claims, want 30 at least, and one that says that it needs 112 CPUs", len(verdicts))
	}

	h.must("report", "R", "C")
	page, err := os.ReadFile(filepath.Join(h.dir, "R", "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Figure 3", "Figure 4", "Figure 5", "Figure 6", "not testable here"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the report has no %q", want)
		}
	}

	h.startAsAdvised()

	// More ranks than the host has cores, whatever Open MPI does with them.
	h.write("ranks.yaml", `name: ranks
workloads:
  - {name: mpi-search, params: {millions: 1, ranks: 5, each: 1000, bytes: 4096}}
  - {name: mpi-prime, params: {sweeps: 2, ranks: [4, 7], sees: [host, instance]}}
platforms: [{platform: bm}]
instances: [1/2GB]
design: {rounds: {floor: 1, cap: 1}, timeout: 1m}
`)
	out, errs, status = h.run("run", "./ranks.yaml", "--out", "ranks", "--format", "json")
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	ranks := rows(t, out)
	if len(ranks) != 10 {
		t.Errorf("%d rows, want 10", len(ranks))
	}
	for _, r := range ranks {
		if r.Failed > 0 || r.Trials == 0 {
			t.Errorf("%s: %+v", r.name(), r)
		}
	}

	// Emulated, a server in a VM and MPI in a container in a VM.
	h.write("emulated.yaml", `name: emulated
workloads:
  - {name: wordpress, params: {users: 2, pages: 1}}
  - {name: mpi-search, params: {millions: 1}}
platforms: [{platform: vm, provisioning: [vanilla]}, {platform: vmcn, provisioning: [vanilla]}]
instances: [1/2GB]
design: {rounds: {floor: 1, cap: 1}, timeout: 5m}
`)
	for workload, platform := range map[string]string{"wordpress": "vm", "mpi-search": "vmcn"} {
		out, errs, status = h.run("run", "./emulated.yaml", "--accel", "tcg", "--only", "workload="+workload+",platform="+platform, "--out", platform, "--format", "json")
		if status != 0 {
			t.Fatalf("exit status %d: %s", status, errs)
		}
		emulated := rows(t, out)
		if len(emulated) != 1 {
			t.Errorf("%s: %d rows, want 1", workload, len(emulated))
		}
		for _, r := range emulated {
			if r.Failed > 0 || r.Trials == 0 || !r.Emulated {
				t.Errorf("%s: %+v", r.name(), r)
			}
		}
	}
}

// startAsAdvised starts a container with the flags that `tare advise` prints for each provisioning, and checks its cgroup. The
// advice is on a folder made here, because a run of few rounds may leave nothing to rank.
func (h *testHost) startAsAdvised() {
	h.t.Helper()
	dir := notebooktest.New(1).Add("bm 1/2GB", 1).Add("cn docker pinned 1/2GB", 1.2).Add("cn docker vanilla 1/2GB", 1.4).Write(h.t)
	images, err := exec.Command("docker", "images", "-q", "tare/image").Output()
	if err != nil || len(images) == 0 {
		h.t.Fatalf("no image of the study in Docker: %v", err)
	}
	image, _, _ := strings.Cut(string(images), "\n")
	for pick, cpus := range map[string]string{"1": "--cpuset-cpus=", "2": "--cpus="} {
		advice := h.must("advise", dir, "--workload", "ffmpeg", "--instance", "1/2GB", "--exclude", "bm", "--format", "docker", "--pick", pick)
		args := []string{"run", "--rm"}
		for _, f := range strings.Fields(advice) {
			if strings.HasPrefix(f, cpus) || strings.HasPrefix(f, "--memory=") {
				args = append(args, f)
			}
		}
		if len(args) != 4 {
			h.t.Fatalf("the advice has not one %s and one --memory=: %s", cpus, advice)
		}
		args = append(args, image, "/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status; cat /sys/fs/cgroup/cpu*/cpu.cfs_quota_us /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; cut -d ' ' -f 1 /sys/fs/cgroup/cpu.max 2>/dev/null; true")
		out, err := exec.Command("docker", args...).CombinedOutput()
		if err != nil {
			h.t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
		}
		inForce := strings.Fields(string(out))
		if !slices.Contains(inForce, fmt.Sprint(2<<30)) {
			h.t.Errorf("no memory limit of 2 GB in force: %s", out)
		}
		for _, f := range args {
			if strings.HasPrefix(f, "--cpus=") && !slices.Contains(inForce, "100000") {
				h.t.Errorf("%s is not in force: %s", f, out)
			}
			if set, ok := strings.CutPrefix(f, "--cpuset-cpus="); ok && !slices.Contains(inForce, set) {
				h.t.Errorf("%s is not in force: %s", f, out)
			}
		}
	}
}
