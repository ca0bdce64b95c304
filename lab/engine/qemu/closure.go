//go:build linux

package qemu

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"tare/lab/engine/qemu/guestinit"
)

// runtime gives what goes into a VM that runs the ruler in a container, as package oci's runtimes make it on the host: same
// configuration, overlay on the disk of its root. Its CPU quota or set are all of the VM's vCPUs, and its memory limit is
// what the VM's kernel has left when it starts, rounded down to whole MiB.
//
// On the load's bridge the container has a network namespace and the guest's address, on a bridge inside the VM to which
// the VM's own card belongs; or it shares the VM's network. The runtime need not be in the image: it comes from the host,
// with the shared libraries that it needs.
func (d *Driver) runtime() ([]File, error) {
	program := d.Crun
	if program == "" {
		var err error
		if program, err = exec.LookPath("crun"); err != nil {
			return nil, fmt.Errorf("no crun to put into the VM: %w; install it (Debian, Ubuntu: apt-get install crun)", err)
		}
	}
	return closure(program, guestinit.CrunPath)
}

// libraryDirs are where the dynamic linker looks by default, besides what /etc/ld.so.conf names.
var libraryDirs = []string{
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib",
}

// closure gives what a program of the host needs to run elsewhere: itself, under the name given, the dynamic linker
// that it names, and every shared library that it or another needs. Libraries go where the linker looks without a
// cache: /lib.
func closure(program, as string) ([]File, error) {
	files := []File{{Name: as, Path: program}}
	dirs, err := configuredDirs("/etc/ld.so.conf", 0)
	if err != nil {
		return nil, err
	}
	dirs = append(dirs, libraryDirs...)
	seen := map[string]bool{}
	for i := 0; i < len(files); i++ { // files grows
		o, err := inspect(files[i].Path)
		if err != nil {
			return nil, err
		}
		if o.linker != "" && !seen[filepath.Base(o.linker)] {
			seen[filepath.Base(o.linker)] = true
			files = append(files, File{Name: strings.TrimPrefix(o.linker, "/"), Path: o.linker})
		}
		for _, lib := range o.needed {
			if seen[lib] {
				continue
			}
			seen[lib] = true
			path, err := find(lib, append(o.runpath, dirs...), o.class, o.machine)
			if err != nil {
				return nil, fmt.Errorf("%s needs %w", files[i].Path, err)
			}
			files = append(files, File{Name: "lib/" + lib, Path: path})
		}
	}
	return files, nil
}

// object is what an ELF file says of what it needs.
type object struct {
	linker  string
	needed  []string
	runpath []string
	class   elf.Class
	machine elf.Machine
}

func inspect(path string) (object, error) {
	f, err := elf.Open(path)
	if err != nil {
		return object{}, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	o := object{class: f.Class, machine: f.Machine}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, min(p.Filesz, 4096))
		if _, err := p.ReadAt(name, 0); err != nil {
			return object{}, fmt.Errorf("%s: its dynamic linker's name: %w", path, err)
		}
		o.linker = strings.TrimRight(string(name), "\x00")
		if !filepath.IsAbs(o.linker) {
			return object{}, fmt.Errorf("%s: its dynamic linker is %q, expected an absolute path", path, o.linker)
		}
	}
	if o.needed, err = f.ImportedLibraries(); err != nil {
		return object{}, fmt.Errorf("%s: the libraries that it needs: %w", path, err)
	}
	for _, lib := range o.needed {
		if lib != filepath.Base(lib) {
			return object{}, fmt.Errorf("%s: needs library %q, expected a plain name", path, lib)
		}
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := f.DynString(tag)
		if err != nil {
			return object{}, fmt.Errorf("%s: where it looks for libraries: %w", path, err)
		}
		for _, v := range values {
			for _, dir := range filepath.SplitList(v) {
				o.runpath = append(o.runpath, strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path)).Replace(dir))
			}
		}
	}
	return o, nil
}

// find looks for a library of the right kind: a host may have those of several architectures.
func find(lib string, dirs []string, class elf.Class, machine elf.Machine) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, lib)
		f, err := elf.Open(path)
		if err != nil {
			continue // not there, or not a library
		}
		right := f.Class == class && f.Machine == machine
		f.Close()
		if right {
			return path, nil
		}
	}
	dirs = slices.Compact(slices.Sorted(slices.Values(dirs)))
	return "", fmt.Errorf("library %s, which is in none of %s; is the package complete?", lib, strings.Join(dirs, ", "))
}

// configuredDirs reads the folders that the linker's configuration names, and those of the files that it includes.
func configuredDirs(path string, depth int) ([]string, error) {
	if depth > 5 {
		return nil, fmt.Errorf("%s: files that include each other", path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var dirs []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		pattern, include := strings.CutPrefix(line, "include ")
		switch {
		case include:
			pattern = strings.TrimSpace(pattern)
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(path), pattern)
			}
			more, err := filepath.Glob(pattern)
			if err != nil {
				return nil, fmt.Errorf("%s: include %s: %w", path, pattern, err)
			}
			for _, m := range more {
				d, err := configuredDirs(m, depth+1)
				if err != nil {
					return nil, err
				}
				dirs = append(dirs, d...)
			}
		case filepath.IsAbs(line):
			dirs = append(dirs, line)
		}
	}
	return dirs, lines.Err()
}
