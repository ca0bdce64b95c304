//go:build linux

package lxc

import (
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"tare/lab/engine"
	"tare/lab/engine/criu"
	"tare/lab/engine/oci/config"
	"tare/notebook"
)

func TestLXCConfig(t *testing.T) {
	const dir = "/state/a b"
	c := config.Container{
		Root: "/state/root", Args: engine.RulerArgs, Hostname: strings.Repeat("x", 100), Cgroup: "tare-x",
		Limits: notebook.Limits{Quota: 1.5, CPUs: "0,2-3", Memory: 1 << 30}, LimitSwap: true,
		Mounts: []specs.Mount{config.Bind(dir, "/.tare/work")},
	}
	for _, x := range []struct {
		unified bool
		want    []string
		not     string
	}{
		{false, []string{
			"lxc.cgroup.memory.limit_in_bytes = 1073741824", "lxc.cgroup.memory.memsw.limit_in_bytes = 1073741824",
			"lxc.cgroup.cpu.cfs_quota_us = 150000", "lxc.cgroup.cpuset.cpus = 0,2-3", "lxc.cgroup.devices.deny = a", "lxc.net.0.type = empty", "lxc.net.0.flags = up",
		}, "cgroup2"},
		{true, []string{
			"lxc.cgroup2.memory.max = 1073741824", "lxc.cgroup2.memory.swap.max = 0", "lxc.cgroup2.cpu.max = 150000 100000",
			"lxc.cgroup2.cpuset.cpus = 0,2-3", "lxc.cgroup2.devices.deny = a",
			"lxc.mount.entry = " + strings.ReplaceAll(dir, " ", `\040`) + " .tare/work none bind,ro,create=dir 0 0",
			"lxc.uts.name = " + strings.Repeat("x", 63), "lxc.apparmor.profile = unconfined",
		}, "cgroup.memory"},
	} {
		got, err := configure(c, kernel{unified: x.unified, appArmor: x.unified})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range x.want {
			if !strings.Contains("\n"+got, "\n"+w+"\n") {
				t.Errorf("unified %t: want the line %q in\n%s", x.unified, w, got)
			}
		}
		if strings.Contains(got, "lxc."+x.not) {
			t.Errorf("unified %t: no %s was wanted in\n%s", x.unified, x.not, got)
		}
	}
	for key, want := range map[string]bool{"cap.keep": true, "console.path = none": true, "cap.drop": false, "mount.auto = proc:mixed sys:mixed cgroup:mixed": false} {
		got, err := configure(c, kernel{})
		c.System = true
		system, serr := configure(c, kernel{})
		c.System = false
		if err != nil || serr != nil || strings.Contains(got, "lxc."+key) != want || strings.Contains(system, "lxc."+key) == want {
			t.Errorf("lxc.%s is to be in a container's %t, and not in a system's or the other way round: %v, %v\n%s\n%s", key, want, err, serr, got, system)
		}
	}
	c.HostNetwork = true
	if got, err := configure(c, kernel{}); err != nil || !strings.Contains(got, "lxc.net.0.type = none\n") {
		t.Errorf("the host's network: %v\n%s", err, got)
	}
	c.Root = "/state\nlxc.init.cmd = /bin/sh"
	_, err := configure(c, kernel{})
	if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok || strings.Contains(err.Error(), "\n") {
		t.Errorf("a path of two lines: %v, want an *engine.UnsupportedError of one line", err)
	}
}

// A container is saved only if its start was timed, and only from a folder that CRIU and a shell can name.
func TestUnsaved(t *testing.T) {
	for _, g := range []*guest{
		{Base: engine.Base{Folder: "/state/guests/x"}},
		{Base: engine.Base{Folder: "/my state/guests/x", Spec: engine.Spec{Moments: engine.NewMoments()}}},
		{Base: engine.Base{Folder: "/state/$(id)/x", Spec: engine.Spec{Moments: engine.NewMoments()}}},
		{Base: engine.Base{Folder: "/state/guests/x", Spec: engine.Spec{Moments: engine.NewMoments()}}, state: criu.State{Saved: true}},
	} {
		_, err := g.Save(t.Context())
		if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok {
			t.Errorf("in %s: %v, want an *engine.UnsupportedError", g.Folder, err)
		}
	}
}
