package notebook_test

import (
	"maps"
	"strings"
	"testing"

	"tare/notebook"
)

// A reference is named as bench names platforms and limits, or by keys and values, as --baseline has it.
func TestParseReference(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                    {},
		"bm":                  {"platform": "bm"},
		"cn:docker":           {"platform": "cn", "engine": "docker"},
		"cn:docker:quota":     {"platform": "cn", "engine": "docker", "provisioning": "vanilla"},
		"cn:set":              {"platform": "cn", "provisioning": "pinned"},
		"cn:podman:set:host":  {"platform": "cn", "engine": "podman", "provisioning": "pinned", "network": "host"},
		"vm:quota:kvm":        {"platform": "vm", "provisioning": "vanilla", "accelerator": "kvm"},
		"cn,instance=1/1GB":   {"platform": "cn", "instance": "1/1GB"},
		"container:docker":    {"platform": "cn", "engine": "docker"},
		"host":                {"platform": "bm"},
		"vm-container:host":   {"platform": "vmcn", "network": "host"},
		"platform=container":  {"platform": "cn"},
		"platform=cn,rate=10": {"platform": "cn", "rate": "10"},
	} {
		got, err := notebook.ParseReference(text)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"docker":          `unknown platform "docker"; allowed: bm, cn, vm, vmcn`,
		"cn:":             "an empty part",
		"cn:docker:crun":  "two values of engine, docker and crun",
		"cn:quota:set":    "two values of provisioning, vanilla and pinned",
		"cn,docker":       `"docker" must be KEY=VALUE`,
		"=red":            "without a key",
		"cn,platform=vm":  "two values of platform",
		"cn:docker,a=b,c": `"c" must be KEY=VALUE`,
	} {
		if _, err := notebook.ParseReference(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What is printed of a reference names the same one again.
func FuzzParseReference(f *testing.F) {
	for _, text := range []string{"cn:docker:set,instance=1/1GB", "vm:qemu:quota:tcg", "platform=cn,provisioning=vanilla", "platform=cn,engine=quota", "cn,engine=a:b,network="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := notebook.ParseReference(text)
		if err != nil {
			return
		}
		if again, err := notebook.ParseReference(notebook.ReferenceText(keys)); err != nil || !maps.Equal(again, keys) {
			t.Errorf("%q is written as %q, which is %v, %v", text, notebook.ReferenceText(keys), again, err)
		}
	})
}

// Without bare metal the first of the VMs that differ by their kernel only is the baseline of all of them. With it, it is theirs.
func TestTheFirstKernelIsTheBaseline(t *testing.T) {
	vm := func(kernel, provisioning string) notebook.Treatment {
		return notebook.Treatment{ID: "vm " + provisioning + " " + kernel, Workload: "cpu", Platform: notebook.VM, Accelerator: notebook.TCG, Provisioning: provisioning, Kernel: kernel}
	}
	vms := []notebook.Treatment{vm("b", notebook.Vanilla), vm("a", notebook.Vanilla), vm("b", notebook.Pinned), vm("a", notebook.Pinned)}
	s := notebook.Study{Treatments: vms}
	all := s.Baselines()
	for _, v := range vms {
		if got, want := all[v.ID].ID, vm("b", v.Provisioning).ID; got != want {
			t.Errorf("%s is compared with %q, want %q", v.ID, got, want)
		}
	}
	s.Treatments = vms[:1]
	if all := s.Baselines(); len(all) > 0 {
		t.Errorf("one kernel: %v", all)
	}
	s.Treatments = append([]notebook.Treatment{{ID: "bm", Workload: "cpu", Platform: notebook.BM}}, vms...)
	for id, b := range s.Baselines() {
		if b.ID != "bm" {
			t.Errorf("with bare metal %s is compared with %s", id, b.ID)
		}
	}
}
