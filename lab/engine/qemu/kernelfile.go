//go:build linux

package qemu

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"tare/notebook"
)

// maxKernel bounds a kernel's file in bytes; even an uncompressed one with debugging symbols is smaller.
const maxKernel = 1 << 30

// NamedKernel reads a file as the guests' kernel: a bzImage, or an uncompressed vmlinux with an entry for Xen's PVH. Its modules
// are those of its release, next to it as in a package, or on this host. Without modules, everything that guests need must be built
// in.
func NamedKernel(path string) (Kernel, error) {
	refuse := func(why string, a ...any) (Kernel, error) {
		return Kernel{}, fmt.Errorf("kernel %s: "+why, append([]any{path}, a...)...)
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return refuse("%w", errors.Unwrap(err))
	case !st.Mode().IsRegular():
		return refuse("it is not a file; give a bzImage (vmlinuz) or an uncompressed vmlinux")
	case st.Size() > maxKernel:
		return refuse("it has %d bytes; a kernel has at most %d", st.Size(), maxKernel)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return refuse("%w", errors.Unwrap(err))
	}
	release, err := releaseOf(data)
	if err != nil {
		return refuse("%w", err)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return refuse("%w", err)
	}
	sum := sha256.Sum256(data)
	k := Kernel{Release: release, Image: full, Digest: "sha256:" + hex.EncodeToString(sum[:]), Source: "file " + full}
	for _, lib := range []string{filepath.Join(filepath.Dir(full), "../lib"), filepath.Join(filepath.Dir(full), "../usr/lib"), "/lib"} {
		if dir := filepath.Join(lib, "modules", release); readable(filepath.Join(dir, "modules.builtin")) {
			k.Modules = dir
			break
		}
	}
	return k, nil
}

// explain adds to an error of a guest that did not start what the kernel's missing modules may have to do with it.
func (k Kernel) explain(err error) error {
	if k.Modules != "" {
		return err
	}
	return fmt.Errorf("%w; the kernel %s has no modules (in %s or /lib/modules), so all drivers of its VM must be built in", err, k.Release, filepath.Join(filepath.Dir(k.Image), "../lib/modules"))
}

// recorded is the entry for a kernel's file in a record.
func recorded(path string) (notebook.Kernel, error) {
	k, err := NamedKernel(path)
	return notebook.Kernel{File: path, Release: k.Release, Digest: k.Digest}, err
}

// digestOf is the digest of a kernel's file.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("vm: the guests' kernel: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("vm: the guests' kernel: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// packed are the first bytes of compressed files that no machine can boot, and how to unpack them.
var packed = []struct{ magic, how string }{
	{"\xfd7zXZ\x00", "xz -dk"}, {"\x1f\x8b", "gzip -dk"}, {"\x28\xb5\x2f\xfd", "zstd -dk"}, {"BZh", "bzip2 -dk"}, {"\x04\x22\x4d\x18", "lz4 -dk"},
}

// releaseOf checks that a file's bytes are a whole kernel for this machine, and returns its release.
func releaseOf(data []byte) (string, error) {
	for _, p := range packed {
		if bytes.HasPrefix(data, []byte(p.magic)) {
			return "", fmt.Errorf("it is compressed as a file: unpack it first (%s)", p.how)
		}
	}
	at := func(offset int, text string) bool {
		return len(data) >= offset+len(text) && string(data[offset:offset+len(text)]) == text
	}
	switch {
	case at(0, elf.ELFMAG):
		return vmlinux(data)
	case at(0x202, "HdrS"):
		return bzImage(data)
	case at(0x38, "ARM\x64"):
		return "", errors.New("it is a kernel for arm64; give one for x86-64")
	case at(0x38, "RSC\x05"):
		return "", errors.New("it is a kernel for RISC-V; give one for x86-64")
	case len(data) == 0:
		return "", errors.New("it is empty; give a bzImage (vmlinuz) or an uncompressed vmlinux")
	}
	return "", errors.New("it is not a kernel; give a bzImage (vmlinuz) or an uncompressed vmlinux for x86-64")
}

// Offsets in a bzImage's header (the kernel's Documentation/arch/x86/boot.rst).
const (
	setupSects    = 0x1f1 // byte: sectors of the set-up code minus one
	sysSize       = 0x1f4 // uint32: 16-byte units of the rest
	bootVersion   = 0x206 // uint16
	kernelVersion = 0x20e // uint16: offset of the release, minus 0x200
	xLoadFlags    = 0x236 // uint16; bit 0: it has a 64-bit entry
	bootHeaderEnd = 0x238
)

func bzImage(data []byte) (string, error) {
	if len(data) < bootHeaderEnd {
		return "", errors.New("it is truncated: its header is incomplete")
	}
	sects := int(data[setupSects])
	if sects == 0 {
		sects = 4
	}
	if want := (sects+1)*512 + 16*int(binary.LittleEndian.Uint32(data[sysSize:])); len(data) < want {
		return "", fmt.Errorf("it is truncated: it has %d bytes of %d", len(data), want)
	}
	if v := binary.LittleEndian.Uint16(data[bootVersion:]); v < 0x20c || data[xLoadFlags]&1 == 0 {
		return "", errors.New("it is an old kernel, or one for 32-bit x86; give one for x86-64")
	}
	where := 0x200 + int(binary.LittleEndian.Uint16(data[kernelVersion:]))
	if where >= len(data) {
		return "", errors.New("its header names no release")
	}
	release, _, _ := bytes.Cut(data[where:min(len(data), where+256)], []byte(" "))
	return saneRelease(release)
}

// A kernel's own line about itself, and the form of a release.
var (
	banner  = regexp.MustCompile(`Linux version ([^ \x00]{1,64}) \(`)
	release = regexp.MustCompile(`^[0-9]+\.[0-9]+[A-Za-z0-9.+_~-]*$`)
)

func saneRelease(text []byte) (string, error) {
	if len(text) > 64 || !release.Match(text) {
		return "", fmt.Errorf("its release is %.70q; must be a release such as 6.12.1", text)
	}
	return string(text), nil
}

// pvhEntry is the type of Xen's note with the entry of a PVH guest. QEMU starts no vmlinux without it.
const pvhEntry = 18

func vmlinux(data []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("it is truncated or not a kernel: %w", err)
	}
	if f.Machine != elf.EM_X86_64 || f.Class != elf.ELFCLASS64 {
		return "", fmt.Errorf("it is for %s; give a kernel for x86-64", f.Machine)
	}
	pvh := false
	for _, p := range f.Progs {
		if p.Off+p.Filesz < p.Off || p.Off+p.Filesz > uint64(len(data)) {
			return "", fmt.Errorf("it is truncated: it has %d bytes of at least %d", len(data), p.Off+p.Filesz)
		}
		if p.Type == elf.PT_NOTE {
			pvh = pvh || hasNote(data[p.Off:p.Off+p.Filesz], "Xen\x00", pvhEntry)
		}
	}
	m := banner.FindSubmatch(data)
	switch {
	case m == nil:
		return "", errors.New("it is a program, not a kernel: it does not contain \"Linux version\"")
	case !pvh:
		return "", errors.New("it is a vmlinux without a PVH entry (CONFIG_PVH), which QEMU does not boot: give its bzImage")
	}
	return saneRelease(m[1])
}

// hasNote reports whether a segment has a note of that owner and type.
func hasNote(notes []byte, owner string, kind uint32) bool {
	pad := func(n uint32) int { return int(n+3) &^ 3 }
	for len(notes) >= 12 {
		name, desc, is := binary.LittleEndian.Uint32(notes), binary.LittleEndian.Uint32(notes[4:]), binary.LittleEndian.Uint32(notes[8:])
		notes = notes[12:]
		if name > uint32(len(notes)) || desc > uint32(len(notes)) || pad(name)+pad(desc) > len(notes) {
			return false
		}
		if is == kind && string(notes[:name]) == owner {
			return true
		}
		notes = notes[pad(name)+pad(desc):]
	}
	return false
}
