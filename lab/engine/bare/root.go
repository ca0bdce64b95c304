//go:build linux

package bare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/ruler"
)

// Mounts makes the guest's root at root, below the guest's folder. All mounts are private, so those of the host and other guests
// never see them. base, if not nil, mounts a writable root made from the image, instead of the read-only image and its writable
// folders (package layers).
//
// Where the image itself has no room for what comes with the guest's devices (layered), the root is the image with a layer over it.
// The layer is writable until it is complete and the devices' hooks have run, and then read-only.
func Mounts(ctx context.Context, folder, root string, s engine.Spec, base func() error) error {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{root, 0o755}, {filepath.Join(folder, "scratch"), 0o777 | os.ModeSticky}, {filepath.Join(folder, "tmp"), 0o777 | os.ModeSticky}} {
		if err := os.Mkdir(d.path, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(d.path, d.mode); err != nil { // the umask reduces mkdir's mode
			return err
		}
	}
	m := mounter{ctx: ctx}
	layer, err := layered(s)
	switch {
	case err != nil:
		return err
	case base != nil:
		m.do("the root at "+root, base)
	case layer:
		m.do("the root at "+root, func() error { return engine.Overlay(folder, root, s.Image.Dir) })
	default:
		m.bind(s.Image.Dir, root, "", true)
	}
	if s.Work != nil {
		m.bind(s.Work.Dir, root, ruler.WorkDir, true)
	}
	if base == nil {
		m.bind(filepath.Join(folder, "scratch"), root, ruler.ScratchDir, false)
		m.bind(filepath.Join(folder, "tmp"), root, "/tmp", false)
	}
	m.mount("proc", root, "/proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	m.mount("sysfs", root, "/sys", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	m.mount("tmpfs", root, "/dev", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k")
	m.do("devices in "+root+"/dev", func() error {
		dev := filepath.Join(root, "dev")
		return errors.Join(config.MakeDevices(dev), device.Make(dev, s.Devices.Nodes), os.Mkdir(filepath.Join(dev, "pts"), 0o755), os.Mkdir(filepath.Join(dev, "shm"), 0o755))
	})
	m.mount("devpts", root, "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
	m.mount("tmpfs", root, "/dev/shm", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777")
	for _, d := range s.Mounts() {
		m.give(d, root)
	}
	if layer && base == nil {
		m.do("hooks", func() error { return device.Run(ctx, s.Devices.Hooks, s.ID, root, folder) })
		m.do("the root at "+root, func() error { return unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "") })
	}
	return m.err
}

// layered reports whether the guest's devices need a root that is writable while it is made: the image has no place for their
// files, or hooks write there.
func layered(s engine.Spec) (bool, error) {
	if len(s.Devices.Hooks) > 0 {
		return true, nil
	}
	for _, m := range s.Mounts() {
		err := at(s.Image.Dir, m.Path, seen, func(string) error { return nil })
		if errors.Is(err, unix.ENOENT) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s in the image: %w", m.Path, err)
		}
	}
	return false, nil
}

// mounter does one step after the other until one fails.
type mounter struct {
	ctx context.Context
	err error
}

func (m *mounter) do(what string, f func() error) {
	if m.err == nil {
		m.err = m.ctx.Err()
	}
	if m.err != nil {
		return
	}
	if err := f(); err != nil {
		m.err = fmt.Errorf("%s: %w", what, err)
	}
}

// bind mounts the folder or file from at path in root.
func (m *mounter) bind(from, root, path string, readonly bool) {
	m.do(fmt.Sprintf("bind mount of %s at %s%s", from, root, path), func() error { return bind(from, root, path, itself, readonly) })
}

// give mounts a file of a device at a place that it makes if needed. A description's path may lead through the image's own links,
// such as /lib/x where /lib is a link.
func (m *mounter) give(d device.Mount, root string) {
	m.do(fmt.Sprintf("bind mount of %s at %s%s", d.Host, root, d.Path), func() error {
		is, err := os.Stat(d.Host)
		if err != nil {
			return err
		}
		if err := place(root, d.Path, is.IsDir()); err != nil {
			return fmt.Errorf("making its place: %w", err)
		}
		return bind(d.Host, root, d.Path, seen, d.ReadOnly)
	})
}

func bind(from, root, path string, resolve uint64, readonly bool) error {
	if err := at(root, path, resolve, func(target string) error { return unix.Mount(from, target, "", unix.MS_BIND, "") }); err != nil {
		return err
	}
	return at(root, path, resolve, func(target string) error {
		if err := unix.Mount("", target, "", unix.MS_PRIVATE, ""); err != nil || !readonly {
			return err
		}
		// Only read-only: flags of the store's own mount (nosuid, noexec) do not apply in a container's overlay of the same folder,
		// and must not apply here.
		return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	})
}

// place makes an empty file or folder at path in root, and the folders above it, where they are missing.
func place(root, path string, folder bool) error {
	names := strings.Split(strings.Trim(path, "/"), "/")
	for i, name := range names {
		err := at(root, strings.Join(names[:i+1], "/"), seen, func(string) error { return nil })
		if err == nil {
			continue
		}
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		above := strings.Join(names[:i], "/")
		if err := at(root, above, seen, func(dir string) error { return add(dir, name, folder || i < len(names)-1) }); err != nil {
			return fmt.Errorf("%s in /%s: %w", name, above, err)
		}
	}
	return nil
}

// add makes an empty file or folder in a folder that has nothing of that name.
func add(dir, name string, folder bool) error {
	in, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	mode := os.FileMode(0o644)
	if folder {
		mode = 0o755
		err = in.Mkdir(name, mode)
	} else {
		var f *os.File
		if f, err = in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err == nil {
			err = f.Close()
		}
	}
	if err != nil { // a dangling link also has that name
		return err
	}
	return in.Chmod(name, mode) // sets the mode whatever the umask
}

// mount makes a new file system at path in root.
func (m *mounter) mount(kind, root, path string, flags uintptr, data string) {
	m.do(fmt.Sprintf("mount of %s at %s%s", kind, root, path), func() error {
		return on(root, path, func(target string) error { return unix.Mount(kind, target, kind, flags, data) })
	})
}

// How a path in a root is resolved: without any link in it, or as programs in the guest do, whose links always end in the root.
const (
	seen   = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	itself = seen | unix.RESOLVE_NO_SYMLINKS
)

// on calls f with a path that is the folder or file path in root and nothing else: an image may have a link there, and a mount
// through it would land on the host.
func on(root, path string, f func(target string) error) error {
	return at(root, path, itself, f)
}

// at is on with a way to resolve the path.
func at(root, path string, resolve uint64, f func(target string) error) error {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, "./"+path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil && resolve == itself {
		return fmt.Errorf("it must be in the image and must not be a link: %w", err)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fmt.Sprintf("/proc/self/fd/%d", fd))
}
