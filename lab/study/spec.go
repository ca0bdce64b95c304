// Package study plans and runs an experiment. Treatments are run in rounds of random order. Guests and trials are two levels of
// variance. There are warm-ups, a stopping rule, and a notebook that holds every trial before the next begins (design, sections 5
// and 6).
package study

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/lab/device"
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

	known   Known          // what the study is checked against and planned with
	measure *measure.Kind  // the kind of Measured; nil: none
	config  measure.Config // what Measured says
	kernels guestKernels   // that were read for it
	where   string         // the file, for errors; empty if there is none
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

// HTTP is the workload that asks a user's own service over HTTP.
const HTTP = "http"

// isOwn reports whether the use is a user's own command and names no workload folder.
func (u Use) isOwn() bool { return u.Image != "" || len(u.Command) > 0 }

// service is the workload of a user's own service.
func (u Use) service(shipped fs.FS) (*workload.Workload, error) {
	w := &workload.Workload{Metric: workload.Metric{Metric: notebook.Metric{Name: "response time", Unit: "s"}, From: "mean"}}
	if page, ok := strings.CutPrefix(strings.Join(u.Ask, ""), "/"); ok && len(u.Ask) == 1 {
		var err error
		if w, err = workload.Find(shipped, HTTP, "."); err != nil {
			return nil, err
		}
		if w.Params, err = w.At(map[string]string{"path": "/" + page}); err != nil {
			return nil, err
		}
	} else {
		once := workload.Expand(u.Ask, map[string]string{"rate": "1", "seconds": "1", "requests": "1"})
		w.Load = &workload.Load{Ready: once, Command: once, Open: u.Ask}
	}
	w.Syncs = "" // what the service writes is the user's concern
	w.Name, w.Title, w.Paper = u.Name, "service on port "+strconv.Itoa(u.Port), ""
	w.Image = workload.Image{Reference: u.Image}
	w.Service = &workload.Service{Command: u.Command, Port: u.Port}
	return w, nil
}

// own is the workload of a user's own command.
func (u Use) own() *workload.Workload {
	w := &workload.Workload{
		Name: u.Name, Title: strings.Join(u.Command, " "), Command: u.Command,
		Image:  workload.Image{Reference: u.Image},
		Metric: workload.Metric{Metric: notebook.Metric{Name: "execution time", Unit: "s"}},
	}
	if len(u.Metrics) > 0 {
		w.Metric, w.Also = u.Metrics[0], u.Metrics[1:]
	}
	if u.Image == "" {
		w.Image.Suite = plainSuite
	}
	if u.Input != "" {
		w.Input = &workload.Input{Name: u.Input}
	}
	return w
}

// brief shortens a command line. Different command lines stay different.
func brief(argv []string) string {
	text := strings.Join(argv, " ")
	const most = 40
	if r := []rune(text); len(r) > most || len(argv) > 1 && strings.ContainsAny(strings.Join(argv, ""), " ") {
		return string(r[:min(len(r), most)]) + "… " + hash(argv)[len("sha256:"):][:6]
	}
	return text
}

// plainSuite is the Debian release of the root for a command that names no image.
const plainSuite = "trixie"

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

// Shipped lists the names of the studies in files, which holds NAME.yaml for each.
func Shipped(files fs.FS) []string {
	names, _ := fs.Glob(files, "*.yaml") // the pattern is valid
	for i, n := range names {
		names[i] = strings.TrimSuffix(n, ".yaml")
	}
	sort.Strings(names)
	return names
}

// Load reads a study: a shipped one by its name, or a user's file by its path. known is what it may name.
func Load(files fs.FS, name string, known Known) (*Spec, error) {
	if slices.Contains(Shipped(files), name) {
		text, err := fs.ReadFile(files, name+".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(name+".yaml", text, ".", known)
	}
	if !strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("unknown study %q; %s ship with Tare, and a path like ./%s.yaml names a file of your own",
			name, strings.Join(Shipped(files), ", "), name)
	}
	text, err := yamlfile.Read(name)
	if err != nil {
		return nil, fmt.Errorf("study file: %w", err)
	}
	return Parse(name, text, filepath.Dir(name), known)
}

// Parse reads a study file. Errors name the file, the line if it is known, and what must stand there.
func Parse(where string, text []byte, base string, known Known) (*Spec, error) {
	s := &Spec{Source: string(text), Base: base, where: where, known: known, Design: Design{Trials: 1}}
	if err := yamlfile.Decode(where, text, s); err != nil {
		return nil, err
	}
	s.defaults()
	if p := s.validate(); p != nil {
		if p.line > 0 {
			return nil, fmt.Errorf("%s:%d: %s", where, p.line, p.text)
		}
		return nil, s.located(errors.New(p.text), p.path...)
	}
	return s, nil
}

// Complete gives a spec that was made by hand its defaults and its source, and says what is wrong in it. The source is a study file
// with the same content.
func (s *Spec) Complete(known Known) error {
	s.known = known
	s.Design.Trials = cmp.Or(s.Design.Trials, 1) // a file may say 0, which is an error there
	s.defaults()
	if p := s.validate(); p != nil {
		return errors.New(p.text)
	}
	text, err := yaml.Marshal(s)
	s.Source, s.Base = string(text), "."
	return err
}

// Measure sets the kind of study of a spec that was made by hand. file is what a study file would hold under the kind's name.
func (s *Spec) Measure(kind string, file any) error {
	var n yaml.Node
	if err := n.Encode(file); err != nil {
		return err
	}
	s.Measured = map[string]yaml.Node{kind: n}
	return nil
}

// problem is an error in a study. path says where: keys and indexes from the top of the file.
type problem struct {
	path []any
	text string
	line int // line of the file, if it is known without the path
}

// at prepends keys to the problem's path.
func (p *problem) at(above ...any) *problem {
	p.path = append(above, p.path...)
	return p
}

// located adds to an error its place in the study file, if the study has one.
func (s *Spec) located(err error, path ...any) error {
	if s.where == "" {
		return err
	}
	return fmt.Errorf("%s%s: %w", s.where, yamlfile.Line([]byte(s.Source), path...), err)
}

func wrong(text string, path ...any) *problem { return &problem{path: path, text: text} }

func (s *Spec) defaults() {
	d := &s.Design
	if d.Rounds.Floor == 0 {
		d.Rounds.Floor = min(5, max(d.Rounds.Cap, 1))
	}
	if d.Rounds.Cap == 0 {
		d.Rounds.Cap = max(20, d.Rounds.Floor) // the papers repeat 20 times
	}
	if d.Rounds.Emulated == 0 {
		d.Rounds.Emulated = d.Rounds.Floor
	}
	if d.Timeout == "" {
		d.Timeout = "10m"
	}
}

var nameOK = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// validate says what is wrong in the study, as far as the file itself shows; nil: nothing.
func (s *Spec) validate() *problem {
	for _, check := range []func() *problem{s.checkKeys, s.checkTop, s.checkFigures, s.checkMeasured, s.checkLoadFrom} {
		if p := check(); p != nil {
			return p
		}
	}
	for i, u := range s.Workloads {
		if p := s.checkUse(u); p != nil {
			return p.at("workloads", i)
		}
	}
	for i, place := range s.Platforms {
		for _, check := range []func(Place) *problem{s.checkPlace, s.checkOthers, s.checkEngines, s.checkMachines, s.climbs, s.checkKernels, s.checkProvisioning} {
			if p := check(place); p != nil {
				return p.at("platforms", i)
			}
		}
	}
	for i, text := range s.Instances {
		if err := s.checkInstance(text); err != nil {
			return wrong(err.Error(), "instances", i)
		}
	}
	_, p := s.Design.parse()
	if p != nil {
		return p.at("design")
	}
	return nil
}

func (s *Spec) checkTop() *problem {
	if !nameOK.MatchString(s.Name) {
		return wrong(fmt.Sprintf("name: %q: lower-case letters, digits and hyphens were expected", s.Name), "name")
	}
	if len(s.Workloads) == 0 {
		return wrong("workloads: is empty; at least one `- name: …` was expected", "workloads")
	}
	if len(s.Platforms) == 0 {
		return wrong("platforms: is empty; at least one `- platform: bm|cn|vm|vmcn` was expected", "platforms")
	}
	if len(s.Instances) == 0 {
		return wrong("instances: is empty; names like large or sizes like 0.5/1GB were expected", "instances")
	}
	for i, text := range s.HostCores {
		if _, err := parseHostCores(text); err != nil {
			return wrong("host_cores: "+err.Error(), "host_cores", i)
		}
	}
	return nil
}

func (s *Spec) checkFigures() *problem {
	for i, f := range s.Figures {
		one, several := f.Workload != "" && f.By != "", len(f.Axes) > 0
		if f.Name == "" || f.Title == "" || one == several || several && f.Workload+f.By != "" || one && f.Radar {
			return wrong("figures: {name: …, title: …, workload: …, by: instance|host_cores|network|isolation|a parameter} was expected, or {name: …, title: …, axes: […]}", "figures", i)
		}
		if f.PublishedOf != "" && (!several || !slices.Contains(notebook.Provisionings, f.PublishedOf)) {
			return wrong(fmt.Sprintf("figures: published_of: %q: %s was expected, of a figure with axes:", f.PublishedOf, oneOf(notebook.Provisionings)), "figures", i, "published_of")
		}
		if f.Radar && len(f.Axes) < 3 {
			return wrong("figures: radar: three axes: or more were expected", "figures", i)
		}
		for j, a := range f.Axes {
			if a.Name == "" || a.Workload == "" {
				return wrong("figures: axes: {name: …, workload: …} was expected", "figures", i, "axes", j)
			}
			for platform := range a.Published {
				if all := []string{notebook.CN, notebook.VM, notebook.VMCN}; !slices.Contains(all, platform) {
					return wrong(fmt.Sprintf("figures: axes: published: %q: one of %s was expected", platform, strings.Join(all, ", ")), "figures", i, "axes", j)
				}
			}
		}
	}
	return nil
}

// measuredKeys are the keys of Measured, in the order of the file.
func (s *Spec) measuredKeys() []string {
	return slices.SortedFunc(maps.Keys(s.Measured), func(a, b string) int { return cmp.Compare(s.Measured[a].Line, s.Measured[b].Line) })
}

// checkKeys says which key belongs neither to a study nor to a kind.
func (s *Spec) checkKeys() *problem {
	kinds := s.known.Kinds.Names(nil)
	for _, key := range s.measuredKeys() {
		if !slices.Contains(kinds, key) {
			return wrong(yamlfile.Unknown(key, slices.Concat(yamlfile.Keys(s), kinds)), key)
		}
		if node := s.Measured[key]; node.ShortTag() == "!!null" { // the key without a value, as of any other
			delete(s.Measured, key)
		}
	}
	return nil
}

// checkMeasured reads what the study measures instead of the time of its work.
func (s *Spec) checkMeasured() *problem {
	s.measure, s.config = nil, nil
	for _, key := range s.measuredKeys() {
		k := s.known.Kinds.Find(key)
		if s.measure != nil {
			return wrong(fmt.Sprintf("%s: a study measures one thing, and this one has %s: already", key, s.measure.Name), key)
		}
		node := s.Measured[key]
		c, err := k.Part.Read(&node, s.names())
		if err != nil {
			return misread(key, err)
		}
		s.measure, s.config = k, c
	}
	once := s.rules().Once
	switch {
	case once == "":
	case s.Design.Trials != 1 || s.Design.Warmups != 0:
		return wrong(fmt.Sprintf("%s: %s: set trials: 1 and warmups: 0 in design:", s.measure.Name, once), s.measure.Name)
	case s.LoadFrom != "":
		return wrong(fmt.Sprintf("%s: %s, asked from this host: leave out load_from:", s.measure.Name, once), s.measure.Name)
	case s.beside():
		return wrong(fmt.Sprintf("neighbours: the study has %s:, and %s: leave out one of them", s.measure.Name, once), "neighbours")
	}
	return nil
}

// misread is an error in a kind's part of the file, as a problem.
func misread(key string, err error) *problem {
	path := []any{key}
	if p := (*measure.Problem)(nil); errors.As(err, &p) {
		path = append(path, p.Path...)
	}
	w := wrong(key+": "+err.Error(), path...)
	if p := (*yamlfile.PartError)(nil); errors.As(err, &p) {
		w.text, w.line = err.Error(), p.Line
	}
	return w
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

func (s *Spec) checkLoadFrom() *problem {
	if err := checkFrom(s.LoadFrom); err != nil {
		return wrong("load_from: "+err.Error(), "load_from")
	}
	return nil
}

func (s *Spec) checkUse(u Use) *problem {
	for j, text := range u.Instances {
		if err := s.checkInstance(text); err != nil {
			return wrong(err.Error(), "instances", j)
		}
	}
	switch own := u.Port != 0; {
	case own != (len(u.Ask) > 0):
		return wrong("service: and load: one without the other; the port of a service and what asks it were expected")
	case own && (u.Port < 1 || u.Port > 65535 || u.Image == "" || u.Input != ""):
		return wrong(fmt.Sprintf("service: %d: the port of a service, 1 to 65535, of an image: and without an input: was expected", u.Port), "service")
	case own && !(len(u.Ask) == 1 && strings.HasPrefix(u.Ask[0], "/")) && !strings.Contains(strings.Join(u.Ask, " "), "{rate}"):
		return wrong("load: the path of a page, or a command with {rate} in it, was expected", "load")
	}
	if len(u.Metrics) > 0 {
		if u.Port != 0 || !u.isOwn() {
			return wrong("metrics: are of a command of your own; a workload has its metrics in its own file, and a service its capacity", "metrics")
		}
		if err := u.own().CheckMetrics(); err != nil {
			return wrong("metrics: "+err.Error(), "metrics")
		}
	}
	if u.Rounds < 0 || u.Rounds > MostRounds {
		return wrong(fmt.Sprintf("rounds: %d: a number from 1 to %d was expected", u.Rounds, MostRounds), "rounds")
	}
	if err := badDevice(u.Devices); err != nil {
		return wrong("devices: "+err.Error(), "devices")
	}
	if !nameOK.MatchString(u.Name) && !strings.Contains(u.Name, "/") {
		return wrong(fmt.Sprintf("name: %q: the name of a workload, or a path with a slash, was expected", u.Name), "name")
	}
	return nil
}

func (s *Spec) checkPlace(p Place) *problem {
	if s.known.Engines.Names(p.Platform) == nil {
		return wrong(fmt.Sprintf("unknown platform %q; %s was expected", p.Platform, oneOf(s.known.Engines.Platforms())), "platform")
	}
	if p.Platform == notebook.BM && len(p.Engines)+len(p.Provisioning)+len(p.Networks) > 0 {
		return wrong("bm has neither engines, provisioning nor networks: it is bound to its cores and has the host's network")
	}
	return nil
}

// checkOthers says what is wrong in the settings for the host's other CPUs and memory.
func (s *Spec) checkOthers(p Place) *problem {
	for _, o := range []struct{ key, value, yes, no string }{{"other_cpus", p.OtherCPUs, offline, online}, {"other_memory", p.OtherMemory, withheld, free}} {
		switch {
		case !slices.Contains([]string{"", o.yes, o.no}, o.value):
			return wrong(fmt.Sprintf("%s: %q is unknown: write %s or %s", o.key, o.value, o.yes, o.no), o.key)
		case o.value == o.yes && p.Platform != notebook.BM:
			return wrong(fmt.Sprintf("%s: %s is for bm, and this platform is %s: leave it out", o.key, o.yes, p.Platform), o.key)
		case o.value == o.yes && (s.rules().Untimed || s.beside()):
			what := "neighbours"
			if s.rules().Untimed {
				what = s.measure.Name
			}
			return wrong(fmt.Sprintf("%s: %s is for one guest at a time: leave it out, or %s:", o.key, o.yes, what), o.key)
		}
	}
	return nil
}

func (s *Spec) checkEngines(p Place) *problem {
	for j, n := range p.Networks {
		if !slices.Contains(notebook.Networks, n) {
			return wrong(fmt.Sprintf("unknown network %q; %s was expected", n, oneOf(notebook.Networks)), "networks", j)
		}
	}
	known := s.known.Engines.Names(p.Platform)
	for j, choice := range p.Engines {
		for _, e := range strings.Split(choice, "|") {
			if !slices.Contains(known, e) {
				return wrong(fmt.Sprintf("unknown engine %q for %s; %s was expected", e, p.Platform, strings.Join(known, ", ")), "engines", j)
			}
		}
	}
	if s.config != nil {
		if err := s.config.Fits(p.Platform, p.Networks, p.Isolation); err != nil {
			return wrong(s.measure.Name+": "+err.Error(), "platform")
		}
	}
	return nil
}

func (s *Spec) checkMachines(p Place) *problem {
	for j, m := range p.Machines {
		if k := s.known.Engines.Of(p.Platform)[0]; !k.Machines {
			return wrong(fmt.Sprintf("machines: a guest of %s is none: a platform with virtual machines was expected", p.Platform), "machines")
		}
		if _, err := notebook.ParseMachine(m); err != nil {
			return wrong(err.Error(), "machines", j)
		}
	}
	return nil
}

func (s *Spec) checkKernels(p Place) *problem {
	for j, file := range p.Kernel {
		switch {
		case !s.takesKernel(p):
			return wrong(fmt.Sprintf("kernel: a guest of %s has none of its own: a platform with virtual machines was expected", p.Platform), "kernel")
		case file == "":
			return wrong("kernel: is empty; the path of a bzImage or a vmlinux, or "+ownKernel+", was expected", "kernel", j)
		}
	}
	return nil
}

func (s *Spec) checkProvisioning(p Place) *problem {
	for j, v := range p.Provisioning {
		switch {
		case !slices.Contains(notebook.Provisionings, v):
			return wrong(fmt.Sprintf("unknown provisioning %q; %s was expected", v, oneOf(notebook.Provisionings)), "provisioning", j)
		case v == notebook.Whole && !s.ofHost():
			return wrong(fmt.Sprintf("provisioning %s: what has no limits is as large as the host: the instance %s was expected among the study's", v, notebook.HostSize), "provisioning", j)
		}
	}
	return nil
}

// checkInstance says what is wrong in the name of an instance type.
func (s *Spec) checkInstance(text string) error {
	switch _, err := notebook.ParseInstance(text); {
	case text != notebook.HostSize:
		return err
	case len(s.HostCores) > 0:
		return fmt.Errorf("instance %s: in a study with host_cores the host has several sizes: another instance was expected", text)
	}
	return nil
}

// ofHost reports whether the study has guests as large as the host.
func (s *Spec) ofHost() bool {
	return slices.Contains(s.Instances, notebook.HostSize) ||
		slices.ContainsFunc(s.Workloads, func(u Use) bool { return slices.Contains(u.Instances, notebook.HostSize) })
}

// climbs says what is wrong in the rungs of a place on the isolation ladder.
func (s *Spec) climbs(p Place) *problem {
	var rungs engine.Kind // the engine of the place whose guests are always rungs
	for _, choice := range p.Engines {
		for _, name := range strings.Split(choice, "|") {
			if k, err := s.known.Engines.Find(p.Platform, name); err == nil && len(k.Provisionings) == 0 {
				rungs = k
			}
		}
	}
	alone := rungs.Name != ""
	switch {
	case !alone && len(p.Isolation) == 0:
		return nil
	case p.Platform != notebook.CN:
		return wrong(fmt.Sprintf("isolation: %s is no rung of it: with platform cn, engines [%s] or a container's was expected", p.Platform, notebook.LayersEngine), "isolation")
	case alone && !slices.Equal(p.Engines, []string{rungs.Name}):
		return wrong(fmt.Sprintf("engine %s stands alone: another `- platform: cn` for the other engines was expected", rungs.Name), "engines")
	case alone && len(p.Isolation) == 0:
		return wrong(fmt.Sprintf("engine %s: isolation: all, or a list of %s, was expected", rungs.Name, strings.Join(rungs.Isolations, ", ")), "engines")
	case alone && len(p.Provisioning) > 0:
		return wrong(fmt.Sprintf("engine %s has no provisioning: bare metal's CPU set and its layer quota are both", rungs.Name), "provisioning")
	case len(p.Networks) > 0:
		return wrong("a rung of the isolation ladder has the network of its layers: none was expected here", "networks")
	case !alone && slices.ContainsFunc(p.Provisioning, func(v string) bool { return v != notebook.Pinned }):
		return wrong(fmt.Sprintf("isolation %s is pinned: provisioning: [%s], or none, was expected", notebook.IsolationFull, notebook.Pinned), "provisioning")
	}
	for j, l := range p.isolation() {
		if alone && !slices.Contains(rungs.Isolations, l) {
			return wrong(fmt.Sprintf("unknown layer %q; all, or of %s, was expected", l, strings.Join(rungs.Isolations, ", ")), "isolation", j)
		}
		if !alone && l != notebook.IsolationFull {
			return wrong(fmt.Sprintf("isolation %q: %s was expected, or engines: [%s]", l, notebook.IsolationFull, notebook.LayersEngine), "isolation", j)
		}
	}
	return nil
}

// oneOf lists alternatives: "a, b or c".
func oneOf(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

func (d Design) parse() (notebook.Design, *problem) {
	out := notebook.Design{Floor: d.Rounds.Floor, Cap: d.Rounds.Cap, Emulated: d.Rounds.Emulated, Trials: d.Trials, Warmups: d.Warmups}
	for _, n := range []struct {
		keys      []string
		value, lo int
	}{
		{[]string{"rounds", "floor"}, out.Floor, 1}, {[]string{"rounds", "cap"}, out.Cap, out.Floor}, {[]string{"rounds", "emulated"}, out.Emulated, 1},
		{[]string{"trials"}, out.Trials, 1}, {[]string{"warmups"}, out.Warmups, 0},
	} {
		if n.value < n.lo || n.value > MostRounds {
			return out, wrong(fmt.Sprintf("design: %s: %d: a number from %d to %d was expected", strings.Join(n.keys, ": "), n.value, n.lo, MostRounds), n.keys[0])
		}
	}
	t, err := time.ParseDuration(d.Timeout)
	if err != nil || t < time.Second || t > 7*24*time.Hour {
		return out, wrong(fmt.Sprintf("design: timeout: %q: a time from 1s to 168h, like 90s or 10m, was expected", d.Timeout), "timeout")
	}
	out.TimeoutS = t.Seconds()
	if d.Precision != "" {
		if out.Precision, err = yamlfile.Share(d.Precision); err != nil {
			return out, wrong("design: precision: "+err.Error(), "precision")
		}
	}
	return out, nil
}

// MostRounds is the upper limit on rounds, trials and warm-ups.
const MostRounds = 100_000

// Only selects the treatments of a plan that have these values.
type Only map[string]string

// String is the form that ParseOnly reads.
func (o Only) String() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		all = append(all, k+"="+o[k])
	}
	return strings.Join(all, ",")
}

// ParseOnly reads KEY=VALUE,….
func ParseOnly(text string) (Only, error) {
	only := Only{}
	if text == "" {
		return only, nil
	}
	keys := []string{"workload", "platform", "engine", "provisioning", "instance", "network", "isolation"}
	for _, kv := range strings.Split(text, ",") {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || v == "" {
			return nil, fmt.Errorf("--only %q: KEY=VALUE was expected, with a key of %s", kv, strings.Join(keys, ", "))
		}
		if !slices.Contains(keys, k) {
			return nil, fmt.Errorf("--only: unknown key %q; %s was expected", k, strings.Join(keys, ", "))
		}
		if only[k] != "" {
			return nil, fmt.Errorf("--only: %s is named twice; one value of each key was expected", k)
		}
		only[k] = v
	}
	return only, nil
}

// instances are the instance types of a use: its own, or the study's.
func (s *Spec) instances(u use) []string {
	if len(u.Use.Instances) > 0 {
		return u.Use.Instances
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

// keeps reports whether the treatment is selected. Bare metal stays whatever platform, engine or provisioning is selected, because
// the others are compared with it.
func (o Only) keeps(t notebook.Treatment) bool {
	for k, v := range o {
		switch {
		case k == "workload" && t.Workload != v,
			k == "instance" && t.Instance.Name != v,
			t.Platform != notebook.BM && (k == "platform" && t.Platform != v || k == "engine" && t.Engine != v || k == "provisioning" && t.Provisioning != v || k == "network" && t.Network != v || k == "isolation" && t.Isolation != v):
			return false
		}
	}
	return true
}

// known says which value occurs nowhere in the study.
func (o Only) known(s *Spec, us []use) error {
	has := map[string][]string{"provisioning": slices.Clone(notebook.Provisionings)}
	for _, u := range us {
		has["workload"] = append(has["workload"], u.Workload.Name)
		has["instance"] = append(has["instance"], s.instances(u)...)
		if u.Service != nil {
			has["network"] = append(has["network"], notebook.NetBridge) // where the study names no network
		}
	}
	for _, p := range s.Platforms {
		has["platform"] = append(has["platform"], p.Platform)
		has["network"] = append(has["network"], p.Networks...)
		has["isolation"] = append(has["isolation"], p.isolation()...)
		es := p.Engines
		if len(es) == 0 {
			es = s.known.Engines.Names(p.Platform)[:1]
		}
		for _, choice := range es {
			has["engine"] = append(has["engine"], strings.Split(choice, "|")...)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(has[k], o[k]) {
			all := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(has[k]))), func(v string) bool { return v == "" })
			return fmt.Errorf("--only %s=%s: the study %s has %s", k, o[k], s.Name, strings.Join(all, ", "))
		}
	}
	return nil
}

// checkFrom says what is wrong in the name of the machine on which loads run.
func checkFrom(from string) error {
	if from == "" {
		return nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "ssh" || !hostOK.MatchString(u.Hostname()) || u.Path+u.RawQuery+u.Fragment != "" || u.User != nil && !hostOK.MatchString(u.User.String()) {
		return fmt.Errorf("%q: a machine as ssh://[USER@]HOST[:PORT] was expected", from)
	}
	return nil
}

var hostOK = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$`)

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

// drawable says which figure the report could not draw: its workload is not in the study, or the workload does not have the axis.
// This is reported before days of measuring, not after them.
func (s *Spec) drawable(us []use) error {
	for _, f := range s.Figures {
		for _, a := range f.Axes {
			if err := measurable(a, us); err != nil {
				return fmt.Errorf("study %s: figure %q: axis %q: %w", s.Name, f.Name, a.Name, err)
			}
		}
		if len(f.Axes) > 0 {
			continue
		}
		var names, axes, metrics []string
		for _, u := range us {
			names = append(names, u.Workload.Name)
			if u.Workload.Name != f.Workload {
				continue
			}
			if axes == nil {
				axes = append([]string{"instance", "host_cores", "network", "isolation"}, slices.Sorted(maps.Keys(u.params))...)
			}
			first, also := u.Workload.Metric.Metric, u.Workload.Secondary()
			if s.config != nil {
				first, also = s.drawn(u.Workload)
			}
			metrics = []string{first.Name}
			for _, m := range also {
				if m.Better != "" {
					metrics = append(metrics, m.Name)
				}
			}
			for k := range f.Params {
				if _, ok := u.params[k]; !ok {
					return fmt.Errorf("study %s: figure %q: params: workload %s has no parameter %q", s.Name, f.Name, f.Workload, k)
				}
			}
		}
		switch {
		case axes == nil:
			slices.Sort(names)
			return fmt.Errorf("study %s: figure %q: workload: %q: one of the study's was expected: %s", s.Name, f.Name, f.Workload, strings.Join(slices.Compact(names), ", "))
		case f.Metric != "" && !slices.Contains(metrics, f.Metric):
			return fmt.Errorf("study %s: figure %q: metric: %q: one of %s was expected", s.Name, f.Name, f.Metric, strings.Join(metrics, ", "))
		case f.Metric != "" && f.By == "isolation":
			return fmt.Errorf("study %s: figure %q: metric: %q: the stairs of an isolation ladder are those of its workload's metric: leave it out", s.Name, f.Name, f.Metric)
		case !slices.Contains(axes, f.By):
			return fmt.Errorf("study %s: figure %q: by: %q: one of %s was expected", s.Name, f.Name, f.By, strings.Join(axes, ", "))
		}
	}
	return nil
}

// drawn are the metrics of what the study measures, if its figures named all of them.
func (s *Spec) drawn(w *workload.Workload) (first notebook.Metric, also []notebook.Metric) {
	_, all := s.config.Metrics(w, nil)
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return s.config.Metrics(w, names)
}

// measurable says why the study has nothing on a figure's axis.
func measurable(a notebook.Axis, us []use) error {
	why := fmt.Errorf("workload: %q: one of the study's was expected", a.Workload)
	for _, u := range us {
		if u.Workload.Name != a.Workload {
			continue
		}
		has := func(m notebook.Metric) bool { return m.Name == a.Metric && m.Better != "" }
		switch {
		case a.Metric != "" && !slices.ContainsFunc(u.Workload.Secondary(), has):
			return fmt.Errorf("metric: %q: a secondary metric of workload %s was expected, of which it is said which values are better", a.Metric, a.Workload)
		case a.Metric == "" && !u.Workload.Metric.Directed():
			return fmt.Errorf("metric: the metric of workload %s has no direction (better: none), so it cannot be on an axis", a.Workload)
		case !hasAll(u.params, a.Params):
			why = fmt.Errorf("params: %s: the study has workload %s with none such", notebook.Label("", a.Params), a.Workload)
		default:
			return nil
		}
	}
	return why
}

// hasAll reports whether all contains every parameter of some, with the same value.
func hasAll(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// use is one workload with one combination of its parameters, as the study uses it.
type use struct {
	*workload.Workload
	Use
	params map[string]string
	open   bool // its length may be chosen
}

func (u use) label() string { return notebook.Label(u.Workload.Name, u.params) }

// orMore follows the least value of the parameter that is a workload's length.
const orMore = " or more"

// uses returns each workload with each combination of its parameters.
func (s *Spec) uses(shipped fs.FS) (all []use, err error) {
	from := map[string]string{}
	for i, u := range s.Workloads {
		var w *workload.Workload
		switch {
		case u.Port != 0:
			w, err = u.service(shipped)
		case u.isOwn():
			w = u.own()
		}
		if err != nil {
			return nil, s.located(err, "workloads", i)
		}
		if w != nil {
			w.Image.WrittenIn(s.Base)
		} else if w, err = workload.Find(shipped, u.Name, s.Base); err != nil {
			return nil, s.located(err, "workloads", i)
		}
		// The workload's name distinguishes treatments.
		if other, ok := from[w.Name]; ok && other != u.Name {
			return nil, fmt.Errorf("study %s: the workloads %s and %s are both named %s: rename one in its %s", s.Name, other, u.Name, w.Name, workload.File)
		}
		from[w.Name] = u.Name
		combos := []map[string]string{{}}
		for _, name := range slices.Sorted(maps.Keys(u.Params)) {
			if n := len(combos) * len(u.Params[name]); n > notebook.MaxTreatments {
				return nil, s.located(fmt.Errorf("params: %d combinations; a study may have at most %d configurations", n, notebook.MaxTreatments), "workloads", i, "params")
			}
			var more []map[string]string
			for _, c := range combos {
				for _, v := range u.Params[name] {
					n := maps.Clone(c)
					n[name] = v
					more = append(more, n)
				}
			}
			combos = more
		}
		for _, c := range combos {
			open := false
			if least, ok := strings.CutSuffix(c[w.Length], orMore); ok {
				c[w.Length], open = least, true
			}
			full, err := w.Resolve(c)
			if err != nil {
				return nil, s.located(err, "workloads", i, "params")
			}
			if open {
				full[w.Length] = cmp.Or(s.Lengths[notebook.Label(w.Name, full)], full[w.Length])
			}
			if len(u.Command) > 0 {
				full["command"] = brief(u.Command) // another command is another treatment
			}
			if len(u.Ask) > 0 {
				full["load"] = brief(u.Ask)
			}
			each, err := s.each(full)
			if err == nil {
				each, err = u.having(each)
			}
			if err != nil {
				return nil, s.located(err, "workloads", i)
			}
			for _, full := range each {
				company, err := s.neighbours(u).each(full)
				if err != nil {
					return nil, s.located(err, "workloads", i)
				}
				for _, full := range company {
					all = append(all, use{w, u, full, open})
				}
			}
		}
	}
	return all, nil
}

// badDevice says what is wrong in the names of devices; nil: nothing.
func badDevice(names []string) error {
	for i, name := range names {
		if err := device.Check(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%q stands there twice", name)
		}
	}
	return nil
}

// each combines a workload's parameters with every value of the kind's factors. The factors become parameters, so that everything
// that distinguishes treatments by their parameters distinguishes these, and a guest is compared with bare metal that has the same
// values.
func (s *Spec) each(full map[string]string) (all []map[string]string, err error) {
	all = []map[string]string{full}
	if s.config == nil {
		return all, nil
	}
	for _, of := range s.config.Factors() {
		if len(of.Values) == 0 {
			continue
		}
		if _, taken := full[of.Name]; taken {
			return nil, fmt.Errorf("%s: the workload has a parameter %q of its own: one without it was expected", s.measure.Name, of.Name)
		}
		var more []map[string]string
		for _, params := range all {
			for _, v := range of.Values {
				n := maps.Clone(params)
				n[of.Name] = v
				more = append(more, n)
			}
		}
		all = more
	}
	return all, nil
}

// having adds the devices to parameters, as each does with a kind's factors.
func (u Use) having(all []map[string]string) (out []map[string]string, err error) {
	if len(u.Devices) == 0 {
		return all, nil
	}
	for _, params := range all {
		if _, taken := params[notebook.ParamDevices]; taken {
			return nil, fmt.Errorf("devices: the workload has a parameter %q of its own: one without it was expected", notebook.ParamDevices)
		}
		params = maps.Clone(params)
		params[notebook.ParamDevices] = strings.Join(u.Devices, ",")
		out = append(out, params)
	}
	return out, nil
}

func identify(t notebook.Treatment) string {
	parts := []string{notebook.Label(t.Workload, t.Params), t.Platform}
	for _, p := range []string{t.Engine, t.Isolation, t.Accelerator, t.Provisioning} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if t.Kernel != "" {
		parts = append(parts, "kernel", t.Kernel)
	}
	parts = append(parts, t.Instance.Name)
	if t.Network != "" {
		parts = append(parts, "network", t.Network)
	}
	if t.Machine != "" {
		parts = append(parts, "machine", t.Machine)
	}
	if t.HostCores > 0 {
		parts = append(parts, fmt.Sprintf("on %d CPUs", t.HostCores))
	}
	if t.AA {
		parts = append(parts, "aa")
	}
	return strings.Join(parts, " ")
}

// hash covers everything that decides the meaning of the trials; a folder is continued only with the same hash.
func hash(parts ...any) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, p := range parts {
		if err := e.Encode(p); err != nil { // plain data: cannot fail
			panic(err)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
