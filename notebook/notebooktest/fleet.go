package notebooktest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"tare/notebook"
)

// Node is the folder of node i of a fleet that runs the study quick: bare metal, and Docker with a CPU quota that costs 2 %, on hosts whose true costs
// vary by a standard deviation of between. The hosts have one of two models of CPU, and an answer to each of the laboratory's probes, as real ones have.
func Node(i int, between float64) *Folder {
	f := New(16)
	f.Seed, f.Rounds, f.Noise = uint64(i)+1, 10, 0.01
	f.Study.Design = notebook.Design{Floor: 10, Cap: 10, Trials: 5, TimeoutS: 60}
	h := &f.Host
	h.ID, h.Hostname = fmt.Sprintf("m-%016x", i+1), fmt.Sprintf("node-%05d", i)
	h.OS, h.CPUModel, h.Memory, h.CgroupVersion = "Debian GNU/Linux 13 (trixie)", "AMD EPYC 9354", 64<<30, "v2"
	if i%2 == 1 {
		h.CPUModel = "AMD EPYC 7713"
	}
	for n := range 100 {
		h.CPUFlags = append(h.CPUFlags, fmt.Sprintf("flag_%d", n))
	}
	h.Settings = &notebook.Settings{Turbo: "on", SMT: "on", FrequencyDriver: "acpi-cpufreq", Microcode: "0xa101148", ClockSource: "tsc", HugePages: "madvise",
		CommandLine: fmt.Sprintf("BOOT_IMAGE=/vmlinuz root=UUID=%08x ro quiet", i), Mitigations: map[string]string{}}
	for _, name := range strings.Fields("gather_data_sampling itlb_multihit l1tf mds meltdown mmio_stale_data reg_file_data_sampling retbleed spec_rstack_overflow spectre_v1 srbds") {
		h.Settings.Mitigations[name] = "Not affected"
	}
	for _, name := range []string{"root", "cgroup cpu", "cgroup cpuset", "cgroup memory", "overlayfs", "network namespaces", "perf software events", "perf hardware events", "kvm", "tcg", "crun"} {
		h.Capabilities = append(h.Capabilities, notebook.Capability{Name: name, Answer: notebook.Supported, Why: "made one, and a write through it left what lies below as it was"})
	}
	h.Capabilities = append(h.Capabilities, notebook.Capability{Name: "docker", Answer: notebook.Supported, Why: "Docker Engine 26.1.5 (API 1.45) at unix:///var/run/docker.sock",
		Versions: map[string]string{"docker": "26.1.5", "containerd": "1.7.24", "runc": "1.1.15"}})
	cost := 1.02 * math.Exp(between*rand.New(rand.NewPCG(uint64(i), 40)).NormFloat64())
	return f.Add("bm 2/4GB", 1).Add("cn docker vanilla 2/4GB", cost)
}

// Spill writes the folder at a path where there is nothing yet, past the notebook, which syncs each file: that would take most of the time of
// making thousands.
func (f *Folder) Spill(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, v := range map[string]any{"study.json": f.Study, "host.json": f.Host} {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	return add(dir, f.records())
}
