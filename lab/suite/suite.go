//go:build linux

// Package suite makes a disk image that boots any machine of its architecture, by BIOS or UEFI. The image runs a study there
// without a network and keeps the results on the disk, from which they can be read. (It is the aim named at the end of the study
// cloud-benchmarking.)
package suite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"tare/lab/image"
	"tare/lab/proc"
)

//go:embed make-disk.sh
var makeDisk []byte

//go:embed suite.sh
var suiteScript []byte

//go:embed tare-suite.service
var unit []byte

// Content is what a suite contains in addition to its system.
type Content struct {
	Study    string            // name of a shipped study, or text of a study file
	File     bool              // Study is a file's text
	Tare     string            // path of the program
	Packages []string          // Debian packages in addition to those of every suite
	Roots    []string          // digests of the roots of its workloads, in the store
	State    map[string]string // more files: paths on this host, by their path below Tare's state folder
}

const (
	release = "trixie"

	systemSpare = 8 << 10 // MiB that a run may write; the image is sparse
	resultsMiB  = 512

	studyFile = "/etc/tare/study.yaml"
)

// base is in every suite's system: a kernel for any machine, an init, and programs to make its disk.
var base = []string{"linux-image-amd64", "systemd-sysv", "udev", "e2fsprogs", "fdisk", "dosfstools", "mtools", "grub-pc-bin", "grub-efi-amd64-bin"}

// Build makes the image, a new file in qcow2 format. state is the path of Tare's state folder in the system.
func Build(ctx context.Context, store *image.Store, c Content, state, out string, say image.Progress) (err error) {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("suite: it boots by a BIOS or UEFI of x86_64, but this host is %s", runtime.GOARCH)
	}
	converter, err := findQEMUImg()
	if err != nil {
		return err
	}
	// Before anything that takes long.
	file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(out))
		}
	}()
	system, err := store.Debian(ctx, image.Recipe{Suite: release, Packages: slices.Concat(base, c.Packages)}, say)
	if err != nil {
		return err
	}
	w, err := store.Workspace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	say("putting the suite's disk together")
	root := filepath.Join(w.Dir, "system")
	if err := image.Link(ctx, system.Dir, root); err != nil {
		return err
	}
	if err := c.install(ctx, store, root, state); err != nil {
		return err
	}
	size, err := mebibytes(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Dir, "make-disk.sh"), makeDisk, 0o755); err != nil {
		return err
	}
	// In the system's own root, in a mount namespace of its own: nobody else sees the mounts, which end with it.
	const enter = `mount --bind "$1" "$2/mnt" && mount --rbind /dev "$2/dev" && exec chroot "$2" /bin/sh -c 'cd /mnt && exec ./make-disk.sh "$@"' make-disk "$3" "$4"`
	if err := run(ctx, w.Lock, syscall.CLONE_NEWNS, "sh", "-c", enter, "enter", w.Dir, system.Dir, strconv.Itoa(size+size/5+systemSpare), strconv.Itoa(resultsMiB)); err != nil {
		return err
	}
	say("compressing it")
	raw := filepath.Join(w.Dir, "disk.raw")
	return run(ctx, w.Lock, 0, converter, "convert", "-f", "raw", "-O", "qcow2", "-c", "-o", "compression_type=zstd", raw, out)
}

// install puts Tare, the study and what it needs into the system.
func (c Content) install(ctx context.Context, store *image.Store, root, state string) error {
	tare, err := os.ReadFile(c.Tare)
	if err != nil {
		return err
	}
	study, named := c.Study, []byte(nil)
	if c.File {
		study, named = studyFile, []byte(c.Study)
	}
	for _, f := range []struct {
		path string
		text []byte
		mode fs.FileMode
	}{
		{"usr/bin/tare", tare, 0o755},
		{"usr/lib/tare/suite.sh", suiteScript, 0o755},
		{"usr/lib/systemd/system/tare-suite.service", unit, 0o644},
		{"etc/hostname", []byte("tare-suite\n"), 0o644}, // the root's own is the name of the host that made it
		{"etc/resolv.conf", []byte{}, 0o644},
		{"etc/tare/study", []byte(study + "\n"), 0o644},
		{studyFile[1:], named, 0o644},
	} {
		if f.text == nil {
			continue
		}
		if err := place(root, f.path, func(path string) error { return os.WriteFile(path, f.text, f.mode) }); err != nil {
			return err
		}
	}
	for path, to := range map[string]string{
		"etc/systemd/system/multi-user.target.wants/tare-suite.service": "/usr/lib/systemd/system/tare-suite.service",
		// Nobody logs in, and nothing runs next to the study.
		"etc/systemd/system/getty.target":  "/dev/null",
		"etc/systemd/system/timers.target": "/dev/null",
	} {
		if err := place(root, path, func(path string) error { return os.Symlink(to, path) }); err != nil {
			return err
		}
	}
	there := filepath.Join(root, state)
	if err := os.MkdirAll(there, 0o755); err != nil {
		return err
	}
	if err := store.Copy(ctx, filepath.Join(there, "images"), c.Roots); err != nil {
		return err
	}
	for name, from := range c.State {
		to := filepath.Join(there, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := image.Link(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

// place lets put make something at a path of the system. An existing file is the store's own, so a new file replaces it.
func place(root, name string, put func(path string) error) error {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return put(path)
}

// mebibytes is the size of a folder's files on a disk.
func mebibytes(dir string) (int, error) {
	sum := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += (info.Size()+4095)/4096*4096 + 512 // with its folder entry and its inode
		}
		return err
	})
	return int(sum >> 20), err
}

// run runs a program of the host. It inherits lock, so that its workspace stays as long as it lives.
func run(ctx context.Context, lock *os.File, namespaces uintptr, name string, args ...string) error {
	said := &proc.Tail{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Stdout, cmd.Stderr = io.Discard, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: namespaces}
	defer proc.Tie(cmd)()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("suite: %s: %w: %s", filepath.Base(name), err, said)
	}
	return nil
}

func findQEMUImg() (string, error) {
	path, err := exec.LookPath("qemu-img")
	if err != nil {
		return "", fmt.Errorf("qemu-img, which makes and reads disk images, is not installed (%w): apt-get install qemu-utils", err)
	}
	return path, nil
}
