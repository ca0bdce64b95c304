package words

import (
	"maps"
	"slices"
	"strings"

	"tare/notebook"
)

// notRecorded stands for a fact that a folder from an earlier version lacks.
const notRecorded = "not recorded"

// settingNames are the names of a host's settings, by their keys in host.json.
var settingNames = map[string]string{
	"governor": "Frequency governor", "frequency_driver": "Frequency driver", "turbo": "Turbo", "smt": "SMT", "microcode": "Microcode",
	"clock_source": "Clock source", "transparent_huge_pages": "Transparent huge pages", "kernel_command_line": "Kernel command line", "mitigations": "CPU mitigations",
}

// absent says, by the key of a setting, what a host without it lacks.
var absent = map[string]string{
	"governor": "none: the kernel sets no CPU frequency here", "frequency_driver": "none: the kernel sets no CPU frequency here",
	"turbo": "no switch on this host", "smt": "no switch on this host", "microcode": "the CPU shows no revision", "clock_source": "the kernel names none",
	"transparent_huge_pages": "the kernel has none", "kernel_command_line": "empty", "mitigations": "the kernel lists none",
}

// smtStates say in words what the kernel's control of SMT says.
var smtStates = map[string]string{
	"forceoff": "off until the next reboot", "notsupported": "not supported by the CPU", "notimplemented": "not implemented by the kernel for this CPU",
}

// Settings names a host's settings with their values. For a folder from before Tare recorded them, it says that they are missing.
func Settings(h notebook.Host) (all []Term) {
	for _, s := range h.SettingList() {
		text := Plain(s.Value)
		switch {
		case s.Value == "":
			text = notRecorded
		case s.Value == notebook.Absent:
			text = absent[s.Name]
		case s.Name == "smt" && smtStates[s.Value] != "":
			text = smtStates[s.Value]
		}
		all = append(all, Term{settingNames[s.Name], text})
	}
	return all
}

// Mitigations says what the kernel does about vulnerabilities of CPUs: those that it names, by what it says of them.
func Mitigations(h notebook.Host) (all []Term) {
	if h.Settings == nil {
		return []Term{{settingNames["mitigations"], notRecorded}}
	}
	if len(h.Settings.Mitigations) == 0 {
		return []Term{{settingNames["mitigations"], absent["mitigations"]}}
	}
	var unaffected []string
	for _, name := range slices.Sorted(maps.Keys(h.Settings.Mitigations)) {
		switch says := h.Settings.Mitigations[name]; says {
		case "Not affected":
			unaffected = append(unaffected, Plain(name))
		default:
			all = append(all, Term{Plain(name), Plain(says)})
		}
	}
	if len(unaffected) > 0 {
		all = append(all, Term{"Not affected", strings.Join(unaffected, ", ")})
	}
	return all
}

// Versions names the programs of the engines with their versions: "docker 20.10.24, containerd 1.6.20".
func Versions(h notebook.Host) string {
	var all []string
	versions := h.Versions()
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		all = append(all, Plain(name+" "+versions[name]))
	}
	if len(all) == 0 {
		return notRecorded
	}
	return strings.Join(all, ", ")
}
