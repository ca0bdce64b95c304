//go:build linux

package qemu

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/notebook/durable"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"
)

// Kernel is a Linux kernel for guests.
type Kernel struct {
	Release string // "6.1.0-56-cloud-amd64"
	Image   string // path of its vmlinuz
	Modules string // path of its lib/modules/RELEASE; "": everything that guests need is built in
	Source  string // where it comes from, for the record
	Digest  string // "sha256:…" of Image; "" until it has been read
}

// packagedKernel is the package that depends on Debian's newest kernel for virtual machines.
const packagedKernel = "linux-image-cloud-amd64"

// FindKernel returns the kernel for guests. It is the host's own where it and its modules are readable, so that bare metal and VM
// differ only by the VM. Otherwise it is Debian's packaged cloud kernel, which apt fetches once and FindKernel unpacks (without
// installing it) into stateDir/kernels. It may use the network, within ctx.
func FindKernel(ctx context.Context, stateDir string) (Kernel, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return Kernel{}, fmt.Errorf("vm: kernel release of the host: %w", err)
	}
	release := unix.ByteSliceToString(uts.Release[:])
	own := Kernel{Release: release, Image: "/boot/vmlinuz-" + release, Modules: "/lib/modules/" + release}
	own.Source = "the host's own, " + own.Image
	if readable(own.Image) && readable(own.Modules) {
		return own, nil
	}
	return fetchKernel(ctx, filepath.Join(stateDir, "kernels"))
}

func readable(path string) bool { return unix.Access(path, unix.R_OK) == nil }

// fetchKernel returns the newest kernel unpacked in dir, or fetches one.
func fetchKernel(ctx context.Context, dir string) (Kernel, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Kernel{}, fmt.Errorf("vm: folder for guest kernels: %w", err)
	}
	if k, ok, err := unpackedKernel(dir); err != nil || ok {
		return k, err
	}
	// One process fetches, others wait: any temporary folder seen under the lock belongs to a dead process.
	unlock, err := durable.Lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return Kernel{}, fmt.Errorf("vm: another process fetches the guests' kernel: %w", err)
	}
	defer unlock() // nothing was written, so an error does not matter
	if k, ok, err := unpackedKernel(dir); err != nil || ok {
		return k, err
	}
	const prefix = "tmp-"
	if _, err := durable.Sweep(dir, prefix); err != nil {
		return Kernel{}, fmt.Errorf("vm: half-unpacked kernel: %w", err)
	}
	tmp, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return Kernel{}, fmt.Errorf("vm: folder for a guest kernel: %w", err)
	}
	defer os.RemoveAll(tmp)

	out, err := command(ctx, "", "apt-cache", "depends", packagedKernel)
	if err != nil {
		return Kernel{}, fmt.Errorf("vm: no kernel for guests: the host's own cannot be read, and apt does not know %s: %w; run `apt-get update`, or make /boot/vmlinuz-$(uname -r) and /lib/modules/$(uname -r) readable", packagedKernel, err)
	}
	m := regexp.MustCompile(`(?m)^\s*Depends: (linux-image-[0-9][A-Za-z0-9.+-]*)$`).FindSubmatch(out)
	if m == nil {
		return Kernel{}, fmt.Errorf("vm: `apt-cache depends %s` names no linux-image package: %.200q", packagedKernel, out)
	}
	pkg := string(m[1])
	if _, err := command(ctx, tmp, "apt-get", "-o", "APT::Sandbox::User=root", "download", pkg); err != nil {
		return Kernel{}, fmt.Errorf("vm: fetch the guests' kernel: %w; run `apt-get update` and try again", err)
	}
	debs, err := filepath.Glob(filepath.Join(tmp, pkg+"_*.deb"))
	if err != nil || len(debs) != 1 {
		return Kernel{}, fmt.Errorf("vm: `apt-get download %s` left %d packages; must be one", pkg, len(debs))
	}
	name := strings.TrimSuffix(filepath.Base(debs[0]), ".deb")
	if _, err := command(ctx, tmp, "dpkg-deb", "-x", debs[0], "root"); err != nil {
		return Kernel{}, fmt.Errorf("vm: unpack the guests' kernel: %w", err)
	}
	if _, err := kernelIn(filepath.Join(tmp, "root"), name); err != nil {
		return Kernel{}, err
	}
	final := filepath.Join(dir, name)
	if err := os.Rename(filepath.Join(tmp, "root"), final); err != nil {
		return Kernel{}, fmt.Errorf("vm: keep the guests' kernel: %w", err)
	}
	return kernelIn(final, name)
}

// command runs a program and returns its standard output. The error has the end of what it printed.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second // for a child that goes on and holds its output open
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out, errb bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errb
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		said := strings.TrimSpace(errb.String())
		if len(said) > 500 {
			said = "…" + said[len(said)-500:]
		}
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said)
	}
	return out.Bytes(), nil
}

// unpackedKernel returns the newest kernel in dir.
func unpackedKernel(dir string) (Kernel, bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Kernel{}, false, fmt.Errorf("vm: guest kernels: %w", err)
	}
	slices.Reverse(entries) // names contain the version, and there are few
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "linux-image-") {
			k, err := kernelIn(filepath.Join(dir, e.Name()), e.Name())
			return k, err == nil, err
		}
	}
	return Kernel{}, false, nil
}

// kernelIn finds the kernel in an unpacked package.
func kernelIn(root, name string) (Kernel, error) {
	images, err := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return Kernel{}, fmt.Errorf("vm: package %s has %d files boot/vmlinuz-*; must be one", root, len(images))
	}
	release := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	k := Kernel{Release: release, Image: images[0], Source: "Debian package " + name}
	for _, lib := range []string{"lib/modules", "usr/lib/modules"} {
		if dir := filepath.Join(root, lib, release); readable(dir) {
			k.Modules = dir
			return k, nil
		}
	}
	return Kernel{}, fmt.Errorf("vm: package %s has no modules for %s", root, release)
}

// module is one kernel module to load, uncompressed.
type module struct {
	name string
	data []byte
}

// maxModule bounds an uncompressed kernel module; the largest that guests need has a few MiB.
const maxModule = 64 << 20

// modules returns the wanted modules of k and those of the optional ones that it has, each after its dependencies; the optional
// ones come first. It omits what is built into the kernel. A wanted module that the kernel has in neither way is an error. It reads
// dependencies from the modules themselves, because an unpacked package has no modules.dep. A kernel without modules has everything
// built in, or the guest says what is missing.
func (k Kernel) modules(wanted, optional []string) ([]module, error) {
	if k.Modules == "" {
		return nil, nil
	}
	files := map[string]string{}
	err := filepath.WalkDir(k.Modules, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base, _, ok := strings.Cut(d.Name(), ".ko"); ok && !d.IsDir() {
			files[moduleName(base)] = path
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("vm: kernel modules: %w", err)
	}
	builtin := map[string]bool{}
	list, err := os.ReadFile(filepath.Join(k.Modules, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("vm: list of what is built into the kernel: %w", err)
	}
	for line := range strings.Lines(string(list)) {
		builtin[moduleName(strings.TrimSuffix(filepath.Base(strings.TrimSpace(line)), ".ko"))] = true
	}

	var order []module
	state := map[string]int{} // 1: its dependencies are being added, 2: added
	var add func(name, by string) error
	add = func(name, by string) error {
		name = moduleName(name)
		switch {
		case state[name] == 2 || builtin[name]:
			return nil
		case state[name] == 1:
			return fmt.Errorf("vm: kernel module %s depends on itself", name)
		case files[name] == "":
			return fmt.Errorf("vm: kernel %s has no module %s, which %s needs, neither in %s nor built in", k.Release, name, by, k.Modules)
		}
		state[name] = 1
		data, err := readModule(files[name])
		if err != nil {
			return err
		}
		deps, err := moduleDepends(data)
		if err != nil {
			return fmt.Errorf("vm: %s: %w", files[name], err)
		}
		for _, d := range deps {
			if err := add(d, name); err != nil {
				return err
			}
		}
		state[name] = 2
		order = append(order, module{name, data})
		return nil
	}
	for _, o := range optional {
		if files[moduleName(o)] == "" {
			continue
		}
		if err := add(o, "a guest"); err != nil {
			return nil, err
		}
	}
	for _, w := range wanted {
		if err := add(w, "a guest"); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleName is a module's name in the kernel's own spelling.
func moduleName(s string) string { return strings.ReplaceAll(s, "-", "_") }

func readModule(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("vm: kernel module: %w", err)
	}
	defer f.Close()
	var r io.Reader = f
	switch filepath.Ext(path) {
	case ".ko":
	case ".gz":
		r, err = gzip.NewReader(f)
	case ".xz":
		r, err = xz.NewReader(f)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(f); err == nil {
			defer z.Close()
			r = z
		}
	default:
		return nil, fmt.Errorf("vm: kernel module %s: must be .ko, .ko.gz, .ko.xz or .ko.zst", path)
	}
	if err != nil {
		return nil, fmt.Errorf("vm: kernel module %s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err != nil {
		return nil, fmt.Errorf("vm: kernel module %s: %w", path, err)
	}
	if len(data) > maxModule {
		return nil, fmt.Errorf("vm: kernel module %s has more than %d bytes", path, maxModule)
	}
	return data, nil
}

// moduleDepends reads the names of the modules whose symbols a module uses.
func moduleDepends(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("not a kernel module: %w", err)
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, errors.New("not a kernel module: it has no section .modinfo")
	}
	info, err := s.Data()
	if err != nil {
		return nil, fmt.Errorf("section .modinfo: %w", err)
	}
	var deps []string
	for _, field := range strings.Split(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			deps = append(deps, strings.Split(list, ",")...)
		}
	}
	slices.Sort(deps)
	return deps, nil
}
