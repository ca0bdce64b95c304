// Package studyfile reads study files. It knows what a file may contain, reports where it is wrong, and turns the file and the choices of
// a command into works, treatments and a design. It knows nothing of the host, and measures nothing.
package studyfile

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/lab/engine"
	"tare/lab/measure"
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

	Workloads []Use   `yaml:"workloads" jsonschema:"required"`
	Platforms []Place `yaml:"platforms" jsonschema:"required"`
	Instances Values  `yaml:"instances" jsonschema:"required"`
	HostCores Values  `yaml:"host_cores,omitempty"` // run the study with each of these numbers of the host's CPUs online: numbers, or "all"

	Figures []notebook.Figure `yaml:"figures,omitempty"` // figures that the report draws
	Claims  Values            `yaml:"claims,omitempty"`  // sets of published claims that the report judges, by name

	// Measured is what the study measures instead of the time of the work: the part of the file under the name of a kind of study
	// (package measure). A file may have one such part.
	Measured map[string]yaml.Node `yaml:",inline" json:"-"`

	// Neighbours are busy guests next to the measured ones; empty: none.
	Neighbours Neighbours `yaml:"neighbours,omitempty"`

	// KSM makes the host's kernel merge identical pages during the run; empty: the host's own setting stays.
	KSM string `yaml:"ksm,omitempty"`

	// LoadFrom is another machine that runs the loads of services, ssh://[USER@]HOST[:PORT]; empty: this host.
	LoadFrom string `yaml:"load_from,omitempty"`

	// Explain are the tracers of additional, traced runs, as --explain names them. --explain takes precedence; empty: no run is traced.
	Explain string `yaml:"explain,omitempty" json:",omitempty"`

	Design         Design `yaml:"design"`
	AllowEmulation bool   `yaml:"allow_emulation"` // allow software emulation of VMs if KVM cannot boot a guest

	Source string `yaml:"-"` // the file as read
	Base   string `yaml:"-"` // folder that paths in the file are relative to

	// Lengths are the chosen values of parameters for which the study gives a least value ("60 or more"), by the label with the least
	// value.
	Lengths map[string]string `yaml:"-"`

	known   Known          // what the study is checked against and planned with
	measure *measure.Kind  // the kind of Measured; nil: none
	config  measure.Config // what Measured says
	where   string         // the file, for errors; empty if there is none
}

// Allowed implements yamlfile.Limited.
func (Spec) Allowed() map[string][]string { return map[string][]string{"ksm": notebook.KSMSettings} }

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

// hasNeighbours reports whether some measured guests have neighbours.
func (s *Spec) hasNeighbours() bool {
	return len(s.Neighbours) > 0 || slices.ContainsFunc(s.Workloads, func(u Use) bool { return len(u.Neighbours) > 0 })
}

// ofHost reports whether the study has guests as large as the host.
func (s *Spec) ofHost() bool {
	return slices.Contains(s.Instances, notebook.HostSize) ||
		slices.ContainsFunc(s.Workloads, func(u Use) bool { return slices.Contains(u.Instances, notebook.HostSize) })
}

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
		return 0, fmt.Errorf("%q: must be a number of CPUs, or all", text)
	}
	return n, nil
}

// takesKernel reports whether the kernel of the place's guests can be chosen.
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

// withoutNeighbours is the study without neighbours. It has no figures either, because they may be about neighbours.
func (s *Spec) withoutNeighbours() Spec {
	alone := *s
	alone.Neighbours, alone.Workloads, alone.Figures = nil, slices.Clone(s.Workloads), nil
	for i := range alone.Workloads {
		alone.Workloads[i].Neighbours = nil
	}
	return alone
}

// engines are the engines of a place, each as a study file names it: its own, or the platform's first.
func (s *Spec) engines(p Place) []string {
	if len(p.Engines) > 0 {
		return p.Engines
	}
	return s.known.Engines.Names(p.Platform)[:1]
}

// checkFrom checks the address of the machine that runs loads.
func checkFrom(from string) error {
	if from == "" {
		return nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "ssh" || !hostOK.MatchString(u.Hostname()) || u.Path+u.RawQuery+u.Fragment != "" || u.User != nil && !hostOK.MatchString(u.User.String()) {
		return fmt.Errorf("%q: must be ssh://[USER@]HOST[:PORT]", from)
	}
	return nil
}

var hostOK = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$`)
