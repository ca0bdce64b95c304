package page

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// rungCosts are what each rung of a made-up ladder costs by itself, by workload: of what is not named nothing.
var rungCosts = map[string]map[string]float64{
	"ladder-syscall": {"cgroup": 1.004, "quota": 1.01, "memory": 1.006, "seccomp": 1.18, "runc": 1.01, "docker": 1.012, "lxc": 1.02, "gvisor": 9, "vm": 1.06, "vmcn": 1.2},
	"ladder-network": {"cgroup": 1.01, "quota": 1.03, "bridge": 1.27, "runc": 1.02, "docker": 1.05, "lxc": 1.01, "gvisor": 2.1, "vm": 1.4, "vmcn": 1.25},
	"ladder-cpu":     {"quota": 1.012, "vm": 1.02},
}

// ladderFolder makes the folder of a study `ladder`.
func ladderFolder(t testing.TB, kvm bool) string {
	t.Helper()
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	study := notebook.Study{
		Version: notebook.Version, Tare: "0.4.0", Name: "ladder", Title: "Overhead by isolation level", Source: "name: ladder\n", Hash: "sha256:11", Seed: 3, Created: at,
		Design:  notebook.Design{Floor: 6, Cap: 6, Trials: 2, Warmups: 1, TimeoutS: 300},
		Metrics: map[string]notebook.Metric{}, Images: map[string]notebook.Image{},
	}
	accel, emulation := notebook.KVM, 1.0
	if !kvm {
		accel, emulation = notebook.TCG, 13
	}
	host := notebook.Host{ID: "ladder-host", Hostname: "bench", Kernel: "6.18.5", OS: "Debian GNU/Linux 13 (trixie)", Arch: "amd64", CPUModel: "Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz", Memory: 24 << 30, CgroupVersion: "v2", CPUs: []notebook.CPU{{ID: 0}, {ID: 1, Core: 1}}}
	means := map[string]float64{}
	for _, w := range []string{"ladder-syscall", "ladder-network", "ladder-cpu"} {
		study.Metrics[w] = notebook.Metric{Name: "execution time", Unit: "s"}
		study.Images[w] = notebook.Image{Reference: "debian:trixie", Digest: "sha256:0f3a7c1d2b"}
		study.Figures = append(study.Figures, notebook.Figure{Name: "Staircase of " + strings.TrimPrefix(w, "ladder-"), Title: "what each layer of isolation costs", Workload: w, By: "isolation"})
		cost := func(name string) float64 {
			if c := rungCosts[w][name]; c > 0 {
				return c
			}
			return 1
		}
		add := func(tr notebook.Treatment, mean float64, leftOut string) {
			tr.Workload, tr.Instance = w, instance("1/1GB", 1, 1)
			tr.ID = strings.Join([]string{w, tr.Platform, tr.Engine, tr.Isolation, fmt.Sprint(tr.AA)}, "/")
			if leftOut != "" {
				study.LeftOut = append(study.LeftOut, notebook.LeftOut{Treatment: tr, Reason: notebook.TextMessage(leftOut)})
				return
			}
			study.Treatments = append(study.Treatments, tr)
			means[tr.ID] = mean
		}
		add(notebook.Treatment{Platform: notebook.BM}, 0.4, "")
		add(notebook.Treatment{Platform: notebook.BM, AA: true}, 0.4, "")
		top := 0.4
		for _, l := range notebook.Layers {
			top *= cost(l)
			why := ""
			if w == "ladder-network" && slices.Contains([]string{"network", "seccomp", "capabilities", "overlay"}, l) {
				why = "nobody outside can ask a service in a network namespace that has no network yet"
			}
			add(notebook.Treatment{Platform: notebook.CN, Engine: notebook.LayersEngine, Isolation: l}, top, why)
		}
		for _, e := range []string{"runc", "docker", "gvisor", "lxc"} {
			why := ""
			if e == "lxc" && w != "ladder-cpu" {
				why = "lxc: not here; install it with: apt install lxc"
			}
			add(notebook.Treatment{Platform: notebook.CN, Engine: e, Isolation: notebook.IsolationFull, Provisioning: notebook.Pinned, Network: notebook.NetBridge}, top*cost(e), why)
		}
		add(notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Accelerator: accel, Provisioning: notebook.Pinned}, 0.4*cost("vm")*emulation, "")
		add(notebook.Treatment{Platform: notebook.VMCN, Engine: "runc", Accelerator: accel, Provisioning: notebook.Pinned}, 0.4*cost("vm")*cost("vmcn")*emulation, "")
	}
	records := []any{notebook.Session{Time: at, Event: "start"}, notebook.Session{Time: at, Event: "end", Reason: notebook.TextMessage("cap on rounds")}}
	g := rand.New(rand.NewPCG(3, 9))
	for round := range study.Design.Cap {
		for _, tr := range study.Treatments {
			id := fmt.Sprintf("r%d-%s", round, tr.ID)
			records = append(records, notebook.Guest{ID: id, Treatment: tr.ID, Round: round, Start: at, Kernel: "6.18.5", RulerCostS: 4.3e-4, RulerCostN: 20, RoundTripS: 6e-5})
			for k := range study.Design.Trials {
				v := means[tr.ID] * (1 + 0.006*g.NormFloat64())
				records = append(records, notebook.Trial{Treatment: tr.ID, Round: round, Guest: id, Index: k, Start: at, Value: v, ElapsedS: v, HostS: v})
			}
		}
	}
	return notebooktest.Write(t, study, host, records...)
}

func readLadder(t testing.TB, kvm bool) *data.Summary {
	t.Helper()
	s, err := data.Read([]string{ladderFolder(t, kvm)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A study of the ladder is drawn as its staircases and nothing else, with a file of data for each.
func TestStaircases(t *testing.T) {
	s := readLadder(t, false)
	names, _ := titles(s)
	if len(names) != 3 || names[0] != "Staircase of syscall: what each layer of isolation costs – ladder-syscall at 1/1GB" {
		t.Errorf("%q", names)
	}
	dir := t.TempDir()
	files, err := WriteSummary(s, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1+3*3 || !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".csv") }) {
		t.Errorf("files: %q", files)
	}
	page, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "rungs.html", golden.Excerpt(t, page, "<summary>Every rung in numbers</summary>", "</details>"))
	// Names that attack stay text.
	evil := readLadder(t, true)
	for i := range evil.Rows {
		if tr := &evil.Rows[i].Treatment; tr.Engine == "lxc" || tr.Engine == "docker" {
			tr.Engine = "</svg><script>alert(1)</script>\u202e\x00"
		}
	}
	for i := range evil.LeftOut {
		evil.LeftOut[i].Reason = notebook.TextMessage("</svg><script>alert(1)</script>\u202e\x00")
	}
	if files, err = WriteSummary(evil, t.TempDir(), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if ext := filepath.Ext(f); (ext == ".html" || ext == ".svg") && (bytes.Contains(data, []byte("<script>")) || bytes.Contains(data, []byte("\u202e")) || bytes.Contains(data, []byte("\x00"))) {
			t.Errorf("%s: an attack got through", f)
		}
	}
	// The same without a figure that says so.
	s.Folders[0].Study.Figures = nil
	names, _ = titles(s)
	if len(names) != 3 || names[0] != "Overhead by isolation level: ladder-syscall at 1/1GB" {
		t.Errorf("undeclared: %q", names)
	}
	// None of it measured.
	for i := range s.Rows {
		s.Rows[i].Rounds, s.Rows[i].Trials, s.Rows[i].Values = 0, 0, nil
	}
	if _, err := WriteSummary(s, t.TempDir(), Options{}); err != nil {
		t.Error(err)
	}
}
