// Package workload reads workloads, which are folders of data (design, section 5). It makes a workload ready to run: it builds the
// root filesystem and a tree with the workload's files, programs and input.
package workload

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/yamlfile"
)

// File is the name of the description in a workload's folder.
const File = "workload.yaml"

// Workload is an application with its input and its metric.
type Workload struct {
	Name  string `yaml:"name" jsonschema:"required"`
	Title string `yaml:"title"`
	Paper string `yaml:"paper"` // the place in the paper that describes it

	Image Image             `yaml:"image" jsonschema:"required"`
	Files []string          `yaml:"files"` // files of the folder that Tare copies to {work}
	Build map[string]string `yaml:"build"` // programs to compile: path in {work}, and the C source in the folder
	Input *Input            `yaml:"input"`

	Inputs     []Fetched `yaml:"inputs"`      // more files that Tare copies to {work}
	InputsFrom string    `yaml:"inputs_from"` // a file of the folder that lists more inputs

	Params map[string]Param `yaml:"params"`
	Length string           `yaml:"length"` // the parameter, a whole number, to which the time of a trial is proportional; empty: none

	// Takes is about how long one run with the default parameters takes on one core (ParseTakes), such as "1.5s" or "60s, 3% serial". It is
	// proportional to the length. Tare uses it only to say in advance how long a study takes.
	Takes string `yaml:"takes" json:"-"`

	// Syncs says whether results depend on synced writes (fsync, fdatasync, O_SYNC), which some platforms ignore. It does not change what runs.
	Syncs When `yaml:"syncs" json:"-"`
	// Shares says for which parameters all live guests of a configuration share one writable folder of the host, {shared}. Empty: never. VMs
	// cannot have it.
	Shares When `yaml:"shares" json:",omitempty"` // omitted in a study's hash, which is older

	Prepare []string `yaml:"prepare"` // run once on bare metal; what it leaves in {scratch} is added to {work}
	Command []string `yaml:"command"` // what is measured; empty: the image's own command
	Check   []string `yaml:"check"`   // run after each trial, unmeasured; a non-zero exit fails the trial

	// Stays says that the command never ends by itself. Its memory can be measured, but not its time.
	Stays bool `yaml:"stays" json:",omitempty"` // omitted in a study's hash, which is older

	// System says that the guest runs the image's own init with all that it starts, as a machine does. The command runs in it and ends when
	// the system is up. The system's memory can then be measured, but not its time.
	System bool `yaml:"system" json:",omitempty"`

	Service *Service `yaml:"service"` // what runs in the guest for as long as it lives
	Load    *Load    `yaml:"load"`    // with a service, what is measured instead of the command: it sends requests from outside the guest

	Output string   `yaml:"output"` // how the keys of metrics find a number in the output; empty: the last line is a JSON object of numbers
	Metric Metric   `yaml:"metric" jsonschema:"required"`
	Also   []Metric `yaml:"also"` // secondary metrics, which the measured command prints

	// Setting is for a user's command, which no folder describes.
	Setting Setting `yaml:"-" json:"-"`

	folder   fs.FS
	replaced map[string][]byte // files that replace the folder's
	origin   string            // the folder's name, for messages
}

// Allowed implements yamlfile.Limited.
func (*Workload) Allowed() map[string][]string { return map[string][]string{"output": outputs} }

// Service is a server that is started once in each guest and is ended with it.
type Service struct {
	Command []string `yaml:"command" jsonschema:"required"` // stays in the foreground; {address} and {port} say where it listens
	Port    int      `yaml:"port" jsonschema:"required"`
	Timeout string   `yaml:"timeout"` // the longest time until the load's ready command succeeds, ten times as long under emulation; default 2m
}

// Load is the program that sends requests to a service. On every platform it runs on the host, from the same root and files as the service,
// in a separate chroot and network namespace.
type Load struct {
	Ready   []string `yaml:"ready" jsonschema:"required"`   // run again and again until it exits with 0; then the service is ready
	Warm    []string `yaml:"warm"`                          // run once after that, unmeasured, for a service that is slow at first
	Command []string `yaml:"command" jsonschema:"required"` // what is measured; {address} and {port} say where the service is reached
	// Open sends {rate} requests a second for {seconds}, {requests} in all, whether or not they are answered. It prints what the command
	// prints, with requests_per_second. Capacity studies need it.
	Open []string `yaml:"open" json:",omitempty"` // omitted in a study's hash, which is older
	// First is the request that Tare itself repeats over TCP until a service that has just been started answers. Studies of starts under load
	// need it.
	First *Question `yaml:"first" json:"-"` // only one kind of study uses it, and hashes it separately
}

// Question is a request to a service, with the beginning of the right answer.
type Question struct {
	Send   Bytes `yaml:"send"` // empty: a connection is enough of an answer
	Answer Bytes `yaml:"answer"`
}

// Bytes are written in YAML as text, or as hexadecimal digits after "hex:".
type Bytes []byte

// UnmarshalYAML implements yaml.Unmarshaler.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) (err error) {
	digits, binary := strings.CutPrefix(n.Value, "hex:")
	switch {
	case n.Kind != yaml.ScalarNode:
		return errors.New("must be text")
	case !binary:
		*b = Bytes(n.Value)
		return nil
	}
	if *b, err = hex.DecodeString(strings.ReplaceAll(digits, " ", "")); err != nil {
		return fmt.Errorf("%q: after hex: must come hexadecimal digits", n.Value)
	}
	return nil
}

// Starting is the longest time until the service is ready.
func (s *Service) Starting(emulated bool) time.Duration {
	d, err := time.ParseDuration(s.Timeout)
	if err != nil { // only if it is empty: Read refuses other texts
		d = 2 * time.Minute
	}
	if emulated {
		d *= 10
	}
	return d
}

// Image says which root filesystem the workload needs: Debian packages, or an OCI image by reference.
type Image struct {
	Suite     string   `yaml:"suite"`
	Packages  []string `yaml:"packages"`
	Reference string   `yaml:"reference"`
}

// WrittenIn makes a reference that begins with a dot relative to the folder of the file that has it.
func (i *Image) WrittenIn(folder string) {
	if !strings.HasPrefix(i.Reference, ".") {
		return
	}
	i.Reference = path.Join(folder, i.Reference)
	if !path.IsAbs(i.Reference) {
		i.Reference = "./" + i.Reference // it stays a path, not a name in a registry
	}
}

// Input is a workload's input file. Tare fetches it, unless the user gives a file with --input.
type Input = Fetched

// Param is a parameter of a workload. It is always text.
type Param struct {
	Default string `yaml:"default"`
	Values  string `yaml:"values"`        // whole numbers, as "1 to 64", or a regular expression that a value matches as a whole
	Unit    string `yaml:"unit" json:"-"` // of its values, such as MiB
	Help    string `yaml:"help"`
}

// Read reads the workload in a folder. Errors name the file, the line if there is one, and what is allowed.
func Read(folder fs.FS, origin string) (*Workload, error) {
	where := path.Join(origin, File)
	text, err := yamlfile.ReadFS(folder, File, yamlfile.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a workload is a folder with a %s", where, err, File)
	}
	w := &Workload{folder: folder, origin: origin}
	if err := yamlfile.Decode(where, text, w); err != nil {
		return nil, err
	}
	if err := w.validate(); err != nil {
		key, _, _ := strings.Cut(err.Error(), ":")
		return nil, fmt.Errorf("%s%s: %w", where, yamlfile.Line(text, key), err)
	}
	return w, nil
}

var (
	nameOK         = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	fileOK         = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	packageOK      = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,99}$`)
	suiteOK        = regexp.MustCompile(`^[a-z][a-z-]{1,30}$`)
	placeholder    = regexp.MustCompile(`\{([a-z]+)\}`)
	ownPlaceholds  = []string{"work", "scratch", "cores", "memory", "address", "port"}
	openPlaceholds = []string{"rate", "seconds", "requests"} // of a load at a rate, with any parameters
)

// sharedPlacehold is replaced by the folder that guests share (Workload.Shares). A load may name it to a service.
const sharedPlacehold = "shared"

// placeholds are the placeholders that the workload's lines may have besides its parameters.
func (w *Workload) placeholds() []string {
	if w.Shares == "" {
		return ownPlaceholds
	}
	return append(slices.Clone(ownPlaceholds), sharedPlacehold)
}

func (w *Workload) validate() error {
	switch {
	case !nameOK.MatchString(w.Name):
		return fmt.Errorf("name: %q: must be 1 to 40 lower-case letters, digits and hyphens, beginning with a letter", w.Name)
	case len(w.Command) == 0 && w.Image.Reference == "" && w.Service == nil && w.Load == nil:
		return errors.New("command: is missing: write a list of the program and its arguments")
	case w.System && w.Stays:
		return errors.New("stays: cannot be combined with system: true, whose command ends when the system is up: leave one of the two out")
	case (w.Stays || w.System) && (w.Service != nil || w.Load != nil || len(w.Check) > 0 || w.Length != ""):
		return errors.New("command: a workload with stays or system is not timed: leave out service, load, check and length")
	case w.Image.Reference == "" && !suiteOK.MatchString(w.Image.Suite):
		return fmt.Errorf("image: suite: %q: must be the name of a Debian suite", w.Image.Suite)
	}
	for _, p := range w.Image.Packages {
		if !packageOK.MatchString(p) {
			return fmt.Errorf("image: packages: %q is not the name of a Debian package", p)
		}
	}
	for _, check := range []func() error{w.validateTakes, w.validateFiles, w.validateService, w.CheckMetrics, w.validateParams, w.validateLines} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workload) validateFiles() error {
	files := slices.Clone(w.Files)
	for program, source := range w.Build {
		files = append(files, program, source)
	}
	if w.Input != nil {
		files = append(files, w.Input.Name)
	}
	if w.InputsFrom != "" {
		files = append(files, w.InputsFrom)
	}
	for _, in := range w.Inputs {
		if err := in.validate(); err != nil {
			return fmt.Errorf("inputs: %w", err)
		}
	}
	for _, f := range files {
		if !fileOK.MatchString(f) {
			return fmt.Errorf("%q: must be the plain name of a file", f)
		}
	}
	if in := w.Input; in != nil && in.SHA256+in.PyPI+in.Maven+in.Member != "" {
		if err := in.validate(); err != nil {
			return fmt.Errorf("input: %w", err)
		}
	}
	if name := twice(w.placed()); name != "" {
		return fmt.Errorf("files: %q would be at {work} twice: names in files, build, input and inputs must differ", name)
	}
	return nil
}

func (w *Workload) validateParams() error {
	for name, p := range w.Params {
		if !regexp.MustCompile(`^[a-z]+$`).MatchString(name) || slices.Contains(w.placeholds(), name) {
			return fmt.Errorf("params: %q: must be lower-case letters and not one of %v", name, w.placeholds())
		}
		if _, err := regexp.Compile(p.Values); err != nil {
			return fmt.Errorf("params: %s: values: %w", name, err)
		}
		if !p.accepts(p.Default) {
			return fmt.Errorf("params: %s: default: %q: must be one of its values: %s", name, p.Default, p.Values)
		}
	}
	if err := cmp.Or(w.Syncs.check("syncs", w.Params), w.Shares.check("shares", w.Params)); err != nil {
		return err
	}
	if p := w.Params[w.Length]; w.Length != "" && !rangeOf.MatchString(p.Values) {
		return fmt.Errorf("length: %q: must be the name of a parameter whose values are whole numbers", w.Length)
	}
	return nil
}

// validateLines refuses placeholders in command lines that Expand would not replace.
func (w *Workload) validateLines() error {
	lines := map[string][]string{"prepare": w.Prepare, "command": w.Command, "check": w.Check}
	if w.Service != nil {
		lines["service"], lines["load"] = w.Service.Command, slices.Concat(w.Load.Ready, w.Load.Warm, w.Load.Command)
		lines["open"] = w.Load.Open
	}
	for key, argv := range lines {
		for _, arg := range argv {
			for _, m := range placeholder.FindAllStringSubmatch(arg, -1) {
				if key == "open" && slices.Contains(openPlaceholds, m[1]) {
					continue
				}
				if _, ok := w.Params[m[1]]; !ok && !slices.Contains(w.placeholds(), m[1]) {
					return fmt.Errorf("%s: {%s} is unknown: must be a parameter (%s) or one of %s", key, m[1], list(slices.Sorted(maps.Keys(w.Params))), list(w.placeholds()))
				}
				switch {
				case key == "prepare" && slices.Contains(w.placeholds()[2:], m[1]):
					return fmt.Errorf("prepare: {%s} differs between instances, but the preparation runs once for all of them: leave it out", m[1])
				case w.Service == nil && slices.Contains(ownPlaceholds[4:], m[1]):
					return fmt.Errorf("%s: {%s} is only for workloads with a service: leave it out", key, m[1])
				}
			}
		}
	}
	return nil
}

// placed are the names of the workload's files at {work}, except those of InputsFrom.
func (w *Workload) placed() []string {
	names := slices.Concat(w.Files, slices.Sorted(maps.Keys(w.Build)))
	if w.Input != nil {
		names = append(names, w.Input.Name)
	}
	for _, in := range w.Inputs {
		names = append(names, in.Name)
	}
	return names
}

// twice is a name that occurs twice; "" if none does.
func twice(names []string) string {
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return n
		}
	}
	return ""
}

func (w *Workload) validateService() error {
	s, l := w.Service, w.Load
	switch {
	case s == nil && l == nil:
		return nil
	case s == nil:
		return errors.New("load: needs a service: write both or neither")
	case l == nil:
		return errors.New("service: needs a load: write both or neither")
	case len(s.Command) == 0:
		return errors.New("service: command: is missing: write a list of the program and its arguments")
	case s.Port < 1024 || s.Port > 65535:
		return fmt.Errorf("service: port: %d: must be from 1024 to 65535", s.Port)
	case len(l.Ready) == 0 || len(l.Command) == 0:
		return errors.New("load: needs ready and command: write each as a list of a program and its arguments")
	case len(w.Command)+len(w.Check) > 0:
		return errors.New("command: leave out command and check of a workload with a service: Tare measures the load's command")
	}
	if s.Timeout != "" {
		if d, err := time.ParseDuration(s.Timeout); err != nil || d < time.Second || d > time.Hour {
			return fmt.Errorf("service: timeout: %q: must be a time from 1s to 1h", s.Timeout)
		}
	}
	return nil
}

var (
	rangeOf   = regexp.MustCompile(`^([0-9]{1,9}) to ([0-9]{1,9})$`)
	wholeOK   = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,8})$`)
	choicesOf = regexp.MustCompile(`^\w+(?:\|\w+)*$`)
)

// Most is n, or the greatest number that the parameter accepts if that is smaller.
func (p Param) Most(n int) int {
	if r := rangeOf.FindStringSubmatch(p.Values); r != nil {
		most, _ := strconv.Atoi(r[2]) // a few digits, so it cannot fail
		return min(n, most)
	}
	return n
}

func (p Param) accepts(value string) bool {
	if r := rangeOf.FindStringSubmatch(p.Values); r != nil {
		of := func(text string) int { n, _ := strconv.Atoi(text); return n } // a few digits, so it cannot fail
		return wholeOK.MatchString(value) && of(r[1]) <= of(value) && of(value) <= of(r[2])
	}
	return regexp.MustCompile(`^(?:` + p.Values + `)$`).MatchString(value)
}

// allowed says in words what the parameter accepts.
func (p Param) allowed() string {
	what := "must be a value such as " + p.Default
	switch {
	case rangeOf.MatchString(p.Values):
		what = "must be a whole number from " + p.Values
	case choicesOf.MatchString(p.Values):
		what = "must be " + strings.ReplaceAll(p.Values, "|", " or ")
	}
	if p.Help != "" {
		what += " (" + p.Help + ")"
	}
	return what
}

// Resolve returns a value for each parameter: the given one, or the default.
func (w *Workload) Resolve(given map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for name, p := range w.Params {
		all[name] = p.Default
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, ok := w.Params[name]
		if !ok {
			return nil, fmt.Errorf("workload %s has no parameter %q; it has %s", w.Name, name, list(slices.Sorted(maps.Keys(w.Params))))
		}
		if !p.accepts(given[name]) {
			return nil, fmt.Errorf("workload %s: %s=%q: %s", w.Name, name, given[name], p.allowed())
		}
		all[name] = given[name]
	}
	return all, nil
}

// Expand replaces placeholders in a command line. Each argument stays one argument, whatever its values hold.
func Expand(argv []string, values map[string]string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = placeholder.ReplaceAllStringFunc(arg, func(m string) string {
			if v, ok := values[m[1:len(m)-1]]; ok {
				return v
			}
			return m
		})
	}
	return out
}

// AsksAtRate reports whether a command line has a placeholder of a load at a rate.
func AsksAtRate(argv []string) bool {
	line := strings.Join(argv, " ")
	return slices.ContainsFunc(openPlaceholds, func(name string) bool { return strings.Contains(line, "{"+name+"}") })
}

// At returns the workload's parameters with other defaults.
func (w *Workload) At(defaults map[string]string) (map[string]Param, error) {
	values, err := w.Resolve(defaults)
	all := maps.Clone(w.Params)
	for name, p := range all {
		p.Default = values[name]
		all[name] = p
	}
	return all, err
}

// AtRate returns the parameters with those of a load that sends rate requests a second for some seconds.
func (w *Workload) AtRate(params map[string]string, rate, seconds int) map[string]string {
	all := maps.Clone(params)
	for i, v := range []int{rate, seconds, rate * seconds} {
		all[openPlaceholds[i]] = strconv.Itoa(v)
	}
	return all
}

// Shipped lists the workloads in shipped, which has one folder for each.
func Shipped(shipped fs.FS) []string {
	var names []string
	entries, _ := fs.ReadDir(shipped, ".") // sorted; reading an embedded file system cannot fail
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// ReadFolder reads the workload in a user's folder. It does not follow links that leave the folder.
func ReadFolder(name string) (*Workload, error) {
	root, err := os.OpenRoot(name) // stays open, because the workload reads its files later
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a workload is a folder with a %s", path.Join(name, File), err, File)
	}
	return Read(root.FS(), name)
}

// maxFile is the size limit of a file in a workload's folder, in bytes. Larger files belong in inputs.
const maxFile = 64 << 20

// file reads a file of the workload's folder.
func (w *Workload) file(name string) ([]byte, error) {
	if data, ok := w.replaced[name]; ok {
		return data, nil
	}
	text, err := yamlfile.ReadFS(w.folder, name, maxFile)
	if at, is := errors.AsType[*fs.PathError](err); is {
		if info, err := fs.Lstat(w.folder, name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s is a link to something outside the workload's folder (%w): put the file itself there", name, at.Err)
		}
	}
	return text, err
}

// Find reads a workload. A name stands for a workload in shipped. A path with a slash stands for a user's folder, relative to base.
func Find(shipped fs.FS, name, base string) (*Workload, error) {
	if strings.Contains(name, "/") {
		if !path.IsAbs(name) {
			name = path.Join(base, name)
		}
		w, err := ReadFolder(name)
		if err == nil {
			w.Image.WrittenIn(name)
		}
		return w, err
	}
	if !slices.Contains(Shipped(shipped), name) {
		meant := ""
		if near := yamlfile.Nearest(name, Shipped(shipped)); near != "" {
			meant = "did you mean " + near + "? "
		}
		return nil, fmt.Errorf("unknown workload %q: %s`tare workload list` names the shipped workloads, and a path with a slash names your own folder", name, meant)
	}
	folder, err := fs.Sub(shipped, name)
	if err != nil {
		return nil, err
	}
	w, err := Read(folder, name)
	if err == nil && w.Syncs == "" {
		w.Syncs = Never
	}
	return w, err
}

func list(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
