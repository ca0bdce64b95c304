package studyfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	"tare/yamlfile"
)

var nameOK = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// validate returns the first problem of the study that the file itself shows; nil: none.
func (s *Spec) validate() *problem {
	for _, check := range []func() *problem{s.checkKeys, s.checkTop, s.checkFigures, s.checkMeasured, s.checkLoadFrom, s.checkKSM, s.checkExplain} {
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
		for _, check := range []func(Place) *problem{s.checkPlace, s.checkOthers, s.checkEngines, s.checkMachines, s.checkIsolation, s.checkKernels, s.checkProvisioning} {
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
		return wrong(fmt.Sprintf("name: %q: must be at most 40 lower-case letters, digits and hyphens, beginning with a letter", s.Name), "name")
	}
	if len(s.Workloads) == 0 {
		return wrong("workloads: is empty: needs at least one `- name: …`", "workloads")
	}
	if len(s.Platforms) == 0 {
		return wrong("platforms: is empty: needs at least one `- platform: bm|cn|vm|vmcn`", "platforms")
	}
	if len(s.Instances) == 0 {
		return wrong("instances: is empty: needs a name such as large, or a size such as 0.5/1GB", "instances")
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
		one, several := f.OfWorkloads() || f.Workload != "" && f.By != "", len(f.Axes) > 0
		if f.Name == "" || f.Title == "" || one == several || several && f.Workload+f.By != "" || one && f.Radar {
			return wrong("figures: must be {name: …, title: …, workload: …, by: instance|host_cores|network|isolation|a parameter}, {name: …, title: …, by: workload} or {name: …, title: …, axes: […]}", "figures", i)
		}
		if f.PublishedOf != "" && (!several || !slices.Contains(notebook.Provisionings, f.PublishedOf)) {
			return wrong(fmt.Sprintf("figures: published_of: %q: must be %s, in a figure with axes:", f.PublishedOf, oneOf(notebook.Provisionings)), "figures", i, "published_of")
		}
		if f.Radar && len(f.Axes) < 3 {
			return wrong("figures: radar: needs at least three axes:", "figures", i)
		}
		for j, a := range f.Axes {
			if a.Name == "" || a.Workload == "" {
				return wrong("figures: axes: must be {name: …, workload: …}", "figures", i, "axes", j)
			}
			for platform := range a.Published {
				if all := []string{notebook.CN, notebook.VM, notebook.VMCN}; !slices.Contains(all, platform) {
					return wrong(fmt.Sprintf("figures: axes: published: %q: must be %s", platform, oneOf(all)), "figures", i, "axes", j)
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

// checkKeys refuses keys that belong neither to a study nor to a kind.
func (s *Spec) checkKeys() *problem {
	kinds := s.known.Kinds.Names(nil)
	for _, key := range s.measuredKeys() {
		if !slices.Contains(kinds, key) {
			return wrong(yamlfile.Unknown(key, slices.Concat(yamlfile.Keys(s), kinds)), key)
		}
		if node := s.Measured[key]; node.ShortTag() == "!!null" { // a key without a value counts as absent, as everywhere in the file
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
			return wrong(fmt.Sprintf("%s: a study measures one thing, and this study already has %s: leave out one of them", key, s.measure.Name), key)
		}
		node := s.Measured[key]
		c, err := k.Part.Read(&node, s.names())
		if err != nil {
			return misread(key, err)
		}
		s.measure, s.config = k, c
		s.Figures = slices.Clone(s.Figures)
		for i, f := range s.Figures {
			s.Figures[i].Metric = notebook.MetricKey(k.Name, f.Metric)
		}
	}
	once := s.rules().Once
	switch {
	case once == "":
	case s.Design.Trials != 1 || s.Design.Warmups != 0:
		return wrong(fmt.Sprintf("%s: %s: set trials: 1 and warmups: 0 in design:", s.measure.Name, once), s.measure.Name)
	case s.LoadFrom != "":
		return wrong(fmt.Sprintf("%s: %s, with a load from this host: leave out load_from:", s.measure.Name, once), s.measure.Name)
	case s.hasNeighbours():
		return wrong(fmt.Sprintf("neighbours: the study has %s:, and %s: leave out one of them", s.measure.Name, once), "neighbours")
	}
	return nil
}

// misread turns an error in a kind's part of the file into a problem.
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

func (s *Spec) checkLoadFrom() *problem {
	if err := checkFrom(s.LoadFrom); err != nil {
		return wrong("load_from: "+err.Error(), "load_from")
	}
	return nil
}

// checkExplain refuses unknown tracers.
func (s *Spec) checkExplain() *problem {
	if s.Explain == "" {
		return nil
	}
	if _, err := ParseExplain(s.Explain); err != nil {
		return wrong("explain: "+err.Error(), "explain")
	}
	return nil
}

// checkKSM refuses unknown settings of KSM, and KSM in studies that do not time work.
func (s *Spec) checkKSM() *problem {
	switch {
	case s.KSM == "":
	case !slices.Contains(notebook.KSMSettings, s.KSM):
		return wrong(fmt.Sprintf("ksm: %q: must be %s", s.KSM, oneOf(notebook.KSMSettings)), "ksm")
	case s.rules().Untimed:
		return wrong(fmt.Sprintf("ksm: is allowed only in studies that time work, and this study measures %s: leave out ksm:", s.measure.Name), "ksm")
	}
	return nil
}

func (s *Spec) checkUse(u Use) *problem {
	for j, text := range u.Instances {
		if err := s.checkInstance(text); err != nil {
			return wrong(err.Error(), "instances", j)
		}
	}
	if _, err := workload.ParseTakes(u.Takes); err != nil {
		return wrong(err.Error(), "takes")
	}
	if p := cmp.Or(machinesAreRight(u.Machines), u.checkService(), s.checkMetrics(u), u.checkSetting(), s.checkRate(u)); p != nil {
		return p
	}
	if u.Rounds < 0 || u.Rounds > MostRounds {
		return wrong(fmt.Sprintf("rounds: %d: must be from 1 to %d", u.Rounds, MostRounds), "rounds")
	}
	if err := checkDevices(u.Devices); err != nil {
		return wrong("devices: "+err.Error(), "devices")
	}
	if !nameOK.MatchString(u.Name) && !strings.Contains(u.Name, "/") {
		return wrong(fmt.Sprintf("name: %q: must be the name of a workload, or a path with a slash", u.Name), "name")
	}
	return nil
}

// checkService checks a service of the user's own, and its load.
func (u Use) checkService() *problem {
	own := u.Port != 0
	_, page := u.page()
	ask := strings.Join(u.Ask, " ")
	switch {
	case own != (len(u.Ask) > 0):
		return wrong("service: and load: must be given together: the port of the service, and the load that it gets")
	case own && (u.Port < 1 || u.Port > 65535 || u.Image == "" || u.Input != ""):
		return wrong(fmt.Sprintf("service: %d: must be a port from 1 to 65535, with image: and without input:", u.Port), "service")
	case !own || page:
		return nil
	case u.rated() && !strings.Contains(ask, "{rate}"):
		return wrong("load: must be the path of a page, a command with {rate} in it, or a command with metrics: that it prints", "load")
	case !u.rated() && workload.AsksAtRate(u.Ask):
		return wrong("load: {rate}, {seconds} and {requests} stand for a rate, and this load has none: set rate:, or write numbers instead", "load")
	}
	return nil
}

// checkMetrics checks the metrics that a command, or the load of a service, prints.
func (s *Spec) checkMetrics(u Use) *problem {
	_, page := u.page()
	switch {
	case len(u.Metrics) == 0:
		return nil
	case !u.isOwn():
		return wrong("metrics: is only for a command or a service of your own; a workload has its metrics in its own file", "metrics")
	case page:
		return wrong("metrics: needs a command that prints them, but load: is a page: write a command, or leave out metrics:", "metrics")
	case u.Port != 0 && s.measure != nil:
		return wrong(fmt.Sprintf("metrics: reads what the load prints, but the study measures %s: leave out one of them", s.measure.Name), "metrics")
	}
	if err := u.own(".").CheckMetrics(); err != nil {
		return wrong("metrics: "+err.Error(), "metrics")
	}
	return nil
}

func (s *Spec) checkPlace(p Place) *problem {
	if s.known.Engines.Names(p.Platform) == nil {
		return wrong(fmt.Sprintf("unknown platform %q; %s", p.Platform, s.meant(p.Platform)), "platform")
	}
	if p.Platform == notebook.BM && len(p.Engines)+len(p.Provisioning)+len(p.Networks) > 0 {
		return wrong("platform bm takes neither engines:, provisioning: nor networks:, because it uses a CPU set and the host's network: leave them out")
	}
	return nil
}

// meant returns what to write instead of a platform that does not exist.
func (s *Spec) meant(name string) string {
	for _, of := range s.known.Engines.Platforms() {
		switch {
		case name == "" || !slices.Contains(s.known.Engines.Names(of), name):
		case s.where == "": // from flags
			return fmt.Sprintf("it is an engine of %s: use %s:%s", of, of, name)
		default:
			return fmt.Sprintf("it is an engine: use platform: %s with engines: [%s]", of, name)
		}
	}
	return "must be one of " + strings.Join(s.known.Engines.Platforms(), ", ")
}

// checkOthers checks the settings for the host's other CPUs and memory.
func (s *Spec) checkOthers(p Place) *problem {
	for _, o := range []struct{ key, value, yes, no string }{{"other_cpus", p.OtherCPUs, offline, online}, {"other_memory", p.OtherMemory, withheld, free}} {
		switch {
		case !slices.Contains([]string{"", o.yes, o.no}, o.value):
			return wrong(fmt.Sprintf("%s: %q: must be %s or %s", o.key, o.value, o.yes, o.no), o.key)
		case o.value == o.yes && p.Platform != notebook.BM:
			return wrong(fmt.Sprintf("%s: %s is only for bm, and this platform is %s: leave it out", o.key, o.yes, p.Platform), o.key)
		case o.value == o.yes && (s.rules().Untimed || s.hasNeighbours()):
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
			return wrong(fmt.Sprintf("unknown network %q; must be %s", n, oneOf(notebook.Networks)), "networks", j)
		}
	}
	known := s.known.Engines.Names(p.Platform)
	for j, choice := range p.Engines {
		for _, e := range strings.Split(choice, "|") {
			if !slices.Contains(known, e) {
				return wrong(fmt.Sprintf("unknown engine %q for %s; must be %s", e, p.Platform, oneOf(known)), "engines", j)
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
	if k := s.known.Engines.Of(p.Platform)[0]; len(p.Machines) > 0 && !k.Machines {
		return wrong(fmt.Sprintf("machines: is only for virtual machines, and this platform is %s: leave it out", p.Platform), "machines")
	}
	return machinesAreRight(p.Machines)
}

// machinesAreRight checks the machines of a platform or of a workload.
func machinesAreRight(texts Values) *problem {
	for j, text := range texts {
		if _, err := notebook.ParseMachine(text); err != nil {
			return wrong(err.Error(), "machines", j)
		}
	}
	return nil
}

func (s *Spec) checkKernels(p Place) *problem {
	for j, file := range p.Kernel {
		switch {
		case !s.takesKernel(p):
			return wrong(fmt.Sprintf("kernel: is only for virtual machines, and this platform is %s: leave it out", p.Platform), "kernel")
		case file == "":
			return wrong("kernel: is empty: must be the path of a bzImage or a vmlinux, or "+ownKernel, "kernel", j)
		}
	}
	return nil
}

func (s *Spec) checkProvisioning(p Place) *problem {
	for j, v := range p.Provisioning {
		switch {
		case !slices.Contains(notebook.Provisionings, v):
			return wrong(fmt.Sprintf("unknown provisioning %q; must be %s", v, oneOf(notebook.Provisionings)), "provisioning", j)
		case v == notebook.Whole && !s.ofHost():
			return wrong(fmt.Sprintf("provisioning %s: has no limits, so its size is the host's: add %s to instances:", v, notebook.HostSize), "provisioning", j)
		}
	}
	return nil
}

// checkInstance checks the name of an instance type.
func (s *Spec) checkInstance(text string) error {
	switch _, err := notebook.ParseInstance(text); {
	case text != notebook.HostSize:
		return err
	case len(s.HostCores) > 0:
		return fmt.Errorf("instance %s: the host has several sizes in a study with host_cores: use another instance", text)
	}
	return nil
}

// layerList says what may follow isolation: where an engine makes rungs.
var layerList = "all, each, or a list of " + strings.Join(notebook.Rungs, ", ") + "; " + notebook.OnlyLayer + " before a name means only that layer"

// checkIsolation checks the rungs of a place on the isolation ladder.
func (s *Spec) checkIsolation(p Place) *problem {
	var rungs engine.Kind // the engine of the place whose guests are always rungs
	for _, choice := range p.Engines {
		for _, name := range strings.Split(choice, "|") {
			if k, err := s.known.Engines.Find(p.Platform, name); err == nil && len(k.Provisionings) == 0 {
				rungs = k
			}
		}
	}
	ladder := rungs.Name != ""
	switch {
	case !ladder && len(p.Isolation) == 0:
		return nil
	case p.Platform != notebook.CN:
		return wrong(fmt.Sprintf("isolation: is only for cn, and this platform is %s: leave it out", p.Platform), "isolation")
	case ladder && !slices.Equal(p.Engines, []string{rungs.Name}):
		return wrong(fmt.Sprintf("engine %s: must be the only engine here: write another `- platform: cn` for the others", rungs.Name), "engines")
	case ladder && len(p.Isolation) == 0:
		return wrong(fmt.Sprintf("engine %s: needs isolation: %s", rungs.Name, layerList), "engines")
	case ladder && len(p.Provisioning) > 0:
		return wrong(fmt.Sprintf("engine %s: takes no provisioning:, because bare metal's CPU set and the layer quota limit its CPUs: leave it out", rungs.Name), "provisioning")
	case len(p.Networks) > 0:
		return wrong("networks: a rung of the isolation ladder has the network of its layers: leave it out", "networks")
	case !ladder && slices.ContainsFunc(p.Provisioning, func(v string) bool { return v != notebook.Pinned }):
		return wrong(fmt.Sprintf("isolation %s: has a CPU set: write provisioning: [%s], or leave it out", notebook.IsolationFull, notebook.Pinned), "provisioning")
	}
	for j, l := range p.isolation() {
		if ladder && !slices.Contains(rungs.Isolations, l) {
			return wrong(fmt.Sprintf("unknown layer %q; must be %s", l, layerList), "isolation", j)
		}
		if !ladder && l != notebook.IsolationFull {
			return wrong(fmt.Sprintf("isolation %q: must be %s; single layers need engines: [%s]", l, notebook.IsolationFull, notebook.LayersEngine), "isolation", j)
		}
	}
	return nil
}

// checkDevices checks the names of devices.
func checkDevices(names []string) error {
	for i, name := range names {
		if err := device.Check(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%q is named twice: name it once", name)
		}
	}
	return nil
}
