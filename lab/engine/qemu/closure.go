//go:build linux

package qemu

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"tare/lab/engine/qemu/guestinit"
	"tare/lab/ruler"
)

// runtime returns the files for a VM that runs the ruler in a container, made in the same way as package oci makes containers on
// the host: the same configuration, and an overlay on its root's disk. Its CPU quota or set are all of the VM's vCPUs. Its memory
// limit is what the VM's kernel has left at its start, rounded down to whole MiB.
//
// On the load's bridge the container has a network namespace and the guest's address, on a bridge inside the VM that also has the
// VM's own card. Otherwise it shares the VM's network. The runtime need not be in the image: it comes from the host, with the
// shared libraries that it needs.
func (d *Driver) runtime(ctx context.Context) ([]file, error) {
	crun := d.Crun
	if crun == "" {
		var err error
		if crun, err = exec.LookPath("crun"); err != nil {
			return nil, fmt.Errorf("no crun to put into the VM: %w; install it (Debian, Ubuntu: apt-get install crun)", err)
		}
	}
	return closure(ctx, crun, guestinit.CrunPath)
}

// closure returns what a program of the host needs to run elsewhere: the program under the given name, its dynamic linker, and
// every shared library that the linker would load for it. Libraries go where the linker looks without a cache: /lib.
func closure(ctx context.Context, path, as string) ([]file, error) {
	files := []file{program(as, path)}
	linker, err := ruler.Interpreter(path)
	if err != nil || linker == "" {
		return files, err
	}
	if !filepath.IsAbs(linker) {
		return nil, fmt.Errorf("%s: its dynamic linker is %q; must be an absolute path", path, linker)
	}
	files = append(files, program(strings.TrimPrefix(linker, "/"), linker))
	said, err := command(ctx, "", linker, "--list", path)
	if err != nil {
		return nil, err
	}
	// "NAME => PATH (ADDRESS)". A line without an arrow is the linker itself or the kernel's own code, not a library.
	for line := range strings.Lines(string(said)) {
		lib, at, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok || filepath.Base(lib) == filepath.Base(linker) {
			continue
		}
		at, _, _ = strings.Cut(at, " (0x")
		if !filepath.IsAbs(at) {
			return nil, fmt.Errorf("%s needs library %s: %s; is the package complete?", path, lib, at)
		}
		// The host may also have the library for newer processors, but an emulated processor is older than the host's.
		if usual := hardwareFolder.ReplaceAllString(at, "/"); readable(usual) {
			at = usual
		}
		files = append(files, program("lib/"+filepath.Base(lib), at))
	}
	return files, nil
}

// hardwareFolder is where glibc first looks for libraries for newer processors.
var hardwareFolder = regexp.MustCompile(`/glibc-hwcaps/[^/]+/`)
