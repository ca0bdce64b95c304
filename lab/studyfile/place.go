package studyfile

import (
	"slices"

	"tare/notebook"
)

// Place is a platform with its engines and kinds of provisioning.
type Place struct {
	Platform     string `yaml:"platform" jsonschema:"required"`
	Engines      Values `yaml:"engines,omitempty"` // "crun|runc": the first that the host supports
	Provisioning Values `yaml:"provisioning,omitempty"`
	Networks     Values `yaml:"networks,omitempty"` // bridge, host, none; default: bridge if the workload has a service, otherwise the engine's own

	// Kernel names kernel files for the platform's guests, relative to the study file; each makes a treatment, and "default" stands
	// for the engine's own choice. The study's hash covers the contents of the files.
	Kernel Values `yaml:"kernel,omitempty" json:"-"`
	// Machines are the VM configurations to make (notebook.ParseMachine); default: the usual one.
	Machines Values `yaml:"machines,omitempty" json:",omitempty"` // omitted in the study's hash, which is older

	// OtherCPUs is the state of the host's CPUs that bare metal's instance does not have. "offline", if the host permits it, makes the
	// host as small as the instance. "online" is the default.
	OtherCPUs string `yaml:"other_cpus,omitempty" json:",omitempty"`
	// OtherMemory is the state of the host's memory that bare metal's instance does not have: "withheld", if the host permits it, or
	// "free", the default.
	OtherMemory string `yaml:"other_memory,omitempty" json:",omitempty"`

	// Isolation lists rungs of the isolation ladder. For the engine layers they are the topmost layers, or "all" of them. For other
	// engines the rung is "full": a container on the bridge with both a CPU set and a quota.
	Isolation Values `yaml:"isolation,omitempty" json:",omitempty"` // omitted in the study's hash, which is older
}

// Allowed implements yamlfile.Limited.
func (Place) Allowed() map[string][]string {
	return map[string][]string{
		"platform": notebook.Platforms, "provisioning": notebook.Provisionings, "networks": notebook.Networks,
		"other_cpus": {online, offline}, "other_memory": {free, withheld},
		"isolation": append(slices.Clone(notebook.Rungs), allLayers, notebook.IsolationFull),
	}
}

// machines lists the machines of the place, each once; "" is the usual one.
func (p Place) machines() (all []string) {
	for _, text := range p.Machines {
		m, err := notebook.ParseMachine(text)
		if err != nil {
			panic(err) // validated when the file was read
		}
		if t := m.Text(); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return []string{""}
	}
	return all
}

// isolation lists the rungs of the place; "" for a place that is not on the ladder.
func (p Place) isolation() []string {
	if slices.Equal(p.Isolation, []string{allLayers}) {
		return notebook.Rungs
	}
	if len(p.Isolation) == 0 {
		return []string{""}
	}
	return p.Isolation
}

// ownKernel stands for the kernel that an engine chooses for its guests.
const ownKernel = "default"

// Values of Place.OtherCPUs and Place.OtherMemory.
const (
	online   = "online"
	offline  = "offline"
	free     = "free"
	withheld = "withheld"
)

// allLayers stands for all of notebook.Rungs.
const allLayers = "all"
