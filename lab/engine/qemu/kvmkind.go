//go:build linux

package qemu

import (
	"io/fs"
	"slices"
	"strings"

	"tare/lab/proc"
)

// kvmKind describes what runs the guests of a host's KVM, and reports whether that is the CPU's own virtualization. Anything else
// that provides /dev/kvm runs the guest's kernel in some other way, mostly by emulating it. Its cost is not a VM's, and most
// kernels do not boot there.
func kvmKind(host proc.Tree) (words string, hardware bool) {
	flags, _ := host.CPUFlags() // if they cannot be read, nothing says that the CPU can
	for _, of := range []struct{ flag, module string }{{"vmx", "kvm_intel"}, {"svm", "kvm_amd"}} {
		if _, err := fs.Stat(host.FS, "sys/module/"+of.module); err == nil && slices.Contains(flags, of.flag) {
			return "the CPU's own virtualization (" + of.flag + ", " + of.module + ")", true
		}
	}
	lacks := "the CPU has neither vmx nor svm"
	if slices.Contains(flags, "vmx") || slices.Contains(flags, "svm") {
		lacks = "neither kvm_intel nor kvm_amd is loaded"
	}
	modules, _ := fs.Glob(host.FS, "sys/module/kvm_*") // the pattern is valid
	var others []string
	for _, m := range modules {
		if name := strings.TrimPrefix(m, "sys/module/"); name != "kvm_intel" && name != "kvm_amd" {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return "no virtualization of the CPU's own: " + lacks, false
	}
	return "an emulation of the guest's kernel mode (" + strings.Join(others, ", ") + "; " + lacks + ")", false
}
