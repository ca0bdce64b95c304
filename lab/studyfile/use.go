package studyfile

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/lab/image"
	"tare/lab/workload"
	"tare/notebook"
	"tare/yamlfile"
)

// Use is one workload with some of its parameters. Several values of a parameter make several treatments. A use may also be a user's own
// command from a user's own image, which needs no workload folder.
type Use struct {
	Name   string            `yaml:"name" jsonschema:"required"`
	Params map[string]Values `yaml:"params,omitempty"`

	Instances Values `yaml:"instances,omitempty"`                  // instead of the study's
	Machines  Values `yaml:"machines,omitempty" json:",omitempty"` // instead of the platforms'; omitted in the study's hash, which is older
	Rounds    int    `yaml:"rounds,omitempty"`                     // exactly this many, instead of the design's

	Neighbours Neighbours `yaml:"neighbours,omitempty" json:",omitempty"` // instead of the study's

	// Takes is about how long one run takes with these parameters, for the plan: "60s" on one core, or "60s, 3% serial" if further cores
	// shorten all but 3 % of it. It replaces the workload's own.
	Takes string `yaml:"takes,omitempty" json:"-"` // no part of the study's identity

	// Devices are the CDI names of the host's devices that each guest gets. Bare metal has them too.
	Devices Values `yaml:"devices,omitempty" json:",omitempty"` // omitted in the study's hash, which is older

	Image   string   `yaml:"image,omitempty"`   // reference of the image in which the command runs; empty: a plain Debian root
	Command []string `yaml:"command,omitempty"` // command to run; empty: the image's own
	Input   string   `yaml:"input,omitempty"`   // for a command: the name under {work} of the file that --input gives

	// Args are words for the image's own ENTRYPOINT, instead of its CMD. A use with a command has none.
	Args []string `yaml:"args,omitempty" json:",omitempty"` // omitted in the study's hash, which is older; so are those below
	// Env are variables of the environment as KEY=VALUE, in addition to the image's own.
	Env  Values `yaml:"env,omitempty" json:",omitempty"`  // omitted in the study's hash, which is older; so are those below
	Dir  string `yaml:"dir,omitempty" json:",omitempty"`  // working folder of the command; empty: the image's
	User string `yaml:"user,omitempty" json:",omitempty"` // in the form of an image's USER; empty: the image's
	// Volumes are folders or files of the host, as HOST:GUEST. Tare copies them into every guest's root; HOST is relative to the study file.
	Volumes Values `yaml:"volumes,omitempty" json:"-"` // the image's digest covers their content
	// Prepare is a command that runs in each guest and is not measured: before each run of a command, or before a service starts.
	Prepare []string `yaml:"prepare,omitempty" json:",omitempty"`

	// Metrics are the numbers that a command, or the load of a service, prints. The first ranks the platforms. Without
	// metrics: the command's time, or what the load's JSON has.
	Metrics []workload.Metric `yaml:"metrics,omitempty" json:",omitempty"` // omitted in the study's hash, which is older

	// Port makes the command a service that listens on this port.
	Port int `yaml:"service,omitempty" json:",omitempty"` // omitted in the study's hash, which is older
	// Ask is what sends requests to the service: the path of a page over HTTP, or a command of the image with {address}, {port}, {rate}
	// and {seconds} in it. With metrics and without a rate, the command chooses its own rate and length.
	Ask Values `yaml:"load,omitempty" json:",omitempty"`
	// Rate is the number of requests a second at which response times are measured; 0: the load's own rate.
	Rate int `yaml:"rate,omitempty" json:",omitempty"`
	// Request replaces a plain GET over HTTP.
	Request *Request `yaml:"request,omitempty" json:",omitempty"`
}

// Values is one value or a list of values, all read as text.
type Values []string

// UnmarshalYAML reads a scalar or a list of scalars.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	all, err := yamlfile.Scalars(n)
	*v = append(*v, all...)
	return err
}

// HTTP is the workload that sends requests to a user's own service over HTTP.
const HTTP = "http"

// isOwn reports whether the use is a user's own command and names no workload folder.
func (u Use) isOwn() bool { return u.Image != "" || len(u.Command) > 0 }

// page is the page that the load requests over HTTP, without its first slash.
func (u Use) page() (string, bool) {
	page, ok := strings.CutPrefix(strings.Join(u.Ask, ""), "/")
	return page, ok && len(u.Ask) == 1
}

// service is the workload of a user's own service.
func (u Use) service(shipped fs.FS, base string) (*workload.Workload, error) {
	w := &workload.Workload{Metric: workload.Metric{Metric: notebook.Metric{Name: "response time", Unit: "s"}, From: "mean"}}
	if page, ok := u.page(); ok {
		var err error
		if w, err = workload.Find(shipped, HTTP, "."); err != nil {
			return nil, err
		}
		if w.Params, err = w.At(map[string]string{"path": "/" + page}); err != nil {
			return nil, err
		}
		if err := u.Request.putInto(w, base); err != nil {
			return nil, err
		}
	} else {
		once := workload.Expand(u.Ask, map[string]string{"rate": "1", "seconds": "1", "requests": "1"})
		w.Load = &workload.Load{Ready: once, Command: once}
		if u.rated() {
			w.Load.Open = u.Ask
		}
	}
	if len(u.Metrics) > 0 {
		w.Metric, w.Also = u.Metrics[0], u.Metrics[1:]
	}
	if u.Rate > 0 {
		u.atRate(w)
	}
	w.Syncs = "" // what the service writes is the user's concern
	w.Name, w.Title, w.Paper = u.Name, "service on port "+strconv.Itoa(u.Port), ""
	w.Image = workload.Image{Reference: u.Image}
	w.Service = &workload.Service{Command: u.Command, Port: u.Port}
	w.Setting = u.setting(base)
	return w, nil
}

// rated reports whether Tare sets the load's rate: the use's rate, or the rates of a search for the capacity.
func (u Use) rated() bool { return u.Rate > 0 || len(u.Metrics) == 0 }

// own is the workload of a user's own command.
func (u Use) own(base string) *workload.Workload {
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
	w.Setting = u.setting(base)
	return w
}

// setting is what the use's command gets in addition to its image. Paths are relative to base.
func (u Use) setting(base string) workload.Setting {
	s := workload.Setting{Args: u.Args, Env: u.Env, Dir: u.Dir, User: u.User, Before: u.Prepare}
	for _, text := range u.Volumes {
		v := parseVolume(text)
		if !filepath.IsAbs(v.Host) {
			v.Host = filepath.Join(base, v.Host)
		}
		s.Volumes = append(s.Volumes, v)
	}
	return s
}

// parseVolume splits HOST:GUEST. HOST may contain a colon, GUEST may not.
func parseVolume(text string) image.Volume {
	at := strings.LastIndex(text, ":")
	if at < 0 {
		return image.Volume{Host: text}
	}
	return image.Volume{Host: text[:at], Guest: text[at+1:]}
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
