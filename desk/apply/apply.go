// Package apply writes the configuration that a choice of package advise stands for: a docker command line, a compose
// service, a Kubernetes pod, a libvirt domain, or a systemd unit.
package apply

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"go.yaml.in/yaml/v4"

	"tare/desk/advise"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
)

// Formats are those that Write writes.
var Formats = []string{"docker", "compose", "kubernetes", "libvirt", "systemd"}

//go:embed formats
var files embed.FS

// texts are the formats' templates, each by its name with ".tmpl" behind it. They write a setting, and are read when one is written.
var texts = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"list": notebook.FormatCPUList,
		"size": size,
		// half is for /dev/shm: half of the memory, as every guest of Tare's has it, and as a machine of that memory would. What
		// an engine gives by itself is too small for programs that run on any machine.
		"half":  func(memory int64) int64 { return memory / 2 },
		"kib":   func(memory int64) int64 { return (memory + 1023) / 1024 },
		"share": func(memory int64, nodes [][]int) int64 { return memory / int64(len(nodes)) },
		"yaml": func(text string) (string, error) {
			b, err := yaml.Marshal(text)
			return strings.TrimSpace(string(b)), err
		},
		// Two hyphens would end an XML comment.
		"comment": func(text string) string {
			for strings.Contains(text, "--") {
				text = strings.ReplaceAll(text, "--", "- -")
			}
			return text
		},
	}).ParseFS(files, "formats/*.tmpl"))
})

// Placeholder stands for the image where the study's is none that a registry or an engine knows.
const Placeholder = "YOUR-IMAGE"

// reference is an image as registries and engines name it. What a study used may also be a folder or a recipe.
var reference = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9.-]{0,200}[a-z0-9])?(?::[0-9]{1,5})?/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)

// deviceName is a device as CDI names it: VENDOR/CLASS=DEVICE.
var deviceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*/[A-Za-z][A-Za-z0-9_-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// devices are those that the treatment's guests had.
func devices(t notebook.Treatment) []string {
	if names := notebook.FactorDevices.Of(t); names != "" {
		return strings.Split(names, ",")
	}
	return nil
}

// Devices are those that the guest is to have.
func (s setting) Devices() []string { return devices(s.Treatment) }

// setting is a choice as the formats need it.
type setting struct {
	notebook.Treatment
	Name     string // of a service, pod or domain
	Image    string
	Port     int   // where the service listens; 0: it has none
	CPUs     []int // of the host, where they are fixed
	Others   []int // the host's other CPUs
	Comments []string
}

// Expresses says whether a format has words for a treatment.
func Expresses(format string, t notebook.Treatment) bool {
	if !slices.Contains([]string{"", notebook.NetBridge, notebook.NetHost, notebook.NetNone}, t.Network) || t.Instance.Cores <= 0 ||
		t.Platform != notebook.BM && !slices.Contains(notebook.Provisionings, t.Provisioning) {
		return false
	}
	if t.Provisioning == notebook.Whole && !(t.Platform == notebook.CN && (format == "docker" || format == "compose") || t.Platform == notebook.VM) {
		return false // the other formats set limits by default, or have none that a VM's container could do without
	}
	if !t.Instance.Whole() && t.Provisioning != notebook.Vanilla {
		return false
	}
	if all := devices(t); len(all) > 0 && (format != "docker" && format != "compose" || slices.ContainsFunc(all, func(name string) bool { return !deviceName.MatchString(name) })) {
		return false // the others know a device by a name that what was measured does not say
	}
	switch format {
	case "docker", "compose":
		return t.Platform == notebook.CN
	case "kubernetes": // a pod always has a network
		return t.Platform == notebook.CN && t.Network != notebook.NetNone
	case "systemd":
		return t.Platform == notebook.BM || t.Platform == notebook.CN
	case "libvirt":
		m, err := notebook.ParseMachine(t.Machine)
		return t.Engine != notebook.MicroVM && (t.Platform == notebook.VM && t.Network != notebook.NetHost || t.Platform == notebook.VMCN) && t.Instance.Whole() &&
			err == nil && m.Fits(int(t.Instance.Cores), t.Instance.Memory) == nil
	}
	return false
}

// Fitting are the formats that have words for a treatment, in words.
func Fitting(t notebook.Treatment) string {
	fit := slices.DeleteFunc(slices.Clone(Formats), func(f string) bool { return !Expresses(f, t) })
	switch len(fit) {
	case 0:
		return "no format fits"
	case 1:
		return fit[0] + " fits"
	}
	return strings.Join(fit[:len(fit)-1], ", ") + " and " + fit[len(fit)-1] + " fit"
}

// Write writes what to apply for a choice of the one ranking that there is: the pick-th, or for 0 the first that the
// format can express.
func Write(w io.Writer, a *advise.Advice, format string, pick int) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("format %q: must be one of %s", format, strings.Join(Formats, ", "))
	}
	if len(a.Rankings) != 1 {
		return several(a, format)
	}
	r := &a.Rankings[0]
	if len(r.Choices) == 0 {
		return fmt.Errorf("nothing of %s can be ranked, so there is nothing to apply; `tare advise` without --format says why", r.Workload)
	}
	if pick < 0 || pick > len(r.Choices) {
		return fmt.Errorf("--pick %d: the ranking of %s has 1 to %d", pick, r.Workload, len(r.Choices))
	}
	at := pick - 1
	if pick == 0 {
		at = slices.IndexFunc(r.Choices, func(c advise.Choice) bool { return Expresses(format, c.Treatment) })
	}
	if first := max(at, 0); at < 0 || !Expresses(format, r.Choices[first].Treatment) {
		c := r.Choices[first]
		name := words.Choice(c.Treatment, r.Networks)
		if at < 0 && len(r.Choices) > 1 {
			return fmt.Errorf("%s cannot express number %d of the ranking, %s, nor anything else in the ranking; %s", format, c.Rank, name, Fitting(c.Treatment))
		}
		return fmt.Errorf("%s cannot express number %d of the ranking, %s; %s", format, c.Rank, name, Fitting(c.Treatment))
	}
	s, err := settingOf(r, &r.Choices[at], format)
	if err != nil {
		return err
	}
	if format == "libvirt" && s.Instance.Memory <= 0 {
		return errors.New("the study records no memory for the VM: name a treatment that has one with --pick")
	}
	return texts().ExecuteTemplate(w, format+".tmpl", s)
}

// several refuses to write one configuration for several works or hosts.
func several(a *advise.Advice, format string) error {
	labels := data.Distinct(a.Rankings, func(r advise.Ranking) string { return words.Plain(r.Workload) })
	hosts := data.Distinct(a.Rankings, func(r advise.Ranking) string { return words.Plain(r.Host) })
	switch {
	case len(labels) > 1:
		return fmt.Errorf("--format %s is for one workload, and there are %d: choose with --workload one of %s", format, len(labels), strings.Join(labels, ", "))
	case len(hosts) > 1:
		return fmt.Errorf("--format %s is for one host, and the folders are of %d: %s; name one host's folders", format, len(hosts), strings.Join(hosts, ", "))
	}
	return fmt.Errorf("--format %s is for one image, and %s was measured with %d: name the folders of one", format, labels[0], len(a.Rankings))
}

// settingOf gathers what the formats need, and what their readers have to know.
func settingOf(r *advise.Ranking, c *advise.Choice, format string) (*setting, error) {
	s := &setting{Treatment: c.Treatment, Name: label(c.Treatment.Workload), Image: r.Image.Reference, Port: r.Port, CPUs: c.CPUs}
	say := func(comment string) { s.Comments = append(s.Comments, words.Plain(comment)) }
	say(words.AppliedRank(r, c))
	say(words.AppliedValue(r, c))
	if tied := words.AppliedTied(r, c); tied != "" {
		say(tied)
	}
	if first := r.Choices[0]; c.Rank > 1 && !Expresses(format, first.Treatment) {
		say(words.NotExpressed(r, format, Fitting(first.Treatment)))
	}
	for _, n := range c.Doubts {
		say(words.AppliedNote(n))
	}

	if s.Port > 0 && (format == "libvirt" || format == "systemd" || s.Network == notebook.NetHost) {
		say(words.AppliedPort(s.Port))
	}

	if m, err := s.VM(); err == nil && format == "libvirt" && len(m.KernelWords()) > 0 {
		say(words.AppliedKernel(m.KernelWords()))
	}

	host := make([]int, 0, len(r.OnHost.CPUs))
	for _, p := range r.OnHost.CPUs {
		host = append(host, p.ID)
	}
	slices.Sort(host)
	if s.Provisioning == notebook.Vanilla || s.Unlimited() {
		s.CPUs = nil // the scheduler chooses
	} else {
		n := int(s.Instance.Cores)
		switch {
		case len(s.CPUs) >= n:
			say(words.MeasuredCPUSet(s.CPUs, r.Host))
		case len(host) >= n:
			s.CPUs = host[:n]
			say(words.ExampleCPUSet(s.CPUs))
		default:
			return nil, fmt.Errorf("%s has %d CPUs, and the folder records neither its guests' nor so many of the host", words.Choice(c.Treatment, r.Networks), n)
		}
		s.Others = slices.DeleteFunc(slices.Clone(host), func(p int) bool { return slices.Contains(s.CPUs, p) })
	}
	if format != "libvirt" && format != "systemd" || s.Platform == notebook.VMCN {
		if !reference.MatchString(s.Image) {
			s.Image = Placeholder
			say(words.AppliedPlaceholder(Placeholder))
		}
		if len(s.Devices()) > 0 {
			say(words.AppliedDevices)
		}
		if e := s.Engine; e != "" && e != "docker" && s.Platform == notebook.CN {
			say(words.AppliedEngine(e))
		}
	}
	return s, nil
}

// label makes of a workload's name one that every format takes: as a host's name, at most 40 letters long.
func label(name string) string {
	b := []byte(strings.ToLower(name))
	for i, c := range b {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9') {
			b[i] = '-'
		}
	}
	s := strings.Trim(string(b[:min(len(b), 40)]), "-")
	if s == "" {
		return "work"
	}
	return s
}

// Publishes says whether the engine has to lead a port of the host to the container: only on a bridge, which is also an
// engine's own network.
func (s setting) Publishes() bool {
	return s.Port > 0 && (s.Network == "" || s.Network == notebook.NetBridge)
}

// Unlimited says whether nothing limits it but the host.
func (s setting) Unlimited() bool { return s.Provisioning == notebook.Whole }

// Cores in decimals, with as many as there are.
func (s setting) Cores() string { return strconv.FormatFloat(s.Instance.Cores, 'f', -1, 64) }

// CPU is the cores as Kubernetes has them: a part of one in thousandths.
func (s setting) CPU() string {
	if s.Instance.Whole() {
		return s.Cores()
	}
	return strconv.FormatInt(int64(math.Round(s.Instance.Cores*1000)), 10) + "m"
}

// Percent is the cores as systemd has them.
func (s setting) Percent() string {
	return strconv.FormatFloat(math.Round(s.Instance.Cores*1e4)/1e2, 'f', -1, 64)
}

// VCPUs are a VM's.
func (s setting) VCPUs() int { return int(s.Instance.Cores) }

// VM is how a VM is made. So it was measured.
func (s setting) VM() (notebook.Machine, error) { return notebook.ParseMachine(s.Machine) }

// Nodes are the virtual CPUs of each NUMA node of a VM, shared out as its memory is.
func (s setting) Nodes() (nodes [][]int, err error) {
	m, err := s.VM()
	if err != nil {
		return nil, err
	}
	for i := range s.VCPUs() {
		if i%(s.VCPUs()/m.Nodes) == 0 {
			nodes = append(nodes, nil)
		}
		nodes[len(nodes)-1] = append(nodes[len(nodes)-1], i)
	}
	return nodes, nil
}

// Beside returns the CPUs for a VM's threads other than vCPUs: the host's other CPUs, if it has any. The VM was measured so.
func (s setting) Beside() []int {
	if m, err := s.VM(); err == nil && m.Confined || len(s.Others) == 0 {
		return s.CPUs
	}
	return s.Others
}

// Inside is the container's setting in its VM: of the memory it has what the VM's kernel leaves.
func (s setting) Inside() setting {
	s.Instance.Memory, s.CPUs = 0, nil
	if s.Provisioning == notebook.Pinned {
		for i := range s.VCPUs() {
			s.CPUs = append(s.CPUs, i)
		}
	}
	if s.Network == notebook.NetBridge {
		s.Network = ""
	}
	return s
}

// size writes a number of bytes with one of the units given, from the largest, the first unit being of 2^10 bytes.
func size(n int64, units ...string) string {
	for i := len(units); i > 0; i-- {
		if unit := int64(1) << (10 * i); n >= unit && n%unit == 0 {
			return strconv.FormatInt(n/unit, 10) + units[i-1]
		}
	}
	return strconv.FormatInt(n, 10)
}
