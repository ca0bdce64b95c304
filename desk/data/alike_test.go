package data_test

import (
	"slices"
	"testing"

	"tare/desk/data"
	"tare/notebook"
)

func TestUnlike(t *testing.T) {
	build := func(change func(*notebook.Host)) data.Host {
		h := notebook.Host{
			ID: "a", CPUModel: "one model", Kernel: "6.18", Governor: "performance", CPUs: make([]notebook.CPU, 16), Memory: 64 << 30,
			Settings:     &notebook.Settings{Turbo: "on", CommandLine: "root=a", Mitigations: map[string]string{"spectre": "on"}},
			Capabilities: []notebook.Capability{{Name: "docker", Versions: map[string]string{"docker": "28", "runc": "1"}}},
		}
		change(&h)
		return data.Host{Host: h, Name: h.ID}
	}
	first := build(func(*notebook.Host) {})
	for name, c := range map[string]struct {
		change func(*notebook.Host)
		want   []data.HostTrait
	}{
		"cores and memory": {func(h *notebook.Host) { h.CPUs, h.Memory = make([]notebook.CPU, 112), 512<<30 }, nil},
		"its disk":         {func(h *notebook.Host) { h.Settings.CommandLine = "root=b" }, nil},
		"not recorded":     {func(h *notebook.Host) { h.CPUModel, h.Settings, h.Capabilities = "", nil, nil }, nil},
		"CPU and kernel":   {func(h *notebook.Host) { h.CPUModel, h.Kernel = "other", "7.0" }, []data.HostTrait{{Kind: data.TraitCPU}, {Kind: data.TraitKernel}}},
		"a hypervisor":     {func(h *notebook.Host) { h.Virtualization = "kvm" }, []data.HostTrait{{Kind: data.TraitVirtualization}}},
		"settings": {func(h *notebook.Host) { h.Governor, h.Settings.Turbo = "powersave", "off" },
			[]data.HostTrait{{Kind: data.TraitSetting, Of: "governor"}, {Kind: data.TraitSetting, Of: "turbo"}}},
		"mitigations": {func(h *notebook.Host) { h.Settings.Mitigations["spectre"] = "off" }, []data.HostTrait{{Kind: data.TraitMitigations}}},
		"a version":   {func(h *notebook.Host) { h.Capabilities[0].Versions["docker"] = "29" }, []data.HostTrait{{Kind: data.TraitVersion, Of: "docker"}}},
	} {
		other := build(func(h *notebook.Host) { h.ID = "b"; c.change(h) })
		if got := data.Unlike(first, other); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		s := &data.Summary{Hosts: []data.Host{first, other, other}}
		if got := s.Unlike([]string{"a", "b", "b"}); !slices.Equal(got, c.want) {
			t.Errorf("%s: of three hosts: %+v", name, got)
		}
	}
	if got := (&data.Summary{}).Unlike(nil); got != nil {
		t.Errorf("%+v", got)
	}
}
