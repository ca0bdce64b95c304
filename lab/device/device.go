//go:build linux

// Package device finds the devices that a host describes by the Container Device Interface (CDI,
// cncf-tags/container-device-interface), and says what a guest gets for a device. Others write the descriptions: a device's vendor,
// or its user.
package device

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"
)

// Dirs are CDI's folders of descriptions. A later folder overrides an earlier one.
var Dirs = cdi.DefaultSpecDirs

// Node is a device file for a guest.
type Node struct {
	Host         string // on the host
	Path         string // in the guest, below /dev
	Block        bool   // otherwise a character device
	Major, Minor uint32
	Mode         os.FileMode // of the file
	UID, GID     uint32
	Access       string // the guest's rights to the device: some of r, w and m
}

// Mount is a file or folder of the host for a guest.
type Mount struct {
	Host, Path string
	ReadOnly   bool
	Options    []string // options of the bind mount, as in the description
}

// Edits are what a guest gets for its devices. The zero value is nothing.
type Edits struct {
	Names  []string // of the devices
	Env    []string // NAME=value, for everything that runs in the guest
	Nodes  []Node
	Mounts []Mount
	Hooks  []Hook   // programs of the host that must run while the guest is made
	Dirs   []string // folders with the descriptions
}

// None reports whether the edits are for no device.
func (e Edits) None() bool { return len(e.Names) == 0 }

// String names the devices in the form of a treatment (notebook.FactorDevices).
func (e Edits) String() string { return strings.Join(e.Names, ",") }

// Hook is a program of the host, and when it must run while a container is made, by the name in OCI's runtime specification.
type Hook struct {
	When string
	specs.Hook
}

// Check checks a device's name. It must be VENDOR/CLASS=DEVICE, as in nvidia.com/gpu=0.
func Check(name string) error {
	if _, _, _, err := parser.ParseQualifiedName(name); err != nil {
		return fmt.Errorf("%q is not a CDI device name; write VENDOR/CLASS=DEVICE: %w", name, err)
	}
	return nil
}

// Find returns what a guest gets for the devices of these names, by the descriptions in the folders. The error names a device
// without a description, or says what is wrong in its description.
func Find(dirs, names []string) (e Edits, err error) {
	all, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return e, fmt.Errorf("descriptions of devices (CDI) in %s: %w", strings.Join(dirs, ", "), err)
	}
	var edits cdi.ContainerEdits
	var seen []*cdi.Spec
	for _, name := range names {
		if err := Check(name); err != nil {
			return e, err
		}
		d := all.GetDevice(name)
		if d == nil {
			return e, missing(all, dirs, name)
		}
		if s := d.GetSpec(); !slices.Contains(seen, s) { // edits that apply to all devices of a description are added once
			seen = append(seen, s)
			edits.Append(&cdi.ContainerEdits{ContainerEdits: &s.ContainerEdits})
		}
		edits.Append(&cdi.ContainerEdits{ContainerEdits: &d.ContainerEdits})
	}
	var from []string
	for _, s := range seen {
		if dir := filepath.Dir(s.GetPath()); !slices.Contains(from, dir) {
			from = append(from, dir)
		}
	}
	if edits.ContainerEdits != nil {
		if e, err = read(edits.ContainerEdits); err != nil {
			return Edits{}, fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
		}
	}
	e.Names, e.Dirs = names, from
	return e, nil
}

// List names the devices that the folders describe. broken says what is wrong in files that cannot be read; such files describe
// nothing.
func List(dirs []string) (names []string, broken []error) {
	all, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, []error{err}
	}
	return all.ListDevices(), wrong(all)
}

// wrong returns the errors in the files that were read, in the files' order.
func wrong(all *cdi.Cache) (broken []error) {
	of := all.GetErrors()
	var files []string
	for file := range of {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		for _, err := range of[file] {
			text := strings.Join(strings.Fields(err.Error()), " ")
			if !strings.Contains(text, file) {
				text = file + ": " + text
			}
			broken = append(broken, errors.New(text))
		}
	}
	return broken
}

// missing says why no device has this name.
func missing(all *cdi.Cache, dirs []string, name string) error {
	var parts []string
	if known := all.ListDevices(); len(known) > 0 {
		const most = 8
		more := ""
		if len(known) > most {
			more = fmt.Sprintf(" and %d more", len(known)-most)
		}
		parts = append(parts, "the described devices are "+strings.Join(known[:min(len(known), most)], ", ")+more)
	} else {
		parts = append(parts, "no device is described in "+strings.Join(dirs, " or ")+"; the vendor's tool writes a description there, for example nvidia-ctk cdi generate")
	}
	for _, err := range wrong(all) {
		parts = append(parts, err.Error())
	}
	return fmt.Errorf("this host has no device %s: %s", name, strings.Join(parts, "; "))
}

// read returns the edits of a description, and refuses those that guests cannot have.
func read(c *cdispecs.ContainerEdits) (e Edits, err error) {
	switch {
	case c.IntelRdt != nil:
		return e, errors.New("its description wants a CPU cache class (intelRdt), which Tare does not support")
	case len(c.NetDevices) > 0:
		return e, errors.New("its description wants a network device, which Tare does not support")
	}
	// Additional groups of the process (additionalGids), which NVIDIA's descriptions have for files that only root and a group may
	// use, do not matter: guests run as root.
	e.Env = c.Env
	for _, d := range c.DeviceNodes {
		n, err := node(d)
		if err != nil {
			return Edits{}, err
		}
		e.Nodes = append(e.Nodes, n)
	}
	for _, m := range c.Mounts {
		if m.Type != "" && m.Type != "bind" && m.Type != "none" {
			return Edits{}, fmt.Errorf("its description wants a mount of type %q at %s; only bind mounts of host files and folders are supported", m.Type, m.ContainerPath)
		}
		if p := m.ContainerPath; p != path.Clean(p) || !path.IsAbs(p) || p == "/" {
			return Edits{}, fmt.Errorf("its description wants a mount at %q; must be a path below the root", p)
		}
		if _, err := os.Stat(m.HostPath); err != nil {
			return Edits{}, fmt.Errorf("its description wants a mount of a missing file: %w", err)
		}
		e.Mounts = append(e.Mounts, Mount{Host: m.HostPath, Path: m.ContainerPath, ReadOnly: slices.Contains(m.Options, "ro"), Options: m.Options})
	}
	for _, h := range c.Hooks {
		if !filepath.IsAbs(h.Path) {
			return Edits{}, fmt.Errorf("its description wants a hook that runs %q; must be a program's absolute path", h.Path)
		}
		e.Hooks = append(e.Hooks, Hook{When: h.HookName, Hook: specs.Hook{Path: h.Path, Args: h.Args, Env: h.Env, Timeout: h.Timeout}})
	}
	return e, nil
}

// node is a device node. It reads what the description omits from the host's device.
func node(d *cdispecs.DeviceNode) (n Node, err error) {
	n = Node{Host: d.HostPath, Path: d.Path, Access: d.Permissions}
	if n.Host == "" {
		n.Host = n.Path
	}
	if n.Path != path.Clean(n.Path) || !strings.HasPrefix(n.Path, "/dev/") {
		return n, fmt.Errorf("its description wants a device file at %q; must be a path below /dev", n.Path)
	}
	if n.Access == "" {
		n.Access = "rwm"
	}
	var is unix.Stat_t
	if err := unix.Stat(n.Host, &is); err != nil {
		return n, fmt.Errorf("its description names %s: %w", n.Host, err)
	}
	kind := is.Mode & unix.S_IFMT
	if kind != unix.S_IFCHR && kind != unix.S_IFBLK {
		return n, fmt.Errorf("its description names %s, which is not a device", n.Host)
	}
	n.Block = kind == unix.S_IFBLK
	n.Major, n.Minor = unix.Major(is.Rdev), unix.Minor(is.Rdev)
	if said := d.Type; said == "b" && !n.Block || (said == "c" || said == "u") && n.Block {
		return n, fmt.Errorf("its description says that %s is of type %s, but it is not", n.Host, said)
	}
	if (d.Major != 0 || d.Minor != 0) && (int64(n.Major) != d.Major || int64(n.Minor) != d.Minor) {
		return n, fmt.Errorf("its description says that %s is device %d:%d, but it is %d:%d: the description is outdated; generate it again", n.Host, d.Major, d.Minor, n.Major, n.Minor)
	}
	n.Mode, n.UID, n.GID = os.FileMode(is.Mode&0o777), is.Uid, is.Gid
	if d.FileMode != nil {
		n.Mode = d.FileMode.Perm()
	}
	if d.UID != nil {
		n.UID = *d.UID
	}
	if d.GID != nil {
		n.GID = *d.GID
	}
	return n, nil
}

// Make makes the device files in a guest's own /dev. dev is its path on the host. Nobody else may write there at the same time.
func Make(dev string, nodes []Node) error {
	root, err := os.OpenRoot(dev)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, n := range nodes {
		if err := n.make(root); err != nil {
			return fmt.Errorf("make %s: %w", n.Path, err)
		}
	}
	return nil
}

func (n Node) make(root *os.Root) error {
	dir, name := path.Split(strings.TrimPrefix(n.Path, "/dev/"))
	dir = path.Clean(dir) // "." if the path has no folder
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	in, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	fd := int(in.Fd())
	kind := uint32(unix.S_IFCHR)
	if n.Block {
		kind = unix.S_IFBLK
	}
	if err := unix.Mknodat(fd, name, kind|uint32(n.Mode), int(unix.Mkdev(n.Major, n.Minor))); err != nil {
		return err
	}
	if err := unix.Fchownat(fd, name, int(n.UID), int(n.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return unix.Fchmodat(fd, name, uint32(n.Mode), 0) // sets the mode whatever the umask; name cannot be a link, because it was made here
}
