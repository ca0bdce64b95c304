package studyfile

import (
	"fmt"
	"slices"
	"strings"

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

	// Isolation lists rungs of the isolation ladder. For the engine layers they are the topmost layers, or "all" of
	// them; a name after "only-" is a guest with that layer and none below it, and "each" stands for one such guest for each layer. For other
	// engines the rung is "full": a container on the bridge with both a CPU set and a quota.
	Isolation Values `yaml:"isolation,omitempty" json:",omitempty"` // omitted in the study's hash, which is older
}

// Allowed implements yamlfile.Limited.
func (Place) Allowed() map[string][]string {
	return map[string][]string{
		"platform": notebook.PlatformWords, "provisioning": notebook.Provisionings, "networks": notebook.Networks,
		"other_cpus": {online, offline}, "other_memory": {free, withheld},
		"isolation": slices.Concat(notebook.Rungs, notebook.SingleLayers, []string{allLayers, eachLayer, notebook.IsolationFull}),
	}
}

// machines lists the machines of a use on the place, each once; "" is the usual one.
func (u Use) machines(p Place) (all []string) {
	texts := p.Machines
	if len(u.Machines) > 0 && notebook.HasMachine(p.Platform) {
		texts = u.Machines
	}
	for _, text := range texts {
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
func (p Place) isolation() (all []string) {
	if len(p.Isolation) == 0 {
		return []string{""}
	}
	for _, l := range p.Isolation {
		of := []string{l}
		switch l {
		case allLayers:
			of = notebook.Rungs
		case eachLayer:
			of = append([]string{notebook.LayerCGroup}, notebook.SingleLayers...)
		}
		for _, l := range of {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
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

// allLayers stands for all of notebook.Rungs, and eachLayer for the control group and all of notebook.SingleLayers.
const (
	allLayers = "all"
	eachLayer = "each"
)

// Placing is what a command names instead of a study's own. An empty list keeps the study's.
type Placing struct {
	Workload     string   // instead of all workloads
	Platforms    []string // with an engine after a colon: cn:docker
	Sizes        []string
	Provisioning []string
	Networks     []string
}

// Put gives the study what the command names. Of a platform that the study has, its other settings stay.
func (s *Spec) Put(p Placing, known Known) error {
	if p.Workload == "" && len(p.Platforms)+len(p.Sizes)+len(p.Provisioning)+len(p.Networks) == 0 {
		return nil
	}
	checked := s.where != ""     // a study without a file is not yet complete
	s.known, s.where = known, "" // errors are about flags
	if p.Workload != "" {
		s.Workloads = slices.DeleteFunc(slices.Clone(s.Workloads), func(u Use) bool { return u.Name != p.Workload })
		if len(s.Workloads) == 0 {
			s.Workloads = []Use{{Name: p.Workload}}
		}
		s.Figures, s.Claims = nil, nil // they are about the study's workloads
	}
	if len(p.Sizes) > 0 {
		s.Instances = p.Sizes
		for i := range s.Workloads {
			s.Workloads[i].Instances = nil
		}
	}
	if len(p.Platforms) > 0 {
		var places []Place
		for _, word := range p.Platforms {
			places = append(places, s.placesOf(word)...)
		}
		s.Platforms = places
	}
	for i := range s.Platforms {
		of := &s.Platforms[i]
		if of.Platform == notebook.BM {
			continue
		}
		if len(p.Provisioning) > 0 {
			of.Provisioning = p.Provisioning
		}
		if len(p.Networks) > 0 {
			of.Networks = p.Networks
		}
	}
	if !checked {
		return nil
	}
	if wrong := s.validate(); wrong != nil {
		return fmt.Errorf("study %s: %s", s.Name, wrong.text)
	}
	return nil
}

// placesOf are the places of a platform and, after a colon, an engine: the study's own, else one with the usual engines.
func (s *Spec) placesOf(word string) (all []Place) {
	name, engine, named := strings.Cut(word, ":")
	name = notebook.PlatformNamed(name)
	for _, p := range s.Platforms {
		if p.Platform == name {
			all = append(all, p)
		}
	}
	if all == nil {
		p := Place{Platform: name}
		if usual := s.known.Engines.Usual(name); len(usual) > 1 {
			p.Engines = Values{strings.Join(usual, "|")} // the first engine that the host supports
		}
		all = []Place{p}
	}
	if !named {
		return all
	}
	with := slices.DeleteFunc(slices.Clone(all), func(p Place) bool {
		return !slices.ContainsFunc(s.engines(p), func(choice string) bool { return slices.Contains(strings.Split(choice, "|"), engine) })
	})
	if len(with) == 0 {
		with = all[:1]
	}
	for i := range with {
		with[i].Engines = Values{engine}
	}
	return with
}
