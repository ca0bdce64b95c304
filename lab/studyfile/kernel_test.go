package studyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/engine"
	"tare/notebook"
	"tare/workloads"
)

// withKernels are the engines of the tests. Their virtual machines accept any file that begins with "kernel".
func withKernels() (all engine.Registry) {
	for _, k := range kinds {
		if k.Platform == notebook.VM || k.Platform == notebook.VMCN {
			k.Kernel = func(path string) (notebook.Kernel, error) {
				text, err := os.ReadFile(path)
				if err == nil && !strings.HasPrefix(string(text), "kernel") {
					err = errors.New("kernel " + path + ": it is not a kernel")
				}
				return notebook.Kernel{File: path, Release: "6.1.2", Digest: "sha256:" + string(text)}, err
			}
		}
		all = append(all, k)
	}
	return all
}

// Each kernel of the guests makes its own treatment, named by the kernel's content.
func TestGuestKernels(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "kernel-a-and-more", "b": "kernel-b", "bad": "text"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const file = `name: k
workloads: [{name: ffmpeg}]
platforms:
  - platform: bm
  - platform: vm
    provisioning: [pinned]
    kernel: KERNEL
instances: [large]
`
	for _, c := range []struct {
		kernel string
		flags  string   // of --vm-kernel, separated by blanks
		want   []string // kernels of the virtual machines; or
		err    string
	}{
		{"[default, ./a, b]", "", []string{"", "6.1.2@kernel-a-and", "6.1.2@kernel-b"}, ""},
		{"a", "", []string{"6.1.2@kernel-a-and"}, ""},
		{"[default, ./a, b]", filepath.Join(dir, "b"), []string{"6.1.2@kernel-b"}, ""},
		{"[]", "", []string{""}, ""},
		{"bad", "", nil, "study.yaml:7: kernel " + dir + "/bad: it is not a kernel"},
		{"[a, nowhere]", "", nil, "no such file"},
		{"[default]", filepath.Join(dir, "b") + " " + filepath.Join(dir, "a"), []string{"6.1.2@kernel-b", "6.1.2@kernel-a-and"}, ""},
		{"a", filepath.Join(dir, "b") + " " + filepath.Join(dir, "b"), nil, "/b are the same kernel: name two different ones"},
		{"a", "a b c", nil, "--vm-kernel: is given 3 times: name at most 2 kernels"},
		{"[]", filepath.Join(dir, "bad"), nil, "--vm-kernel: kernel " + dir + "/bad: it is not a kernel"},
		{`""`, "", nil, "kernel: is empty"},
	} {
		s, err := Parse("study.yaml", []byte(strings.ReplaceAll(file, "KERNEL", c.kernel)), dir, Known{withKernels(), known.Kinds})
		var a *Asked
		if err == nil {
			a, err = s.Ask(workloads.FS, Choices{Kernels: strings.Fields(c.flags)})
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("kernel %s, --vm-kernel %s: %v; want %q", c.kernel, c.flags, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("kernel %s: %v", c.kernel, err)
			continue
		}
		ids := map[string]bool{}
		var got []string
		for _, tr := range a.Treatments(a.Works[0], notebook.Host{}, func(kernel string) string { return "for " + kernel }, func(notebook.Treatment) bool { return true }) {
			ids[tr.ID] = true
			switch {
			case tr.Platform == notebook.VM && tr.Accelerator != "for "+tr.Kernel:
				t.Errorf("%s: accelerator %q of another kernel", tr.ID, tr.Accelerator)
			case tr.Platform == notebook.VM:
				got = append(got, tr.Kernel)
			case tr.Kernel != "":
				t.Errorf("%s has a kernel of its own", tr.ID)
			}
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") || len(ids) != len(c.want)+2 {
			t.Errorf("kernel %s, --vm-kernel %s: kernels %q, treatments %v; want %q", c.kernel, c.flags, got, ids, c.want)
		}
	}
	_, err := Parse("study.yaml", []byte(strings.ReplaceAll(strings.ReplaceAll(file, "KERNEL", "a"), "platform: vm", "platform: cn")), dir, Known{withKernels(), known.Kinds})
	if err == nil || !strings.Contains(err.Error(), "study.yaml:7: kernel: is only for virtual machines, and this platform is cn") {
		t.Errorf("a container's kernel: %v", err)
	}
	s, err := Parse("study.yaml", []byte("name: k\nworkloads: [{name: ffmpeg}]\nplatforms: [{platform: bm}]\ninstances: [large]\n"), dir, Known{withKernels(), known.Kinds})
	if err == nil {
		_, err = s.Ask(workloads.FS, Choices{Kernels: []string{filepath.Join(dir, "a")}})
	}
	if err == nil || !strings.Contains(err.Error(), "has no virtual machines") {
		t.Errorf("--vm-kernel without a virtual machine: %v", err)
	}
}

// Two kernels of VMs are compared with each other, so emulated ones run in all rounds. Without bare metal they take turns within a round.
func TestRoundsOfTwoKernels(t *testing.T) {
	const file = "name: k\nworkloads: [{name: ffmpeg}]\nplatforms: [PLATFORMS]\ninstances: [large]\ndesign: {rounds: {floor: 5, cap: 20, emulated: 1}, precision: 2%, trials: 1}\n"
	for _, c := range []struct {
		platforms string
		choices   Choices
		want      notebook.Design
	}{
		{"{platform: vm}", Choices{Kernels: []string{"a"}}, notebook.Design{Floor: 5, Cap: 20, Emulated: 1, Precision: 0.02}},
		{"{platform: vm}", Choices{Kernels: []string{"a", "b"}}, notebook.Design{Floor: 20, Cap: 20, Emulated: 20, Order: notebook.OrderInterleaved}},
		{"{platform: vm}", Choices{Kernels: []string{"a", "b"}, Rounds: 3}, notebook.Design{Floor: 3, Cap: 3, Emulated: 3, Order: notebook.OrderInterleaved}},
		{"{platform: bm}, {platform: vm}", Choices{Kernels: []string{"a", "b"}}, notebook.Design{Floor: 5, Cap: 20, Emulated: 20, Precision: 0.02}},
	} {
		s, err := Parse("study.yaml", []byte(strings.ReplaceAll(file, "PLATFORMS", c.platforms)), t.TempDir(), Known{withKernels(), known.Kinds})
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.design(c.choices)
		if got := (notebook.Design{Floor: d.Floor, Cap: d.Cap, Emulated: d.Emulated, Precision: d.Precision, Order: d.Order}); err != nil || got != c.want {
			t.Errorf("%s with %d kernels: %+v, %v; want %+v", c.platforms, len(c.choices.Kernels), got, err, c.want)
		}
	}
}
