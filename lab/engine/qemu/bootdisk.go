//go:build linux

package qemu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
	"tare/notebook"
)

// bootDisks are the disks of a machine that boots from disk, by its BIOS and GRUB, as an installed system does: one with GRUB, one with
// the kernel and its initramfs, and one with GRUB's configuration for this guest. GRUB reads the last two as archives. QEMU then has no
// copy of the kernel in its own memory (virtualization-overheads, section 6: its VMs boot from their disks).
type bootDisks struct{ loader, kernel, config string }

// grubFolder has the parts of GRUB for PCs with a BIOS.
const grubFolder = "/usr/lib/grub/i386-pc"

const grubMaker = "grub-mkimage"

// Files on the disks.
const (
	bootConfig = "tare-grub.cfg"
	bootKernel = "vmlinuz"
	bootInitrd = "initramfs"
)

// grubConfig is part of GRUB's own image.
const grubConfig = "search --set=conf --file /" + bootConfig + "\nconfigfile ($conf)/" + bootConfig + "\n"

var grubModules = []string{"biosdisk", "newc", "linux", "configfile", "search", "search_fs_file"}

// Sizes of disks: the BIOS reads the first sector by cylinder, head and sector, so that disk needs a whole cylinder.
const (
	loaderSize = 4 << 20
	configSize = 1 << 20
)

// boots says why a machine cannot boot as asked; nil if it can.
func (d *Driver) boots(m notebook.Machine, accelerator string) error {
	if !m.BootDisk {
		return nil
	}
	_, missing := exec.LookPath(grubMaker)
	if missing == nil {
		_, missing = os.Stat(filepath.Join(grubFolder, "boot.img"))
	}
	switch {
	case accelerator == notebook.KVMEmulated:
		return d.kind.Unsupported("boot=disk", "with this accelerator machines start without a BIOS")
	case missing != nil:
		return d.kind.Unsupported("boot=disk", "it needs GRUB for a BIOS: apt-get install grub-pc-bin ("+missing.Error()+")")
	}
	return nil
}

// bootDisks returns the disks that a machine boots from and shares with others. The first call makes them. They are empty for a machine that
// QEMU gives its kernel.
func (d *Driver) bootDisks(ctx context.Context, m notebook.Machine, accelerator string, k Kernel, initrd string) (b bootDisks, err error) {
	if err := d.boots(m, accelerator); err != nil || !m.BootDisk {
		return b, err
	}
	d.prepare.Lock()
	defer d.prepare.Unlock()
	if b, ok := d.disks[initrd]; ok {
		return b, nil
	}
	if b.loader, err = d.loader(ctx); err != nil {
		return b, fmt.Errorf("vm: boot loader: %w", err)
	}
	regular := func(name, path string) file { return file{name: name, mode: unix.S_IFREG | 0o644, path: path} }
	b.kernel, err = initramfs(filepath.Join(d.State, initramfsDir), []file{regular(bootKernel, k.Image), regular(bootInitrd, initrd)})
	if err != nil {
		return b, err
	}
	if d.disks == nil {
		d.disks = map[string]bootDisks{}
	}
	d.disks[initrd] = b
	return b, nil
}

// loader makes the disk with GRUB, and returns its path.
func (d *Driver) loader(ctx context.Context) (path string, err error) {
	folder, err := d.tryFolder()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	config, core := filepath.Join(folder, "config"), filepath.Join(folder, "core")
	if err := os.WriteFile(config, []byte(grubConfig), 0o600); err != nil {
		return "", err
	}
	args := []string{"--directory", grubFolder, "--format", "i386-pc", "--prefix", "/", "--config", config, "--output", core}
	if said, err := proc.Run(exec.CommandContext(ctx, grubMaker, append(args, grubModules...)...)); err != nil {
		return "", fmt.Errorf("%s: %w: %s", grubMaker, err, said)
	}
	disk, err := os.ReadFile(filepath.Join(grubFolder, "boot.img"))
	if err != nil {
		return "", err
	}
	rest, err := os.ReadFile(core)
	if err != nil {
		return "", err
	}
	if disk = append(disk, rest...); len(disk) > loaderSize {
		return "", fmt.Errorf("GRUB has %d bytes; there is room for %d", len(disk), loaderSize)
	}
	disk = append(disk, make([]byte, loaderSize-len(disk))...)
	sum := sha256.Sum256(disk)
	return keep(filepath.Join(d.State, initramfsDir), hex.EncodeToString(sum[:16])+".grub", func(w io.Writer) error {
		_, err := w.Write(disk)
		return err
	})
}

// bootWord is a word of the kernel's command line that GRUB passes on as it is.
var bootWord = regexp.MustCompile(`^[A-Za-z0-9_.,:=/+@%-]+$`)

// configure makes the disk with GRUB's configuration in the guest's folder.
func (b *bootDisks) configure(folder, cmdline string) error {
	words := strings.Fields(cmdline)
	for _, w := range words {
		if !bootWord.MatchString(w) {
			return fmt.Errorf("%q cannot be on the command line of a kernel that GRUB boots", w)
		}
	}
	text := fmt.Sprintf("search --set=root --file /%s\nlinux /%[1]s %s\ninitrd /%s\nboot\n", bootKernel, strings.Join(words, " "), bootInitrd)
	b.config = filepath.Join(folder, "boot.cpio")
	f, err := os.OpenFile(b.config, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeCPIO(f, []file{{name: bootConfig, mode: unix.S_IFREG | 0o644, data: []byte(text)}}); err != nil {
		return err
	}
	return errors.Join(f.Truncate(configSize), f.Close())
}

// args are QEMU's arguments for the disks.
func (b bootDisks) args() (args []string) {
	for i, path := range []string{b.loader, b.kernel, b.config} {
		device := fmt.Sprintf("virtio-blk-pci,drive=boot%d", i)
		if i == 0 {
			device += ",bootindex=0"
		}
		args = append(args, "-drive", fmt.Sprintf("if=none,id=boot%d,format=raw,readonly=on,file=%s", i, strings.ReplaceAll(path, ",", ",,")), "-device", device)
	}
	return args
}
