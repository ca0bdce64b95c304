//go:build linux

package conformance

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// spread makes two threads bind themselves to every CPU and burn, after a line of shell.
func spread(first string) ruler.Order {
	return ruler.Order{Argv: []string{"/bin/sh", "-c", first + "exec /bin/probe spread-2 500"}}
}

// watched runs an order and returns what the engine then reports about the guest's CPUs.
func (r *suite) watched(t *testing.T, g engine.Guest, o ruler.Order) (ruler.Result, *notebook.Confined) {
	t.Helper()
	w, is := g.(interface{ Watch() engine.Watch })
	if !is {
		t.Fatalf("a guest with CPUs of its own, a %T, has no Watch", g)
	}
	ended := w.Watch()
	res := r.order(t, g, o)
	if res.Exit != 0 || res.Signal != "" {
		t.Fatalf("%q: exit %d %s: %s", o.Argv, res.Exit, res.Signal, res.Stderr)
	}
	if ended == nil {
		t.Fatal("nobody watches whether the guest stays on its CPUs")
	}
	return res, ended(res.Usage, res.Elapsed)
}

// stays checks that a program that binds itself to every CPU is only seen on the guest's.
func (r *suite) stays(t *testing.T, g engine.Guest, cpus []int) {
	if !r.e.SharesKernel { // a machine's CPUs are threads of the host
		r.order(t, g, spread(""))
		r.bound(t, g, cpus)
		return
	}
	res, c := r.watched(t, g, spread(""))
	t.Logf("two threads on every CPU: %.3f s of CPU time in %v; %+v", res.UserS+res.SystemS, res.Elapsed, *c)
	if want := notebook.FormatCPUList(cpus); c.CPUs != want || c.Escape != "" || c.ForeignS == nil {
		t.Fatalf("%+v; want CPUs %s, no escape, and the CPU time on others known", *c, want)
	}
	// How much time it gets depends on the host, because others may use its CPUs too. How much it reports is a sandbox's own count.
	if *c.ForeignS != 0 || c.UsedS < 0.01 {
		t.Errorf("of %.3f s of CPU time %g s on others than its CPUs; want 0.01 s at least, and none there", c.UsedS, *c.ForeignS)
	}
}

// bound checks that each of a virtual machine's CPU threads is bound to one of the guest's CPUs.
func (r *suite) bound(t *testing.T, g engine.Guest, cpus []int) {
	threads, err := g.Threads()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, thread := range threads {
		if thread.Role != notebook.RoleVCPU {
			continue
		}
		n++
		may, err := proc.Host.AllowedCPUs(strconv.Itoa(thread.ID))
		if err != nil || len(proc.IntersectCPUs(may, cpus)) < len(may) {
			t.Errorf("the CPU that is thread %d may run on CPUs %v, %v; want some of %v", thread.ID, may, err, cpus)
		}
	}
	if n == 0 {
		t.Errorf("no thread of %v is one of the machine's CPUs", threads)
	}
}

// leaves makes programs in the guest leave its CPUs in ways that the host itself cannot prevent. Each is detected.
func (r *suite) leaves(t *testing.T) {
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(online) < 2 {
		t.Skip("the host has one CPU, which no guest can leave")
	}
	before := r.snapshot(t)
	s := r.spec(t, r.e.Provisionings[0], 1)
	s.CPUs = online[len(online)-1:]
	g := r.provision(t, s)
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		t.Fatalf("Processes: %v, %v", pids, err)
	}
	h, err := cgroup.HeldAt(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("/proc/%d/root", os.Getpid()) // from inside
	enter := func(top string) string { return fmt.Sprintf("echo $$ >%s%s/cgroup.procs && ", host, top) }
	first := notebook.EscapeForeign // where CPU time is counted in another hierarchy, and by CPU
	if h.Set.Top == h.Count.Top {
		first = notebook.EscapeLeft
	}
	for _, c := range []struct {
		what, how string
		want      notebook.Escape
	}{
		{"nothing", "", ""},
		{"to the root of the CPU sets", enter(h.Set.Top), first},
		{"to all roots", enter(h.Set.Top) + enter(h.Count.Top), notebook.EscapeLeft},
		{"with a child that lives on there", "(" + enter(h.Set.Top) + enter(h.Count.Top) + "exec /bin/probe spread-2 60000) & sleep 1; ", notebook.EscapeLeft},
		{"by another CPU set", fmt.Sprintf("echo %s >%s%s/cpuset.cpus && ", notebook.FormatCPUList(online), host, h.Set.Dir), notebook.EscapeSet},
	} {
		res, got := r.watched(t, g, spread(c.how))
		t.Logf("%s: %.3f s of CPU time in %v; %+v", c.what, res.UserS+res.SystemS, res.Elapsed, *got)
		if got.Escape != c.want {
			t.Errorf("%s: the escape is %q (%+v), want %q", c.what, got.Escape, *got, c.want)
		}
	}
	r.end(t, before, g, s)
}
