//go:build linux

package host

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"tare/lab/proc"
	"tare/notebook"
)

// settings reads the settings of the kernel and the firmware. A missing file is a setting that this host does not have.
func (s system) settings(cpus []notebook.CPU, cpuinfo string) *notebook.Settings {
	set := &notebook.Settings{
		Turbo:           s.turbo(cpus),
		SMT:             s.setting("/sys/devices/system/cpu/smt/control"),
		FrequencyDriver: cmp.Or(s.scaling(cpus, "scaling_driver"), notebook.Absent),
		Mitigations:     s.mitigations(),
		Microcode:       cmp.Or(microcode(cpuinfo), notebook.Absent),
		ClockSource:     s.setting("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		HugePages:       chosen(s.setting("/sys/kernel/mm/transparent_hugepage/enabled")),
		CommandLine:     commandLine(s.setting("/proc/cmdline")),
	}
	return set
}

// setting is the content of a file, or notebook.Absent.
func (s system) setting(file string) string {
	text, err := s.Read(file)
	if err != nil || text == "" {
		return notebook.Absent
	}
	return short(text)
}

// mostSetting bounds a setting, in bytes. Linux bounds its own command line at 2,048 on x86-64.
const mostSetting = 4096

func short(text string) string { return text[:min(len(text), mostSetting)] }

// scaling is the content of a file of cpufreq; all values where CPUs differ; "" where no CPU has the file.
func (s system) scaling(cpus []notebook.CPU, file string) string {
	var all []string
	for _, c := range cpus {
		if v, err := s.Read(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/%s", c.ID, file)); err == nil {
			all = append(all, short(v))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// turbo says whether CPUs may run faster than their base frequency. intel_pstate has a switch that forbids it. Other drivers have
// one that allows it, for the host or for each CPU.
func (s system) turbo(cpus []notebook.CPU) string {
	if v, err := s.Read("/sys/devices/system/cpu/intel_pstate/no_turbo"); err == nil {
		return map[string]string{"0": "on", "1": "off"}[v]
	}
	boost, err := s.Read("/sys/devices/system/cpu/cpufreq/boost")
	if err != nil {
		boost = s.scaling(cpus, "boost")
	}
	return cmp.Or(map[string]string{"0": "off", "1": "on", "0, 1": "on, off"}[boost], notebook.Absent)
}

// mitigations is the kernel's text for each vulnerability of CPUs that it knows.
func (s system) mitigations() map[string]string {
	files, err := fs.Glob(s.FS, "sys/devices/system/cpu/vulnerabilities/*")
	if err != nil || len(files) == 0 {
		return nil
	}
	of := map[string]string{}
	for _, f := range files {
		if text, err := s.Read(f); err == nil {
			of[path.Base(f)] = short(text)
		}
	}
	return of
}

// microcode is the revision in /proc/cpuinfo, which only x86 has; all revisions where CPUs differ.
func microcode(cpuinfo string) string {
	var all []string
	for cpu := range strings.SplitSeq(cpuinfo, "\n\n") {
		if v := proc.Field(cpu, "microcode"); v != "" {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return short(strings.Join(slices.Compact(all), ", "))
}

// chosen is the word in brackets in a file that lists the choices: "always [madvise] never".
func chosen(text string) string {
	_, after, ok := strings.Cut(text, "[")
	if word, _, closed := strings.Cut(after, "]"); ok && closed {
		return word
	}
	return text
}

// secret matches the names of parameters whose values stay on the host.
var secret = regexp.MustCompile(`(?i)passw|secret|token|credential|api.?key`)

// commandLine is the kernel's command line without values that may be secret. Words after "--" are for the first program.
func commandLine(text string) string {
	words := strings.Fields(text)
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	for i, w := range words {
		if name, _, has := strings.Cut(w, "="); has && secret.MatchString(name) {
			words[i] = name + "=…"
		}
	}
	return strings.Join(words, " ")
}
