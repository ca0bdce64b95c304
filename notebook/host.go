package notebook

import "maps"

// HostSetting is one of a host's settings: its key in host.json, and its value. "": not recorded; Absent: the host has none.
type HostSetting struct{ Name, Value string }

// SettingList are the settings that have one value, always the same ones in the same order.
func (h Host) SettingList() []HostSetting {
	s := h.Settings
	governor := h.Governor
	switch {
	case s == nil:
		s = &Settings{}
	case governor == "":
		governor = Absent
	}
	return []HostSetting{
		{"governor", governor}, {"frequency_driver", s.FrequencyDriver}, {"turbo", s.Turbo}, {"smt", s.SMT}, {"microcode", s.Microcode},
		{"clock_source", s.ClockSource}, {"transparent_huge_pages", s.HugePages}, {"kernel_command_line", s.CommandLine},
	}
}

// Versions are those of the engines' programs that the host's capabilities name; empty: not recorded.
func (h Host) Versions() map[string]string {
	all := map[string]string{}
	for _, c := range h.Capabilities {
		maps.Copy(all, c.Versions)
	}
	return all
}
