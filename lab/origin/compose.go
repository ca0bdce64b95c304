package origin

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/yamlfile"
)

// Compose is a Compose file and the context of its values.
type Compose struct {
	Text   []byte
	Dir    string // its folder, to which paths in it are relative
	Lookup Lookup // variables of the caller and of .env
	Read   func(file string) ([]byte, error)
}

// composeFile is the part of a Compose file that Tare reads.
type composeFile struct {
	Services map[string]composeService `yaml:"services"`
}

// composeService is the part of a service that Tare reads. Rest has its other keys.
type composeService struct {
	Image       string          `yaml:"image"`
	Command     commandLine     `yaml:"command"`
	Entrypoint  commandLine     `yaml:"entrypoint"`
	Environment variables       `yaml:"environment"`
	EnvFile     envFiles        `yaml:"env_file"`
	Volumes     []composeVolume `yaml:"volumes"`
	Ports       []composePort   `yaml:"ports"`
	Expose      []string        `yaml:"expose"`
	WorkingDir  string          `yaml:"working_dir"`
	User        string          `yaml:"user"`
	CPUs        string          `yaml:"cpus"`
	CPUSet      string          `yaml:"cpuset"`
	MemLimit    string          `yaml:"mem_limit"`
	Deploy      struct {
		Resources struct {
			Limits struct {
				CPUs   string `yaml:"cpus"`
				Memory string `yaml:"memory"`
			} `yaml:"limits"`
		} `yaml:"resources"`
	} `yaml:"deploy"`
	Rest map[string]yaml.Node `yaml:",inline"`
}

// unmeasured are keys of a service that do not change its behaviour during the measurement.
var unmeasured = []string{
	"annotations", "attach", "container_name", "healthcheck", "hostname", "init", "labels", "logging", "platform", "profiles", "pull_policy",
	"restart", "scale", "stdin_open", "stop_grace_period", "stop_signal", "tty",
}

// commandLine is a list of words, or a line that is split like a shell's.
type commandLine struct {
	words []string
	set   bool
}

// UnmarshalYAML reads either form.
func (c *commandLine) UnmarshalYAML(n *yaml.Node) (err error) {
	if n.Kind == yaml.ScalarNode {
		if n.ShortTag() == "!!null" {
			return nil
		}
		c.set = true
		c.words, err = Words(n.Value)
		return err
	}
	c.set = true
	return n.Load(&c.words)
}

// variables are a map, or a list of KEY=VALUE.
type variables []string

// UnmarshalYAML reads either form.
func (v *variables) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return n.Load((*[]string)(v))
	}
	var all map[string]*string
	if err := n.Load(&all); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if value := all[key]; value != nil {
			key += "=" + *value
		}
		*v = append(*v, key)
	}
	return nil
}

// envFiles are one file, or a list of files or of {path: …}.
type envFiles []envFile

type envFile struct {
	Path     string `yaml:"path"`
	Required *bool  `yaml:"required"`
}

// UnmarshalYAML reads any of the forms.
func (e *envFiles) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*e = envFiles{{Path: n.Value}}
		return nil
	}
	return n.Load((*[]envFile)(e))
}

// UnmarshalYAML reads a path or {path: …}.
func (e *envFile) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		e.Path = n.Value
		return nil
	}
	type plain envFile
	return n.Load((*plain)(e))
}

// composeVolume is SOURCE:TARGET:MODE or its long form.
type composeVolume struct {
	Type   string `yaml:"type"`
	Source string `yaml:"source"`
	Target string `yaml:"target"`

	short string
}

// UnmarshalYAML reads either form.
func (v *composeVolume) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		v.short = n.Value
		return nil
	}
	type plain composeVolume
	return n.Load((*plain)(v))
}

// composePort is HOST:CONTAINER or its long form.
type composePort struct {
	Target   string `yaml:"target"`
	Protocol string `yaml:"protocol"`
}

// UnmarshalYAML reads either form.
func (p *composePort) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		p.Target, p.Protocol, _ = strings.Cut(n.Value, "/")
		return nil
	}
	type plain composePort
	return n.Load((*plain)(p))
}

// service returns the file's part about a service.
func (c Compose) service(name string) (*composeService, error) {
	if len(c.Text) > yamlfile.MaxBytes {
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(c.Text), yamlfile.MaxBytes)
	}
	var f composeFile
	if err := yaml.Unmarshal(c.Text, &f); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(f.Services) == 0 {
		return nil, errors.New("has no service: services: must list them")
	}
	s, ok := f.Services[name]
	if !ok {
		return nil, fmt.Errorf("has no service %.60q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(f.Services)), ", "))
	}
	return &s, nil
}

// Service reads a service of the file.
func (c Compose) Service(name string) (*Origin, error) {
	s, err := c.service(name)
	if err != nil {
		return nil, err
	}
	o := &Origin{Name: name}
	in := interpolation{lookup: c.Lookup}
	if s.Image == "" {
		return nil, fmt.Errorf("service %s: has no image:; Tare builds no images, so build one and name it with the key image", name)
	}
	o.Image, o.Dir, o.User, o.CPUSet = in.text(s.Image), in.text(s.WorkingDir), in.text(s.User), in.text(s.CPUSet)
	if words := in.all(s.Command.words); s.Entrypoint.set {
		o.Command = slices.Concat(in.all(s.Entrypoint.words), words)
	} else {
		o.Args = words
	}
	for _, step := range []func(*composeService, *Origin, *interpolation) error{c.environment, c.volumes, limits} {
		if err := step(s, o, &in); err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
	}
	for _, p := range s.Ports {
		target := in.text(p.Target)
		if protocol := in.text(p.Protocol); protocol != "" {
			target += "/" + protocol
		}
		o.addPort(target[strings.LastIndex(target, ":")+1:])
	}
	for _, p := range s.Expose {
		o.addPort(in.text(p))
	}
	if in.err != nil {
		return nil, fmt.Errorf("service %s: %w", name, in.err)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Rest)) {
		if !slices.Contains(unmeasured, key) && !strings.HasPrefix(key, "x-") && key != "build" {
			o.Left = append(o.Left, fmt.Sprintf("not taken over: %.60s", key))
		}
	}
	return o, nil
}

// environment adds the variables of the service; environment: takes precedence over env_file:.
func (c Compose) environment(s *composeService, o *Origin, in *interpolation) error {
	for _, f := range s.EnvFile {
		file := in.text(f.Path)
		text, err := c.Read(c.path(file))
		if err != nil {
			if f.Required != nil && !*f.Required {
				continue
			}
			return fmt.Errorf("env_file: %w", err)
		}
		env, err := ParseDotEnv(string(text), c.Lookup)
		if err != nil {
			return fmt.Errorf("env_file: %s:%w", file, err)
		}
		o.Env = append(o.Env, env...)
	}
	for _, text := range in.all(s.Environment) {
		kv, set, err := Variable(text, c.Lookup)
		if err != nil {
			return fmt.Errorf("environment: %w", err)
		}
		if set {
			o.Env = append(o.Env, kv)
		}
	}
	if o.Env = Merge(o.Env); len(o.Env) > maxVariables {
		return fmt.Errorf("environment: %d variables; at most %d are allowed", len(o.Env), maxVariables)
	}
	return nil
}

// path is a path in the file, relative to its folder.
func (c Compose) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, set := c.Lookup("HOME"); set {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.Dir, name)
}

// volumes adds the host's folders for the service.
func (c Compose) volumes(s *composeService, o *Origin, in *interpolation) error {
	for _, v := range s.Volumes {
		kind, source, target := in.text(v.Type), in.text(v.Source), in.text(v.Target)
		if v.short != "" {
			parts := strings.Split(in.text(v.short), ":")
			source, target = "", parts[0]
			if len(parts) > 1 {
				source, target = parts[0], parts[1]
			}
			kind = "volume"
			if source != "" && strings.ContainsAny(source[:1], "./~") {
				kind = "bind"
			}
		}
		switch {
		case target == "":
			return errors.New("volumes: must be SOURCE:TARGET, or name a target")
		case kind == "bind":
			o.Volumes = append(o.Volumes, Volume{c.path(source), target})
		case kind == "volume":
			o.leave("volume", strings.TrimPrefix(source+":"+target, ":"), "it starts empty; --volume FOLDER:"+target+" copies a folder")
		default:
			o.leave("mount", target, "of type "+kind)
		}
	}
	return nil
}

// limits reads the limits of the service.
func limits(s *composeService, o *Origin, in *interpolation) (err error) {
	of := s.Deploy.Resources.Limits
	for _, text := range []string{in.text(of.CPUs), in.text(s.CPUs)} {
		if text == "" || o.Cores > 0 {
			continue
		}
		if o.Cores, err = strconv.ParseFloat(text, 64); err != nil || !(o.Cores >= 0 && o.Cores <= 65536) {
			return fmt.Errorf("cpus: %.40q: must be a number of CPUs", text)
		}
	}
	for _, text := range []string{in.text(of.Memory), in.text(s.MemLimit)} {
		if text == "" || o.Memory > 0 {
			continue
		}
		if o.Memory, err = bytesOf(text); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	return nil
}

var bytesOK = regexp.MustCompile(`^([0-9]{1,15})([bkmg]?)b?$`)

// bytesOf parses a size in Compose's form: 512m, 1gb, 1024.
func bytesOf(text string) (int64, error) {
	m := bytesOK.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return 0, fmt.Errorf("%.40q: must be a size such as 512m or 2g", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	power := strings.Index("bkmg", m[2]) // an empty unit is the first one
	if unit := int64(1) << (10 * power); err == nil && n <= (1<<50)/unit {
		return n * unit, nil
	}
	return 0, fmt.Errorf("%.40q: is more than a petabyte", text)
}

// interpolation replaces variables in values, and keeps the first error.
type interpolation struct {
	lookup Lookup
	err    error
}

var reference = regexp.MustCompile(`\$(?:\$|\{[^{}$]*\}|[A-Za-z_][A-Za-z0-9_]*|)`)

var inBraces = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)(.*))?$`)

// text is a value with its variables replaced: $VAR, ${VAR}, ${VAR:-default}, ${VAR-default}; $$ is a dollar.
func (in *interpolation) text(value string) string {
	return reference.ReplaceAllStringFunc(value, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(ref, "$"), "{"), "}")
		m := inBraces.FindStringSubmatch(name)
		if m == nil {
			if in.err == nil {
				in.err = fmt.Errorf("%.60q: ${VAR} and ${VAR:-default} are allowed, and $$ for a dollar", ref)
			}
			return ref
		}
		got, set := in.lookup(m[1])
		if m[2] != "" && (!set || m[2] == ":-" && got == "") {
			return m[3]
		}
		return got
	})
}

func (in *interpolation) all(values []string) (out []string) {
	for _, v := range values {
		out = append(out, in.text(v))
	}
	return out
}
