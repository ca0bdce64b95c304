package apply

import (
	"strings"
	"testing"

	"tare/notebook"
)

func TestImageReferences(t *testing.T) {
	for _, s := range []string{"busybox", "debian:trixie", "ghcr.io/a/b-c:1.2", "localhost:5000/x", "a@sha256:" + strings.Repeat("0", 64), "lay:1"} {
		if !reference.MatchString(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "./layout", "/abs", "debian:trixie+ffmpeg", "oci:./x", "-v/:/x", "a b", "a;b", "a$(b)", "UPPER", "a\nb", "docker://x"} {
		if reference.MatchString(s) {
			t.Errorf("%q is taken", s)
		}
	}
}

// What a guest's devices are called goes to a command line as it stands: only a name that is one does.
func TestDevices(t *testing.T) {
	with := func(names string) notebook.Treatment {
		return notebook.Treatment{
			Platform: notebook.CN, Engine: "docker", Provisioning: notebook.Whole, Instance: notebook.Instance{Cores: 2, Memory: 1 << 30},
			Factors: map[string]string{notebook.FactorDevices.Name: names},
		}
	}
	given := with("nvidia.com/gpu=0,amd.com/gpu=all")
	if !Expresses("docker", given) || !Expresses("compose", given) || Expresses("kubernetes", given) || Expresses("systemd", given) {
		t.Errorf("devices fit %s", Fitting(given))
	}
	for _, bad := range []string{"nvidia.com/gpu=0;reboot", "--privileged", "a/b=$(c)", "a/b=c d", "a/b=c\nx: y"} {
		if Expresses("docker", with(bad)) || Expresses("compose", with(bad)) {
			t.Errorf("%q is written", bad)
		}
	}
	for format, want := range map[string]string{
		"docker":  "docker run --shm-size=512m --device=nvidia.com/gpu=0 --device=amd.com/gpu=all debian:trixie\n",
		"compose": "    devices:\n      - nvidia.com/gpu=0\n      - amd.com/gpu=all\n",
	} {
		var b strings.Builder
		if err := texts().ExecuteTemplate(&b, format+".tmpl", setting{Treatment: given, Name: "work", Image: "debian:trixie"}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v\n%s\nwant %s", format, err, b.String(), want)
		}
	}
}

// libvirt has QEMU's usual machine, and knows nothing of what the guest's kernel is told.
func TestLibvirtsMachines(t *testing.T) {
	vm := notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Provisioning: notebook.Pinned, Instance: notebook.Instance{Cores: 2, Memory: 4 << 30}}
	if !Expresses("libvirt", vm) {
		t.Error("libvirt does not express a usual VM")
	}
	if vm.Engine = notebook.MicroVM; Expresses("libvirt", vm) {
		t.Error("libvirt expresses a microVM")
	}
	confined := setting{Treatment: notebook.Treatment{Machine: "confined"}, CPUs: []int{2}, Others: []int{0, 1}}
	if got := confined.Beside(); len(got) != 1 || got[0] != 2 {
		t.Errorf("QEMU's other threads, confined: %v", got)
	}
}
