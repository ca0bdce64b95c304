//go:build linux

package host

import (
	"strings"
	"testing"

	"tare/lab/proc/proctest"
	"tare/notebook"
)

func TestSettingsOfARecordedMachine(t *testing.T) {
	for file, want := range map[string]notebook.Settings{
		"testdata/debian12-vm.txt": {
			Turbo: "none", SMT: "notsupported", FrequencyDriver: "none", Microcode: "0x1", ClockSource: "tsc", HugePages: "always",
			CommandLine: "console=ttyS0 quiet",
		},
		"testdata/server-settings.txt": {
			Turbo: "off", SMT: "on", FrequencyDriver: "intel_pstate", Microcode: "0x2b000461, 0x2b000590", ClockSource: "hpet", HugePages: "madvise",
			CommandLine: "BOOT_IMAGE=/vmlinuz ro mitigations=off systemd.set_credential=…",
		},
	} {
		s := system{proctest.Recorded(t, file).Tree}
		cpuinfo, err := s.Read("/proc/cpuinfo")
		if err != nil {
			t.Fatal(err)
		}
		got := *s.settings([]notebook.CPU{{ID: 0}, {ID: 1}}, cpuinfo)
		if got.Mitigations["meltdown"] != map[bool]string{true: "Vulnerable", false: "Not affected"}[strings.Contains(file, "server")] {
			t.Errorf("%s: mitigations %q", file, got.Mitigations)
		}
		got.Mitigations = nil
		if g, w := fmtSettings(got), fmtSettings(want); g != w {
			t.Errorf("%s:\ngot  %s\nwant %s", file, g, w)
		}
	}
}

func fmtSettings(s notebook.Settings) string {
	return strings.Join([]string{s.Turbo, s.SMT, s.FrequencyDriver, s.Microcode, s.ClockSource, s.HugePages, s.CommandLine}, " | ")
}

// A host without any of the files has none of the settings, and the text says of each that it is missing.
func TestSettingsThatAHostDoesNotHave(t *testing.T) {
	got := system{proctest.New().Tree}.settings([]notebook.CPU{{ID: 0}}, "processor : 0\n")
	for _, v := range strings.Split(fmtSettings(*got), " | ") {
		if v != notebook.Absent {
			t.Errorf("%q in %+v: want %q everywhere", v, got, notebook.Absent)
		}
	}
	if got.Mitigations != nil {
		t.Errorf("mitigations %v", got.Mitigations)
	}
}

func TestTurboOfEachDriver(t *testing.T) {
	for _, c := range []struct{ file, says, want string }{
		{"/sys/devices/system/cpu/intel_pstate/no_turbo", "0", "on"},
		{"/sys/devices/system/cpu/intel_pstate/no_turbo", "1", "off"},
		{"/sys/devices/system/cpu/cpufreq/boost", "1", "on"},
		{"/sys/devices/system/cpu/cpu0/cpufreq/boost", "0", "off"},
		{"/sys/devices/system/cpu/cpu0/cpufreq/boost", "nonsense", "none"},
	} {
		s := system{proctest.New().Tree}
		s.put(c.file, c.says)
		if got := s.turbo([]notebook.CPU{{ID: 0}}); got != c.want {
			t.Errorf("%s says %s: %q, want %q", c.file, c.says, got, c.want)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("always [madvise] never", "a=b password=c", "microcode : 0x1\n\nmicrocode : 0x2")
	f.Add("][", "=", "")
	f.Fuzz(func(t *testing.T, file, line, cpuinfo string) {
		if len(chosen(file)) > len(file) {
			t.Errorf("%q became longer", file)
		}
		if strings.Contains(line, "token=abcdef") && strings.Contains(commandLine(line), "token=abcdef") {
			t.Errorf("%q keeps a secret", line)
		}
		if len(microcode(cpuinfo)) > mostSetting {
			t.Error("a microcode beyond the bound")
		}
	})
}
