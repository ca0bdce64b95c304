// Package studyfile reads study files. It knows what a file may say, says what is wrong in it and where, and turns the file and the
// choices of a command into what is asked to be measured: works, treatments and a design. It knows nothing of the host, and
// measures nothing.
package studyfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	"tare/yamlfile"
)

// Known is what a study can name.
type Known struct {
	Engines engine.Registry
	Kinds   measure.Registry
}

// Spec is a study as written in its file.
type Spec struct {
	Name  string `yaml:"name" jsonschema:"required"`
	Title string `yaml:"title,omitempty"`
	Paper string `yaml:"paper,omitempty"`

	Workloads []Use    `yaml:"workloads" jsonschema:"required"`
	Platforms []Place  `yaml:"platforms" jsonschema:"required"`
	Instances []string `yaml:"instances" jsonschema:"required"`
	HostCores []string `yaml:"host_cores,omitempty"` // run the study with each of these numbers of the host's CPUs online: numbers, or "all"

	Figures []notebook.Figure `yaml:"figures,omitempty"` // figures that the report draws
	Claims  []string          `yaml:"claims,omitempty"`  // sets of published claims that the report judges, by name

	// Measured is what is measured instead of the time of the work: the part of the file under the name of a kind of study (package
	// measure). A file may have one such part.
	Measured map[string]yaml.Node `yaml:",inline" json:"-"`

	// Neighbours are the neighbours of the measured guests; empty: none.
	Neighbours Neighbours `yaml:"neighbours,omitempty"`

	// LoadFrom is another machine from which services are asked, ssh://[USER@]HOST[:PORT]; empty: this host.
	LoadFrom string `yaml:"load_from,omitempty"`

	Design         Design `yaml:"design"`
	AllowEmulation bool   `yaml:"allow_emulation"` // VMs under software emulation where KVM boots no guest

	Source string `yaml:"-"` // the file as read
	Base   string `yaml:"-"` // folder that paths in the file are relative to

	// Lengths are the values chosen for parameters of which the study gives only the least value ("60 or more"), by the label with
	// the least value.
	Lengths map[string]string `yaml:"-"`

	known   Known                      // what the study is checked against and planned with
	measure *measure.Kind              // the kind of Measured; nil: none
	config  measure.Config             // what Measured says
	kernels map[string]notebook.Kernel // the kernel files that were read, by path
	where   string                     // the file, for errors; empty if there is none
}

// Use is one workload with some of its parameters; several values of a parameter make several treatments. Or it is a user's own
// command from a user's own image, which needs no workload folder.
type Use struct {
	Name   string            `yaml:"name" jsonschema:"required"`
	Params map[string]Values `yaml:"params,omitempty"`

	Instances []string `yaml:"instances,omitempty"` // in place of the study's
	Rounds    int      `yaml:"rounds,omitempty"`    // exactly this many, in place of the design's

	Neighbours Neighbours `yaml:"neighbours,omitempty" json:",omitempty"` // in place of the study's

	// Devices are the host's devices that each guest gets, all of them, by their CDI names. Bare metal has them too.
	Devices Values `yaml:"devices,omitempty" json:",omitempty"` // omitted in the study's hash, which is older

	Image   string   `yaml:"image,omitempty"`   // image of a command: a reference; empty: a plain Debian root
	Command []string `yaml:"command,omitempty"` // empty: the image's own
	Input   string   `yaml:"input,omitempty"`   // for a command: the name under {work} of the file that --input gives

	// Metrics are what a command prints. The first ranks the platforms. None: the command's time.
	Metrics []workload.Metric `yaml:"metrics,omitempty" json:",omitempty"` // omitted in the study's hash, which is older

	// Port makes the command a service that listens on this port.
	Port int `yaml:"service,omitempty" json:",omitempty"` // omitted in the study's hash, which is older
	// Ask is what asks the service at a rate: the path of a page to request over HTTP, or a command of the image with {address},
	// {port}, {rate} and {seconds} in it.
	Ask Values `yaml:"load,omitempty" json:",omitempty"`
}

// Values is one value or a list of values, all read as text.
type Values []string

// UnmarshalYAML reads a scalar or a list of scalars.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			return errors.New("a value or a list of values was expected")
		}
		*v = append(*v, n.Value)
	}
	return nil
}

// Place is a platform with its engines and kinds of provisioning.
type Place struct {
	Platform     string   `yaml:"platform" jsonschema:"required"`
	Engines      []string `yaml:"engines,omitempty"` // "crun|runc": the first that the host supports
	Provisioning []string `yaml:"provisioning,omitempty"`
	Networks     []string `yaml:"networks,omitempty"` // bridge, host, none; default: bridge if the workload has a service, otherwise the engine's own

	// Kernel names kernel files for the platform's guests, relative to the study file; each makes a treatment, and "default" stands
	// for the engine's own choice. The study's hash covers the contents of the files.
	Kernel Values `yaml:"kernel,omitempty" json:"-"`
	// Machines are the forms of VM to make (notebook.ParseMachine); default: the usual one.
	Machines []string `yaml:"machines,omitempty" json:",omitempty"` // omitted in the study's hash, which is older

	// OtherCPUs is what happens on bare metal to the CPUs that the instance does not have. "offline", where the host permits it,
	// makes bare metal at an instance of n cores a host of n cores; "online" is the default.
	OtherCPUs string `yaml:"other_cpus,omitempty" json:",omitempty"`
	// OtherMemory is what happens on bare metal to the host's memory that the instance does not have: "withheld", where the host
	// permits it, or "free", the default.
	OtherMemory string `yaml:"other_memory,omitempty" json:",omitempty"`

	// Isolation lists rungs of the isolation ladder. For the engine layers they are the topmost layers, or "all" of them. For other
	// engines the rung is "full": a pinned container on the bridge with a quota in addition to its CPU set.
	Isolation Values `yaml:"isolation,omitempty" json:",omitempty"` // omitted in the study's hash, which is older
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

// What happens to the other CPUs and the other memory of bare metal.
const (
	online   = "online"
	offline  = "offline"
	free     = "free"
	withheld = "withheld"
)

// allLayers stands for all of notebook.Rungs.
const allLayers = "all"

// Design is the experiment's design as written in a study file.
type Design struct {
	Rounds    Rounds `yaml:"rounds"`
	Precision string `yaml:"precision,omitempty"` // "3%": stop when every ratio is known to ± this share; empty: run to the cap
	Trials    int    `yaml:"trials"`
	Warmups   int    `yaml:"warmups"`
	Timeout   string `yaml:"timeout"` // of one trial
}

// Rounds are the least and the greatest number of rounds of each treatment.
type Rounds struct {
	Floor    int `yaml:"floor"`
	Cap      int `yaml:"cap"`
	Emulated int `yaml:"emulated,omitempty"` // for emulated treatments, which are never ranked; default the floor
}

// located adds to an error its place in the study file, if the study has one.
func (s *Spec) located(err error, path ...any) error {
	if s.where == "" {
		return err
	}
	return fmt.Errorf("%s%s: %w", s.where, yamlfile.Line([]byte(s.Source), path...), err)
}

// rules are the rules of the kind of study.
func (s *Spec) rules() measure.Rules {
	if s.measure == nil {
		return measure.Rules{}
	}
	return s.measure.Rules
}

// names are the names of the study's workloads.
func (s *Spec) names() (all []string) {
	for _, u := range s.Workloads {
		all = append(all, u.Name)
	}
	return all
}

// beside reports whether some measured guests have neighbours.
func (s *Spec) beside() bool {
	return len(s.Neighbours) > 0 || slices.ContainsFunc(s.Workloads, func(u Use) bool { return len(u.Neighbours) > 0 })
}

// ofHost reports whether the study has guests as large as the host.
func (s *Spec) ofHost() bool {
	return slices.Contains(s.Instances, notebook.HostSize) ||
		slices.ContainsFunc(s.Workloads, func(u Use) bool { return slices.Contains(u.Instances, notebook.HostSize) })
}

// MostRounds is the upper limit on rounds, trials and warm-ups.
const MostRounds = 100_000

// instances are the instance types of a use: its own, or the study's.
func (s *Spec) instances(u Use) []string {
	if len(u.Instances) > 0 {
		return u.Instances
	}
	return s.Instances
}

// neighbours are the neighbours of a use: its own, or the study's.
func (s *Spec) neighbours(u Use) Neighbours {
	if len(u.Neighbours) > 0 {
		return u.Neighbours
	}
	return s.Neighbours
}

// parseHostCores reads a number of CPUs; 0 stands for all CPUs of the host.
func parseHostCores(text string) (int, error) {
	if text == "all" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65536 {
		return 0, fmt.Errorf("%q: a number of CPUs, or all, was expected", text)
	}
	return n, nil
}

// takesKernel says whether the kernel of the place's guests can be chosen.
func (s *Spec) takesKernel(p Place) bool {
	return slices.ContainsFunc(s.known.Engines.Of(p.Platform), takes)
}

func takes(k engine.Kind) bool { return k.Kernel != nil }

// engine is an engine that the study names. Reading the file has already found it.
func (s *Spec) engine(platform, choice string) engine.Kind {
	name, _, _ := strings.Cut(choice, "|")
	k, err := s.known.Engines.Find(platform, name)
	if err != nil {
		panic(err)
	}
	return k
}
