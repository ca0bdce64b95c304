//go:build linux

package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutBPF in the environment makes this program start another one to which the kernel refuses bpf(2).
const withoutBPF = "TARE_TEST_WITHOUT_BPF"

// refuseBPF becomes the program in args. For this program and all that it starts, bpf(2) fails with EPERM, as in a container.
func refuseBPF(args []string) error {
	runtime.LockOSThread() // the filter belongs to this thread, and to the program after it
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_BPF, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, os.Environ())
}

type explained struct{ Accounts []explainedAccount }

type explainedAccount struct {
	Name     string
	Of       string
	Platform string
	Instance string
	AA       bool
	Coarse   bool
	Baseline *string
	Has      bool                    `json:"has_gap"`
	Gap      struct{ Value float64 } `json:"gap_s"`
	Parts    []struct {
		Key     string
		Seconds struct{ Value, Low, High *float64 }
		Share   struct{ Value, High *float64 }
	}
	Spent []struct {
		Key     string
		Seconds struct{ Value float64 }
	}
	Missing  map[string]string
	Sentence string
}

// aFifth is the account of the vanilla container of a fifth of a core.
func (e *explained) aFifth(t testing.TB) *explainedAccount {
	t.Helper()
	for i, a := range e.Accounts {
		if a.Platform == "cn" && a.Instance == "0.2/256MB" && strings.Contains(a.Name, "CPU quota") {
			return &e.Accounts[i]
		}
	}
	t.Fatalf("no account of a fifth of a core: %+v", e.Accounts)
	return nil
}

// closes fails the test if the parts of an account do not add up to the overhead, or have no interval.
func (e *explained) closes(t testing.TB) {
	t.Helper()
	for _, a := range e.Accounts {
		if a.Baseline == nil {
			continue
		}
		sum, last := 0.0, ""
		for _, p := range a.Parts {
			sum, last = sum+*p.Seconds.Value, p.Key
			if p.Seconds.Low == nil || p.Seconds.High == nil {
				t.Errorf("%s: %s has no interval", a.Name, p.Key)
			}
		}
		if math.Abs(sum-a.Gap.Value) > 1e-9 || last != "unexplained" {
			t.Errorf("%s: the parts are %v s, the gap is %v s; the last is %s, not unexplained", a.Name, sum, a.Gap.Value, last)
		}
	}
}

func (h *testHost) explain(dir string) explained {
	h.t.Helper()
	var e explained
	if err := json.Unmarshal([]byte(h.must("explain", dir, "--format", "json")), &e); err != nil {
		h.t.Fatal(err)
	}
	return e
}

// A fixed number of shell steps: some tenths of a second of CPU work.
var steps = []string{"--", "sh", "-c", "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"}

// A container with a throttling quota: a fifth of a core, for work that could use a whole one. If every switch is traced,
// throttling is at least 90 % of what is attributed in the same trials, and the sentence names it.
func TestAloneAFifthOfACoreTakesFiveTimes(t *testing.T) {
	h := newHost(t)
	need(t, has("runc"), "runc")
	h.quiet(append([]string{"--image", h.image, "--platforms", "bm,cn:runc", "--instances", "0.2/256MB,1/256MB", "--rounds", "6", "--explain=deep"}, steps...), h.aFifthTakesFiveTimes)
}

func (h *testHost) aFifthTakesFiveTimes(t testing.TB, out string) {
	e := h.explain(out)
	e.closes(t)
	a := e.aFifth(t)
	attributed, throttled := 0.0, 0.0
	for _, p := range a.Parts {
		if p.Key != "unexplained" {
			attributed += *p.Seconds.Value
		}
		if p.Key != "throttled" {
			continue
		}
		throttled = *p.Seconds.Value
		// The overhead comes from other trials, with the host's noise.
		if p.Share.Value == nil || p.Share.High == nil || *p.Share.High < 0.9 || *p.Share.Value < 0.75 {
			t.Errorf("the share of the overhead that is attributed to throttling has no part in 90 %% or more: %s", a.Sentence)
		}
	}
	if throttled < 0.9*attributed {
		t.Errorf("%.3f of %.3f s are attributed to throttling, less than 90 %%: %s", throttled, attributed, a.Sentence)
	}
	if !strings.Contains(a.Sentence, "throttling") || !strings.Contains(a.Sentence, "bare metal with 1 core") {
		t.Errorf("its sentence: %s", a.Sentence)
	}
	// Traced trials count in no figure.
	all := 0
	for _, r := range rows(t, h.must("summary", out, "--format", "json")) {
		all += r.Trials
	}
	plain, traced := 0, 0
	for _, tr := range h.trials(out) {
		switch {
		case tr.Traced:
			traced++
		case !tr.Warmup:
			plain++
		}
	}
	if all != plain || traced != plain {
		t.Errorf("the summary is of %d trials; %d were traced and %d not", all, traced, plain)
	}
	h.must("report", out)
}

// The same with kernel counters. On a busy host the work waits for a CPU each time it gets a new quota. The counters cannot
// distinguish that from other waits for a CPU. So it is not counted as throttling here, and must be the smaller part.
func TestAloneTheCountersSayWhyAFifthOfACoreTakesFiveTimes(t *testing.T) {
	h := newHost(t)
	need(t, has("runc"), "runc")
	h.quiet(append([]string{"--image", h.image, "--platforms", "bm,cn:runc", "--instances", "0.2/256MB,1/256MB", "--rounds", "4", "--explain"}, steps...), h.countersSayWhy)
}

func (h *testHost) countersSayWhy(t testing.TB, out string) {
	e := h.explain(out)
	e.closes(t)
	parts, low := map[string]float64{}, map[string]float64{}
	for _, p := range e.aFifth(t).Parts {
		parts[p.Key] = *p.Seconds.Value
		if p.Seconds.Low == nil {
			t.Fatalf("%s has no interval", p.Key)
		}
		low[p.Key] = *p.Seconds.Low // the host's speed differs from round to round, and work that is throttled finds its caches cold
	}
	if parts["throttled"] <= 0 || parts["core"] > 0.25*parts["throttled"] {
		t.Errorf("waited %.3f s for a core, beside %.3f s of throttling", parts["core"], parts["throttled"])
	}
	for key, s := range low {
		if key != "throttled" && key != "core" && key != "unexplained" && s > 0.1*parts["throttled"] {
			t.Errorf("at least %.3f s are attributed to %s, beside %.3f s of throttling", s, key, parts["throttled"])
		}
	}
}

func TestWithoutBPFTheRestWorksAndSaysWhatIsMissing(t *testing.T) {
	h := newHost(t)
	need(t, has("runc"), "runc")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{h.tare, "bench", "--image", h.image, "--platforms", "bm,cn:runc", "--instances", "1/256MB", "--rounds", "2", "--explain=deep", "--out", "R"}, steps...)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(append(os.Environ(), h.env()...), withoutBPF+"=1")
	cmd.Dir = h.dir
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if !strings.Contains(string(said), "not traced: scheduler, requests, faults, block") {
		t.Errorf("what is missing is not said before the run: %s", said)
	}
	e := h.explain("R")
	e.closes(t)
	for _, a := range e.Accounts {
		if !a.Coarse || a.Missing["scheduler"] == "" {
			t.Errorf("%s: coarse %v, missing %v", a.Name, a.Coarse, a.Missing)
		}
	}
	if table := h.must("explain", "R"); !strings.Contains(table, "scheduler") {
		t.Errorf("the table does not say that the tracer scheduler is missing:\n%s", table)
	}
}

// In a VM the same tracers run inside, through the ruler. The account is theirs, less what the host took from the VM's CPUs.
func TestTracersInsideAVM(t *testing.T) {
	h := newHost(t)
	need(t, has("qemu-system-x86_64"), "qemu-system-x86")
	for _, tracer := range []string{"scheduler", "threads"} {
		t.Run(tracer, func(t *testing.T) { tracesInside(t, h, tracer) })
	}
}

func tracesInside(t *testing.T, h *testHost, tracer string) {
	dir := "R-" + tracer
	h.write("vm.yaml", `name: inside
workloads: [{name: steps, image: ./image, command: [sh, -c, "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done"]}]
platforms: [{platform: vm, provisioning: [pinned]}]
instances: [1/512MB]
design: {rounds: {floor: 1, cap: 1}, trials: 1, warmups: 0, timeout: 2m}
`)
	h.must("run", "./vm.yaml", "--accel", "tcg", "--explain="+tracer+",charges,cpu", "--out", dir)
	n := 0
	for _, tr := range h.trials(dir) {
		if !tr.Traced {
			continue
		}
		n++
		if tr.Failure != nil || tr.Trace == nil || tr.Trace.Inside == nil {
			t.Fatalf("%+v", tr)
		}
		in := tr.Trace.Inside
		if why := in.Missing[tracer]; why != nil {
			t.Errorf("the guest's kernel takes no tracers: %s", why)
		}
		sum, inside := 0.0, 0.0
		for _, s := range tr.Trace.Wall {
			sum += s
		}
		for _, s := range in.Wall {
			inside += s
		}
		// The guest's clock, and the way to its ruler, are not the fault of a tracer.
		if math.Abs(sum-tr.ElapsedS) > 0.1*tr.ElapsedS+0.02 || math.Abs(sum-inside) > 1e-6 {
			t.Errorf("the account is of %v s, inside %v s, the trial took %v s", sum, inside, tr.ElapsedS)
		}
		if in.Figures["run_s"] <= 0 || tr.Trace.Figures["vcpu.run_s"] <= 0 {
			t.Errorf("nobody ran: %v inside, %v outside", in.Figures, tr.Trace.Figures)
		}
		// Debian's kernel lets its accounting be counted, also where the host's does not.
		if in.Figures["charges"] <= 0 || in.Figures["quota_charges"] != 0 {
			t.Errorf("the guest's kernel charged time %v times, %v to a quota: %v", in.Figures["charges"], in.Figures["quota_charges"], in.Missing)
		}
	}
	if n == 0 {
		t.Error("no trial was explained")
	}
}

// latencySource makes requests of a known CPU time at a steady rate.
const latencySource = `#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(void) {
	double sum = 0, most = 0, start = now(CLOCK_MONOTONIC);
	for (int i = 0; i < 8; i++) {
		double due = start + 0.5 * i;
		struct timespec at = {(time_t)due, (long)((due - (time_t)due) * 1e9)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
		for (double until = now(CLOCK_THREAD_CPUTIME_ID) + 0.045; now(CLOCK_THREAD_CPUTIME_ID) < until;)
			;
		double took = now(CLOCK_MONOTONIC) - due;
		sum += took;
		if (took > most)
			most = took;
	}
	printf("{\"mean\": %.6f, \"p99\": %.6f}\n", sum / 8, most);
}
`

// A command that times operations at a fixed rate takes as long everywhere. What is divided is its latency: 45 ms of CPU time on a fifth of a core,
// which gives it 20 ms in 100 ms, are throttled or wait for a core for most of the time: on a busy host, more of it for a core.
func TestALatencyIsExplained(t *testing.T) {
	h := newHost(t)
	need(t, has("runc"), "runc")
	h.write("latency/workload.yaml", `name: latency
title: requests of a known CPU time
image: {reference: `+h.image+`}
build: {latency: latency.c}
command: ["{work}/latency"]
metric: {name: latency, unit: s, from: mean}
also: [{name: p99, unit: s}]
`)
	h.write("latency/latency.c", latencySource)
	h.write("latency.yaml", `name: latency
workloads: [{name: ./latency}]
platforms: [{platform: bm}, {platform: cn, engines: [runc], provisioning: [vanilla]}]
instances: [0.2/256MB, 1/256MB]
design: {rounds: {floor: 2, cap: 2}, trials: 1, warmups: 0, timeout: 1m}
`)
	h.must("run", "./latency.yaml", "--explain=requests", "--out", "R")
	e := h.explain("R")
	e.closes(t)
	a := e.aFifth(t)
	all, spent := 0.0, map[string]float64{}
	for _, s := range a.Spent {
		all += s.Seconds.Value
		spent[s.Key] = s.Seconds.Value
	}
	if a.Of != "mean" || !(math.Abs(spent["remainder"]) < 0.1*all) || !(spent["throttled"] > 0.02) || !(spent["throttled"]+spent["core"] > 0.5*all) || !(math.Abs(spent["running"]-0.045) < 0.005) {
		t.Errorf("the account is of %q: %v of %v s", a.Of, spent, all)
	}
	if table := h.must("explain", "R"); !strings.Contains(table, "its latency is") {
		t.Errorf("its latency is not what is explained:\n%s", table)
	}
}
