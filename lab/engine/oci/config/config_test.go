//go:build linux

package config

import (
	"math"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tare/lab/device"
	"tare/lab/ruler"
	"tare/notebook"
)

func TestQuota(t *testing.T) {
	for cores, want := range map[float64]int64{0.5: 50_000, 2: 200_000, 0.01: 1000, 1.0 / 3: 33_333} {
		if got, err := Quota(cores); err != nil || got != want {
			t.Errorf("Quota(%g) = %d, %v; want %d", cores, got, err, want)
		}
	}
	for _, cores := range []float64{0, -1, 0.001, math.NaN(), math.Inf(1)} {
		if q, err := Quota(cores); err == nil {
			t.Errorf("Quota(%g) = %d, want an error", cores, q)
		}
	}
}

func TestConfigLimits(t *testing.T) {
	s, err := Config(Container{Root: "/r", Args: []string{"x"}, Limits: notebook.Limits{Quota: 1.5, Memory: 1 << 30}, LimitSwap: true})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Linux.Resources
	if *r.CPU.Quota != 150_000 || *r.CPU.Period != Period || r.CPU.Cpus != "" {
		t.Errorf("vanilla CPU: %+v", r.CPU)
	}
	if *r.Memory.Limit != 1<<30 || *r.Memory.Swap != 1<<30 {
		t.Errorf("memory: %+v", r.Memory)
	}
	s, err = Config(Container{Root: "/r", Args: []string{"x"}, Limits: notebook.Limits{CPUs: "2-3"}})
	if err != nil {
		t.Fatal(err)
	}
	r = s.Linux.Resources
	if r.CPU.Quota != nil || r.CPU.Cpus != "2-3" || r.Memory != nil {
		t.Errorf("pinned: CPU %+v, memory %+v", r.CPU, r.Memory)
	}
	if _, err := Config(Container{Root: "/r", Limits: notebook.Limits{Quota: 0.0001}}); err == nil {
		t.Error("a quota that no kernel gives was accepted")
	}
}

func TestConfigNetwork(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s, err := Config(Container{Root: "/r", Args: []string{"x"}, HostNetwork: shared})
		if err != nil {
			t.Fatal(err)
		}
		own := slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.NetworkNamespace })
		if own == shared {
			t.Errorf("the host's network %t: namespaces %v", shared, s.Linux.Namespaces)
		}
	}
}

// A hook need not read what a runtime writes to it, so the ruler's program reads it: at its path on the host, and in the container where the hook runs there.
func TestTheRulerReadsForHooks(t *testing.T) {
	const program = "/state/guests/g/run/ruler"
	var all []device.Hook
	moments := []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}
	for _, when := range moments {
		all = append(all, device.Hook{When: when, Hook: specs.Hook{Path: "/bin/" + when, Args: []string{when, "x"}, Env: []string{"A=b"}}})
	}
	spec, err := Config(Container{Devices: device.Edits{Hooks: all}, Ruler: program})
	if err != nil {
		t.Fatal(err)
	}
	h := spec.Hooks
	got := slices.Concat(h.CreateRuntime, h.CreateContainer, h.StartContainer, h.Poststart, h.Poststop)
	if len(got) != len(moments) {
		t.Fatalf("%d hooks, want %d", len(got), len(moments))
	}
	for i, when := range moments {
		path := program
		if when == "startContainer" {
			path = ruler.Program
		}
		if want := ruler.HookArgs("/bin/"+when, []string{when, "x"}); got[i].Path != path || !slices.Equal(got[i].Args, want) || len(got[i].Env) != 1 {
			t.Errorf("%s: %s %q %q, want %s %q and its environment", when, got[i].Path, got[i].Args, got[i].Env, path, want)
		}
	}
	if all[0].Path != "/bin/prestart" {
		t.Error("the device's own description was changed")
	}
}
