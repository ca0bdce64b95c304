// Package phoronix makes workloads from test profiles of the Phoronix Test Suite, whose catalogue is OpenBenchmarking.org. A profile is a folder with
// test-definition.xml, downloads.xml and install.sh. It has results-definition.xml if a figure is read from the test's output. Tare does not
// download what a profile needs: the user puts it into a folder.
package phoronix

import (
	"bytes"
	"cmp"
	"crypto/md5" // older profiles have no other checksum
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/lab/workload"
	"tare/notebook"
	"tare/yamlfile"
)

// mostXML and mostInput limit how many bytes of a profile's files Tare reads.
const (
	mostXML   = 1 << 20
	mostInput = 4 << 30
)

//go:embed packages.tsv
var packagesTSV string

//go:embed install-profile.sh
var installScript []byte

//go:embed run-profile.sh
var runScript []byte

// definition is test-definition.xml.
type definition struct {
	Title             string   `xml:"TestInformation>Title"`
	Version           string   `xml:"TestInformation>AppVersion"`
	Description       string   `xml:"TestInformation>Description"`
	Scale             string   `xml:"TestInformation>ResultScale"`
	Proportion        string   `xml:"TestInformation>Proportion"`
	Executable        string   `xml:"TestInformation>Executable"`
	Platforms         string   `xml:"TestProfile>SupportedPlatforms"`
	Dependencies      string   `xml:"TestProfile>ExternalDependencies"`
	Extends           string   `xml:"TestProfile>Extends"`
	Display           string   `xml:"TestProfile>RequiresDisplay"`
	Internet          string   `xml:"TestProfile>RequiresInternet"`
	InternetAtInstall string   `xml:"TestProfile>InstallRequiresInternet"`
	Network           string   `xml:"TestProfile>RequiresNetwork"`
	Arguments         string   `xml:"TestSettings>Default>Arguments"`
	PostArguments     string   `xml:"TestSettings>Default>PostArguments"`
	Options           []option `xml:"TestSettings>Option"`
}

type option struct {
	Name       string  `xml:"DisplayName"`
	Identifier string  `xml:"Identifier"`
	Prefix     string  `xml:"ArgumentPrefix"`
	Postfix    string  `xml:"ArgumentPostfix"`
	Default    int     `xml:"DefaultEntry"`
	Entries    []entry `xml:"Menu>Entry"`
}

type entry struct {
	Name  string `xml:"Name"`
	Value string `xml:"Value"`
}

// download is a package of downloads.xml.
type download struct {
	URL       string `xml:"URL"`
	MD5       string `xml:"MD5"`
	SHA256    string `xml:"SHA256"`
	File      string `xml:"FileName"`
	Platforms string `xml:"PlatformSpecific"`
}

// Imported is a workload made from a profile.
type Imported struct {
	Name   string
	Files  map[string][]byte // the files of the workload's folder, with workload.yaml
	Inputs []string          // names of the downloaded files, which may be large, in the folder with the inputs
}

// Import makes a workload from a profile. The name is that of the profile's folder, such as "fs-mark-1.0.3", and inputs is the folder with the
// files that the profile downloads. An error says why a profile cannot be imported.
func Import(name string, profile, inputs fs.FS) (*Imported, error) {
	var d definition
	if err := decode(profile, "test-definition.xml", &d); err != nil {
		return nil, fmt.Errorf("not the folder of a test profile: %w", err)
	}
	if err := d.possible(); err != nil {
		return nil, err
	}
	test := trailingVersion.ReplaceAllString(name, "")
	program := cmp.Or(strings.TrimSpace(d.Executable), test)
	if !plain.MatchString(program) || !plain.MatchString(test) {
		return nil, fmt.Errorf("program %q: must be a plain name, like the profile's folder without its version", program)
	}
	made := &Imported{Name: slug(strings.ToLower(test), "-"), Files: map[string][]byte{}}
	w := described{Name: made.Name, Title: strings.TrimSpace(d.Title + " " + d.Version), Image: image{Suite: "trixie"}}
	var err error
	if w.Image.Packages, err = packages(d.Dependencies); err != nil {
		return nil, err
	}
	for _, file := range []string{"install.sh", "pre.sh", "post.sh"} {
		text, err := read(profile, file)
		switch {
		case errors.Is(err, fs.ErrNotExist) && file != "install.sh":
		case err != nil:
			return nil, err
		default:
			made.Files[file] = text
			w.Files = append(w.Files, file)
		}
	}
	if err := made.downloads(profile, inputs); err != nil {
		return nil, err
	}
	w.Files = append(w.Files, made.Inputs...)
	arguments, choices, err := d.choices()
	if err != nil {
		return nil, err
	}
	w.Params = choices
	made.Files["arguments.tsv"], made.Files["install-profile.sh"], made.Files["run-profile.sh"] = arguments, installScript, runScript
	w.Files = append(w.Files, "arguments.tsv", "install-profile.sh", "run-profile.sh")
	w.Prepare = []string{"/bin/sh", "{work}/install-profile.sh", program}
	w.Command = []string{"/bin/sh", "{work}/run-profile.sh", "{cores}", program}
	for _, p := range slices.Sorted(maps.Keys(choices)) {
		w.Command = append(w.Command, p+"={"+p+"}")
	}
	if w.Metric, w.Also, err = d.metrics(profile); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Made by `tare workload import` from the Phoronix Test Suite's profile %s. Tare does not import how often the test runs and what it waits for.\n", name)
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(w); err != nil {
		return nil, err
	}
	made.Files[workload.File] = text.Bytes()
	return made, nil
}

// described is a workload.yaml.
type described struct {
	Name    string           `yaml:"name"`
	Title   string           `yaml:"title"`
	Image   image            `yaml:"image"`
	Files   []string         `yaml:"files"`
	Params  map[string]param `yaml:"params,omitempty"`
	Prepare []string         `yaml:"prepare,flow"`
	Command []string         `yaml:"command,flow"`
	Metric  metric           `yaml:"metric"`
	Also    []metric         `yaml:"also,omitempty"`
}

type image struct {
	Suite    string   `yaml:"suite"`
	Packages []string `yaml:"packages,flow"`
}

type param struct {
	Default string `yaml:"default"`
	Values  string `yaml:"values"`
	Help    string `yaml:"help"`
}

type metric struct {
	Name   string          `yaml:"name"`
	Unit   string          `yaml:"unit"`
	Better notebook.Better `yaml:"better,omitempty"`
	Match  string          `yaml:"match,omitempty"`
}

var (
	trailingVersion = regexp.MustCompile(`-[0-9]+(\.[0-9]+)*$`)
	plain           = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	notSlug         = regexp.MustCompile(`[^A-Za-z0-9]+`)
	notLetters      = regexp.MustCompile(`[^a-z]+`)
)

// slug is text with only letters and digits: by replaces everything else.
func slug(text, by string) string { return strings.Trim(notSlug.ReplaceAllString(text, by), by) }

// read reads a small file of a profile.
func read(dir fs.FS, name string) ([]byte, error) { return yamlfile.ReadFS(dir, name, mostXML) }

func decode(dir fs.FS, name string, into any) error {
	text, err := read(dir, name)
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// possible says why a profile cannot be a workload according to its definition; nil if it can.
func (d *definition) possible() error {
	yes := func(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }
	switch {
	case d.Title == "":
		return errors.New("test-definition.xml: it has no title: must be a test profile")
	case d.Platforms != "" && !listed(d.Platforms, "Linux"):
		return fmt.Errorf("it runs on %s, but guests run Linux", d.Platforms)
	case d.Extends != "":
		return fmt.Errorf("it extends the profile %s, which Tare cannot import with it", d.Extends)
	case yes(d.Display):
		return errors.New("it draws on a display, but guests have none")
	case yes(d.Internet) || yes(d.InternetAtInstall) || yes(d.Network):
		return errors.New("it needs the Internet, but guests have none")
	}
	return nil
}

// listed reports whether a comma-separated list has that word.
func listed(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), word) })
}

// packages are the Debian packages that a profile depends on.
func packages(dependencies string) (all []string, err error) {
	known := map[string][]string{}
	for line := range strings.Lines(packagesTSV) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		known[f[0]] = f[1:]
	}
	all = []string{"build-essential", "unzip", "bzip2", "xz-utils", "bash"}
	for _, d := range strings.Split(dependencies, ",") {
		if d = strings.TrimSpace(d); d == "" {
			continue
		}
		if known[d] == nil {
			return nil, fmt.Errorf("it depends on %q, whose Debian packages are unknown: must be one of %s", d, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		all = append(all, known[d]...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// downloads finds the files that a profile downloads among the inputs, and verifies their checksums.
func (m *Imported) downloads(profile, inputs fs.FS) error {
	var list struct {
		Packages []download `xml:"Downloads>Package"`
	}
	if err := decode(profile, "downloads.xml", &list); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, p := range list.Packages {
		if p.Platforms != "" && !listed(p.Platforms, "Linux") {
			continue
		}
		first, _, _ := strings.Cut(p.URL, ",")
		name := cmp.Or(strings.TrimSpace(p.File), path.Base(strings.TrimSpace(first)))
		switch {
		case !plain.MatchString(name) || m.Files[name] != nil:
			return fmt.Errorf("downloads.xml: %q: must be the plain name of a file that install.sh, pre.sh and post.sh do not use", name)
		case p.SHA256+p.MD5 == "":
			return fmt.Errorf("downloads.xml: %s has no checksum, so Tare cannot verify it", name)
		}
		if err := p.same(inputs, name); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s is missing: fetch it from %s", name, strings.TrimSpace(first))
			}
			return err
		}
		m.Inputs = append(m.Inputs, name)
	}
	slices.Sort(m.Inputs)
	m.Inputs = slices.Compact(m.Inputs)
	return nil
}

// same returns an error if an input does not have the checksum in the profile.
func (p download) same(inputs fs.FS, name string) error {
	f, err := inputs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, want := sha256.New(), p.SHA256
	if want == "" {
		sum, want = md5.New(), p.MD5
	}
	n, err := io.Copy(sum, io.LimitReader(f, mostInput+1))
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return err
	case n > mostInput:
		return fmt.Errorf("%s has more than %d GiB", name, mostInput>>30)
	case !strings.EqualFold(got, strings.TrimSpace(want)):
		return fmt.Errorf("%s is not the profile's file: its checksum is %s: must be %s", name, got, want)
	}
	return nil
}

// choices are a profile's options as parameters, and the arguments of each choice. A line of arguments.tsv begins with the choice's name.
func (d *definition) choices() (tsv []byte, params map[string]param, err error) {
	var text bytes.Buffer
	line := func(name, arguments string) error {
		if i := strings.IndexAny(arguments, "$`;|&<>()\\\"'*?\t\n"); i >= 0 {
			return fmt.Errorf("the arguments %q need a shell because of %q: must be plain words", arguments, arguments[i:i+1])
		}
		text.WriteString(strings.Join(append([]string{name}, strings.Fields(arguments)...), "\t") + "\n")
		return nil
	}
	if err := line("before", d.Arguments); err != nil {
		return nil, nil, err
	}
	params = map[string]param{}
	for _, o := range d.Options {
		name := notLetters.ReplaceAllString(strings.ToLower(cmp.Or(o.Identifier, o.Name)), "")
		if slices.Contains([]string{"", "work", "scratch", "cores", "memory", "address", "port"}, name) {
			name = "option" + name
		}
		switch _, twice := params[name]; {
		case twice:
			return nil, nil, fmt.Errorf("two of its options have the name %q", name)
		case len(o.Entries) == 0:
			return nil, nil, fmt.Errorf("its option %q has no menu: Tare cannot import options that the Phoronix Test Suite finds on the host or asks the user for", o.Name)
		}
		var values []string
		for _, e := range o.Entries {
			v := cmp.Or(slug(e.Name, "_"), slug(e.Value, "_"))
			if v == "" || slices.Contains(values, v) {
				return nil, nil, fmt.Errorf("its option %q has the choice %q twice or without a name", o.Name, e.Name)
			}
			values = append(values, v)
			if err := line(name+"="+v, o.Prefix+e.Value+o.Postfix); err != nil {
				return nil, nil, err
			}
		}
		if o.Default < 0 || o.Default >= len(values) {
			o.Default = 0
		}
		params[name] = param{Default: values[o.Default], Values: strings.Join(values, "|"), Help: cmp.Or(strings.TrimSpace(o.Name), name)}
	}
	err = line("after", d.PostArguments)
	return text.Bytes(), params, err
}
