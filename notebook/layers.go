package notebook

import (
	"slices"
	"strings"
)

// Layers of the isolation ladder between bare metal and a container, from the lowest up (paper "pinning", section VI: the
// announced study of "overhead by isolation level"). Treatment.Isolation names the topmost one; all below are active too.
var Layers = []string{"cgroup", "quota", LayerCPUSet, "memory", "uts", "ipc", "pid", "mount", "network", "seccomp", "capabilities", "overlay", "bridge"}

// Rungs are the Layers that a study can ask for. The CPU set is no longer a rung: bare metal and every rung have it, because affinity is
// not enough to keep a program on its CPUs. Earlier folders have that rung. Below it, affinity bound their guests.
var Rungs = slices.DeleteFunc(slices.Clone(Layers), func(l string) bool { return l == LayerCPUSet })

// OnlyLayer begins the Isolation of a guest that has one of the Rungs, and not those below it: "only-seccomp". What it needs comes with it,
// see [LayersOf].
const OnlyLayer = "only-"

// LayerCGroup is the lowest rung, which every guest with a layer has: its limits, and what is counted of it, are those of a control group.
const LayerCGroup = "cgroup"

// needed are the layers, beside the control group, without which a layer cannot be.
var needed = map[string][]string{"bridge": {"network"}}

// SingleLayers are the guests with one layer each on a control group, in the order of Rungs.
var SingleLayers = singles()

func singles() (all []string) {
	for _, l := range Rungs {
		if l != LayerCGroup {
			all = append(all, OnlyLayer+l)
		}
	}
	return all
}

// LayersOf lists the Layers of a guest with an Isolation, from the lowest up: all up to its topmost or, for one that begins with OnlyLayer, that
// one and what it needs. It is empty for an Isolation that names no layer.
func LayersOf(isolation string) []string {
	only, single := strings.CutPrefix(isolation, OnlyLayer)
	i := slices.Index(Layers, only)
	if !single || i < 0 {
		return Layers[:i+1]
	}
	has := append([]string{LayerCGroup, LayerCPUSet, only}, needed[only]...)
	return slices.DeleteFunc(slices.Clone(Layers), func(l string) bool { return !slices.Contains(has, l) })
}

// LayerCPUSet is the only layer that is not a rung.
const LayerCPUSet = "cpuset"

// LayersEngine is the engine of Tare's own that puts a container together layer by layer.
const LayersEngine = "layers"

// IsolationFull is the Isolation of an engine's container that has all of the Layers, with quota and CPU set at once: a rung
// above them.
const IsolationFull = "full"
