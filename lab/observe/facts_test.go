//go:build linux

package observe

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"tare/notebook"
)

func TestMinorOf(t *testing.T) {
	for version, want := range map[string]int{"1.25.3": 25, "1.9": 9, "1.26rc1": 26, "1": 0, "": 0, "1.": 0, "devel": 0} {
		if got := minorOf(version); got != want {
			t.Errorf("%q: %d, want %d", version, got, want)
		}
	}
}

// This program was built with Go; a shell was not, and a folder is not a program at all.
func TestGoVersion(t *testing.T) {
	if got, want := goVersion("/proc/self/exe"), strings.TrimPrefix(runtime.Version(), "go"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"/bin/sh", "/proc", "/no/such/program"} {
		if got := goVersion(name); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A JVM's own flags come before its limit, and the last of two is in force.
func TestJVM(t *testing.T) {
	for args, want := range map[string]notebook.ObservedRuntime{
		"java\x00-XX:ActiveProcessorCount=4\x00-XX:ActiveProcessorCount=3\x00Main": {CPUs: 3, By: notebook.RuntimeByFlag},
		"java\x00-XX:-UseContainerSupport\x00Main":                                 {CPUs: 8, By: notebook.RuntimeByAffinity},
		"java\x00-XX:ActiveProcessorCount=many\x00-XX:-UseContainerSupport\x00":    {CPUs: 8, By: notebook.RuntimeByAffinity},
	} {
		w := &watch{o: &notebook.Observation{}, cpus: []int{0, 1, 2, 3, 4, 5, 6, 7}}
		r := notebook.ObservedRuntime{PID: os.Getpid()}
		if w.jvm(&r, args); r.CPUs != want.CPUs || r.By != want.By || r.Runtime != notebook.RuntimeJVM {
			t.Errorf("%q: %+v, want %+v", args, r, want)
		}
	}
}

const dockers = `{"HostConfig":{"LogConfig":{"Type":"json-file"},"NetworkMode":"bridge"},"NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"1"}],"81/tcp":null}}}`

func TestOfDocker(t *testing.T) {
	w := &watch{o: &notebook.Observation{}}
	w.ofDocker([]byte(dockers))
	if p := w.o.Platform; p.LogDriver != "json-file" || p.Network != "bridge" || p.PortProxy != nil {
		t.Errorf("%+v", p)
	}
}

func FuzzOfDocker(f *testing.F) {
	f.Add([]byte(dockers))
	f.Add([]byte(`{"NetworkSettings":{"Ports":{"":[]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) { (&watch{o: &notebook.Observation{}}).ofDocker(text) })
}

// What an account grew by adds up to the seconds, and it is known by how much it was off before.
func TestBetween(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]float64
		want          map[string]float64
		off           float64
	}{
		"right":         {map[string]float64{"user": 1}, map[string]float64{"user": 1.5, "sleep": 0.5}, map[string]float64{"user": 0.5, "sleep": 0.5}, 0},
		"one that fell": {map[string]float64{"user": 1, "core": 0.1}, map[string]float64{"user": 2, "core": 0.05}, map[string]float64{"user": 1}, 0},
		"too much":      {nil, map[string]float64{"user": 1, "sleep": 1}, map[string]float64{"user": 0.5, "sleep": 0.5}, 1},
		"nothing":       {map[string]float64{"user": 1}, map[string]float64{"user": 1}, map[string]float64{"other": 1}, 1},
	} {
		got, off := between(c.before, c.after, 1)
		if math.Abs(off-c.off) > 1e-9 || len(got) != len(c.want) {
			t.Errorf("%s: %v, off by %v; want %v, %v", name, got, off, c.want, c.off)
		}
		for key, want := range c.want {
			if math.Abs(got[key]-want) > 1e-9 {
				t.Errorf("%s: %s %v, want %v", name, key, got[key], want)
			}
		}
	}
}
