//go:build linux

package qemu

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/proc/proctest"
)

// aBzImage is the least that is one, for x86-64, of that release.
func aBzImage(release string) []byte {
	b := make([]byte, 5*512+64)
	copy(b[0x202:], "HdrS")
	b[setupSects] = 4
	binary.LittleEndian.PutUint32(b[sysSize:], 4)
	binary.LittleEndian.PutUint16(b[bootVersion:], 0x20f)
	b[xLoadFlags] = 1
	binary.LittleEndian.PutUint16(b[kernelVersion:], 0x200)
	copy(b[0x400:], release+" (somebody@somewhere) #1 SMP")
	return b
}

// aVmlinux is the least that is one: a note and the kernel's line about itself.
func aVmlinux(machine elf.Machine, note uint32) []byte {
	var b bytes.Buffer
	notes := binary.LittleEndian.AppendUint32(nil, 4)
	notes = binary.LittleEndian.AppendUint32(notes, 4)
	notes = binary.LittleEndian.AppendUint32(notes, note)
	notes = append(notes, "Xen\x00\x00\x00\x00\x01"...)
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	for _, part := range []any{h, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 120, Filesz: uint64(len(notes)), Align: 4}, notes, []byte("Linux version 6.1.2-test (a@b) #1\n")} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func TestNamedKernel(t *testing.T) {
	t.Parallel()
	changed := func(b []byte, at int, to byte) []byte { b[at] = to; return b }
	for _, c := range []struct {
		what          string
		data          []byte
		release, says string
	}{
		{"a bzImage", aBzImage("6.12.1-amd64"), "6.12.1-amd64", ""},
		{"a vmlinux", aVmlinux(elf.EM_X86_64, pvhEntry), "6.1.2-test", ""},
		{"a signed bzImage", append(aBzImage("6.12.1"), "signature"...), "6.12.1", ""},
		{"nothing", nil, "", "it is empty"},
		{"a text", []byte("no kernel\n"), "", "it is not a kernel"},
		{"a cut bzImage", aBzImage("6.12.1")[:2600], "", "it is truncated: it has 2600 bytes of 2624"},
		{"a cut header", aBzImage("6.12.1")[:0x220], "", "it is truncated"},
		{"a cut vmlinux", aVmlinux(elf.EM_X86_64, pvhEntry)[:130], "", "it is truncated: it has 130 bytes of at least 140"},
		{"a kernel for 32 bits", changed(aBzImage("6.12.1"), xLoadFlags, 0), "", "for 32-bit x86"},
		{"a bzImage without a release", aBzImage("\x01\x02"), "", "its release is"},
		{"a vmlinux for arm64", aVmlinux(elf.EM_AARCH64, pvhEntry), "", "it is for EM_AARCH64"},
		{"an Image for arm64", append(make([]byte, 0x38), "ARM\x64"...), "", "for arm64"},
		{"an Image for RISC-V", append(make([]byte, 0x38), "RSC\x05"...), "", "for RISC-V"},
		{"a vmlinux without PVH", aVmlinux(elf.EM_X86_64, 1), "", "without a PVH entry"},
		{"a program", bytes.ReplaceAll(aVmlinux(elf.EM_X86_64, pvhEntry), []byte("Linux version"), []byte("Other version")), "", "a program, not a kernel"},
		{"a compressed file", []byte("\xfd7zXZ\x00…"), "", "unpack it first (xz -dk)"},
	} {
		path := filepath.Join(t.TempDir(), "kernel")
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		k, err := NamedKernel(path)
		switch {
		case c.says == "" && (err != nil || k.Release != c.release || k.Image != path || k.Modules != "" || !strings.HasPrefix(k.Digest, "sha256:")):
			t.Errorf("%s: %+v, %v; want release %s", c.what, k, err, c.release)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), "kernel "+path+": ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v; want one line with %q", c.what, err, c.says)
		}
	}
	for path, says := range map[string]string{"/nowhere/vmlinuz": "no such file", t.TempDir(): "it is not a file"} {
		if _, err := NamedKernel(path); err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v; want %q", path, err, says)
		}
	}
}

// A named kernel's modules are those next to it, as in an unpacked package.
func TestNamedKernelsModules(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	modules := filepath.Join(root, "usr/lib/modules/6.12.1-none")
	for dir, file := range map[string]string{filepath.Join(root, "boot"): "vmlinuz", modules: "modules.builtin"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), aBzImage("6.12.1-none"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if k, err := NamedKernel(filepath.Join(root, "boot/vmlinuz")); err != nil || k.Modules != modules {
		t.Errorf("%+v, %v; want the modules in %s", k, err, modules)
	}
	timeout := errors.New("serial port did not appear")
	if err := (Kernel{Modules: modules}).explain(timeout); err.Error() != timeout.Error() {
		t.Errorf("with modules: %v", err)
	}
	if err := (Kernel{Release: "6.12.1", Image: "/k/boot/vmlinuz"}).explain(timeout); !errors.Is(err, timeout) || !strings.Contains(err.Error(), "the kernel 6.12.1 has no modules (in /k/lib/modules or /lib/modules)") {
		t.Errorf("without modules: %v", err)
	}
	if all, err := (Kernel{Release: "6.12.1"}).modules(guestModules, optionalModules); err != nil || all != nil {
		t.Errorf("modules of a kernel that has none: %v, %v", all, err)
	}
}

func FuzzKernelFile(f *testing.F) {
	f.Add(aBzImage("6.12.1"))
	f.Add(aVmlinux(elf.EM_X86_64, pvhEntry))
	f.Fuzz(func(t *testing.T, data []byte) {
		if release, err := releaseOf(data); err == nil && (release == "" || strings.ContainsAny(release, " \n/")) {
			t.Errorf("release %q", release)
		}
	})
}

func TestKVMKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags    string
		modules  []string
		hardware bool
		words    string
	}{
		{"fpu vmx sse", []string{"kvm", "kvm_intel"}, true, "the CPU's own virtualization (vmx, kvm_intel)"},
		{"fpu svm", []string{"kvm", "kvm_amd"}, true, "the CPU's own virtualization (svm, kvm_amd)"},
		{"fpu", []string{"kvm", "kvm_pvm"}, false, "an emulation of the guest's kernel mode (kvm_pvm; the CPU has neither vmx nor svm)"},
		{"fpu vmx", []string{"kvm", "kvm_pvm"}, false, "an emulation of the guest's kernel mode (kvm_pvm; neither kvm_intel nor kvm_amd is loaded)"},
		{"fpu svm", []string{"kvm_intel"}, false, "no virtualization of the CPU's own: neither kvm_intel nor kvm_amd is loaded"},
		{"fpu", []string{"kvm_intel"}, false, "no virtualization of the CPU's own: the CPU has neither vmx nor svm"},
	} {
		host := proctest.New()
		host.Put("/proc/cpuinfo", "processor\t: 0\nflags\t\t: "+c.flags)
		for _, m := range c.modules {
			host.Put("/sys/module/"+m+"/refcnt", "0")
		}
		if words, hardware := kvmKind(host.Tree); words != c.words || hardware != c.hardware {
			t.Errorf("%s with %v: %q, %v; want %q, %v", c.flags, c.modules, words, hardware, c.words, c.hardware)
		}
	}
}
