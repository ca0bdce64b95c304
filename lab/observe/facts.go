//go:build linux

package observe

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/dockerapi"
	"tare/lab/host"
	"tare/lab/proc"
	"tare/notebook"
)

// Bounds of what is read of a process, in bytes.
const (
	mostArguments = 256 << 10
	mostMounts    = 4 << 20
)

// facts notes what of the target's platform may cost time. What cannot be read is missing; it never keeps the observation from going on.
func (w *watch) facts(ctx context.Context) {
	p := &w.o.Platform
	status, err := proc.Host.Read(fmt.Sprintf("/proc/%d/status", w.target.PID))
	if err == nil {
		if n, err := strconv.Atoi(proc.Field(status, "Seccomp_filters")); err == nil {
			p.Seccomp = n
		} else if proc.Field(status, "Seccomp") == "2" { // before Linux 5.9 the number is not known
			p.Seccomp = 1
		}
	}
	p.Root = rootOf(w.target.PID)
	if pages, err := proc.Setting("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		p.HugePages = pages
	}
	p.SharedCore = w.sharedCores()
	if w.target.Kind == notebook.TargetContainer && w.target.ID != "" {
		if text, err := dockerapi.Container(ctx, w.target.ID); err == nil {
			w.ofDocker(text)
		}
	}
	w.runtimes()
}

// rootOf is the type of the file system of a process's root; empty where that cannot be read.
func rootOf(pid int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	all, err := mountinfo.GetMountsFromReader(io.LimitReader(f, mostMounts), mountinfo.SingleEntryFilter("/"))
	if err != nil || len(all) == 0 {
		return ""
	}
	return all[len(all)-1].FSType
}

// sharedCores lists the CPUs outside of the target's CPU set that share a core with one inside.
func (w *watch) sharedCores() string {
	all, err := host.CPUs()
	if err != nil {
		return ""
	}
	cores := map[int]bool{}
	for _, cpu := range all {
		if slices.Contains(w.cpus, cpu.ID) {
			cores[cpu.Core] = true
		}
	}
	var outside []int
	for _, cpu := range all {
		if cores[cpu.Core] && !slices.Contains(w.cpus, cpu.ID) {
			outside = append(outside, cpu.ID)
		}
	}
	return notebook.FormatCPUList(outside)
}

// ofDocker takes the facts from Docker Engine's description of a container. It ignores a description of another form.
func (w *watch) ofDocker(text []byte) {
	var c struct {
		HostConfig struct {
			LogConfig   struct{ Type string }
			NetworkMode string
		}
		NetworkSettings struct {
			Ports map[string][]struct{ HostPort string }
		}
	}
	if json.Unmarshal(text, &c) != nil {
		return
	}
	p := &w.o.Platform
	p.LogDriver, p.Network = c.HostConfig.LogConfig.Type, c.HostConfig.NetworkMode
	if len(c.NetworkSettings.Ports) == 0 {
		return
	}
	forwarded := proxied()
	for _, bindings := range c.NetworkSettings.Ports {
		for _, b := range bindings {
			if forwarded[b.HostPort] && !slices.Contains(p.PortProxy, b.HostPort) && len(p.PortProxy) < mostPorts {
				p.PortProxy = append(p.PortProxy, b.HostPort)
			}
		}
	}
	slices.Sort(p.PortProxy)
}

// mostPorts is how many forwarded ports are named.
const mostPorts = 20

// proxied are the host's ports that programs of Docker's forward.
func proxied() map[string]bool {
	ports := map[string]bool{}
	pids, err := proc.All()
	if err != nil {
		return ports
	}
	for _, pid := range pids {
		if proc.Name(pid) != "docker-proxy" {
			continue
		}
		args := strings.Split(arguments(pid), "\x00")
		if i := slices.Index(args, "-host-port"); i > 0 && i+1 < len(args) {
			ports[args[i+1]] = true
		}
	}
	return ports
}

// arguments is the command line of a process, with a zero byte after each argument; empty if it has ended.
func arguments(pid int) string { return bounded(fmt.Sprintf("/proc/%d/cmdline", pid), mostArguments) }

// bounded reads a file of a process up to a number of bytes; it is empty if the process has ended.
func bounded(name string, most int64) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(b)
}

// variable is the value of an environment variable with which a process was started; empty if it has none.
func variable(pid int, name string) string {
	for v := range strings.SplitSeq(bounded(fmt.Sprintf("/proc/%d/environ", pid), mostArguments), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// runtimes notes for how many CPUs the target's processes run.
func (w *watch) runtimes() {
	workers, nginx := 0, 0
	for _, pid := range w.pids[:min(len(w.pids), mostAsked)] {
		args := arguments(pid)
		if strings.HasPrefix(args, "nginx: worker process") {
			workers++
			nginx = pid
			continue
		}
		r := runtimeOf(pid)
		exe := fmt.Sprintf("/proc/%d/exe", pid)
		if name, err := os.Readlink(exe); err == nil && filepath.Base(name) == "java" {
			w.jvm(&r, args)
		} else if version := goVersion(exe); version != "" {
			r.Version = version
			w.golang(&r)
		} else {
			continue
		}
		w.o.Runtimes = append(w.o.Runtimes, r)
	}
	if workers > 0 {
		r := runtimeOf(nginx)
		r.Runtime, r.CPUs, r.By = notebook.RuntimeNginx, workers, notebook.RuntimeByCount
		w.o.Runtimes = append(w.o.Runtimes, r)
	}
}

// runtimeOf begins the description of a process's runtime, with the CPU limit of the process.
func runtimeOf(pid int) notebook.ObservedRuntime {
	r := notebook.ObservedRuntime{Process: proc.Name(pid), PID: pid}
	if q, err := cgroup.QuotaOf(pid); err == nil && q != nil {
		r.Limit, r.PeriodS = q.Cores, q.Period.Seconds()
	}
	return r
}

// mostProgram is the largest program that is asked for its version of Go, in bytes. The program is the target's, and may be made to harm
// who reads it.
const mostProgram = 300 << 20

// goVersion is the version of Go that a program was built with; empty if it is not known, or was not built with Go.
func goVersion(exe string) string {
	f, err := os.OpenFile(exe, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	of, err := f.Stat()
	if err != nil || !of.Mode().IsRegular() || of.Size() > mostProgram {
		return ""
	}
	info, err := buildinfo.Read(io.NewSectionReader(f, 0, of.Size()))
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(info.GoVersion, "go")
}

// byQuota is the number of CPUs of a runtime that looks at the quota, and at least that many.
func (w *watch) byQuota(r *notebook.ObservedRuntime, least int) {
	r.CPUs, r.By = len(w.cpus), notebook.RuntimeByAffinity
	if n := max(least, int(math.Ceil(r.Limit))); r.Limit > 0 && n < r.CPUs {
		r.CPUs, r.By = n, notebook.RuntimeByQuota
	}
}

// golang says how many threads of a Go program run Go code at once (runtime.GOMAXPROCS). From Go 1.25 on it looks at the quota, and takes
// two at least; a program may change the number, which cannot be seen.
func (w *watch) golang(r *notebook.ObservedRuntime) {
	r.Runtime = notebook.RuntimeGo
	if n, err := strconv.Atoi(variable(r.PID, "GOMAXPROCS")); err == nil && n > 0 {
		r.CPUs, r.By = n, notebook.RuntimeByVariable
		return
	}
	const least = 2
	if minor := minorOf(r.Version); minor >= 25 && !strings.Contains(variable(r.PID, "GODEBUG"), "containermaxprocs=0") {
		w.byQuota(r, least)
		return
	}
	r.CPUs, r.By = len(w.cpus), notebook.RuntimeByAffinity
}

// minorOf is the second number of a version of Go, "1.25.3"; 0 if it has none.
func minorOf(version string) int {
	_, rest, _ := strings.Cut(version, ".")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0
	}
	return n
}

// jvm says how many processors a Java program believes to have (Runtime.availableProcessors). From JDK 10 and 8u191 on it looks at the quota.
func (w *watch) jvm(r *notebook.ObservedRuntime, args string) {
	r.Runtime = notebook.RuntimeJVM
	options := slices.Concat(strings.Fields(variable(r.PID, "JAVA_TOOL_OPTIONS")), strings.Split(args, "\x00"))
	for _, a := range slices.Backward(options) {
		if value, ok := strings.CutPrefix(a, "-XX:ActiveProcessorCount="); ok {
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				r.CPUs, r.By = n, notebook.RuntimeByFlag
				return
			}
		}
	}
	if slices.Contains(options, "-XX:-UseContainerSupport") {
		r.CPUs, r.By = len(w.cpus), notebook.RuntimeByAffinity
		return
	}
	w.byQuota(r, 1)
}
