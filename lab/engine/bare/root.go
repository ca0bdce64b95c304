//go:build linux

package bare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/ruler"
)

// Mounts makes the guest's root at root, below the guest's folder. All mounts are private: those of the host, and
// other guests, never see them come and go. base, where it is not nil, mounts something of the image that takes what the
// guest writes, in place of the read-only image and the folders beside it (package layers).
func Mounts(ctx context.Context, folder, root string, s engine.Spec, base func() error) error {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{root, 0o755}, {filepath.Join(folder, "scratch"), 0o777 | os.ModeSticky}, {filepath.Join(folder, "tmp"), 0o777 | os.ModeSticky}} {
		if err := os.Mkdir(d.path, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(d.path, d.mode); err != nil { // mkdir's mode is cut by the umask
			return err
		}
	}
	m := mounter{ctx: ctx}
	if base != nil {
		m.do("the root at "+root, base)
	} else {
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
	for _, d := range s.Devices.Mounts {
		m.bind(d.Host, root, d.Path, d.ReadOnly)
	}
	return m.err
}

// mounter does one thing after the other until one fails.
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

// bind shows the folder or file from at path in root.
func (m *mounter) bind(from, root, path string, readonly bool) {
	m.do(fmt.Sprintf("bind mount of %s at %s%s", from, root, path), func() error {
		if err := on(root, path, func(target string) error { return unix.Mount(from, target, "", unix.MS_BIND, "") }); err != nil {
			return err
		}
		return on(root, path, func(target string) error {
			if err := unix.Mount("", target, "", unix.MS_PRIVATE, ""); err != nil || !readonly {
				return err
			}
			// Only read-only: flags of the store's own mount (nosuid, noexec) do not hold in a container's overlay
			// of the same folder either, and must not hold here.
			return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		})
	})
}

// mount makes a new file system at path in root.
func (m *mounter) mount(kind, root, path string, flags uintptr, data string) {
	m.do(fmt.Sprintf("mount of %s at %s%s", kind, root, path), func() error {
		return on(root, path, func(target string) error { return unix.Mount(kind, target, kind, flags, data) })
	})
}

// on calls f with a path that is the folder or file path in root and cannot be anything else: an image may hold a link
// where one is expected, and a mount through it would land on the host.
func on(root, path string, f func(target string) error) error {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, "./"+path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return fmt.Errorf("it must be in the image, and no link: %w", err)
	}
	defer unix.Close(fd)
	return f(fmt.Sprintf("/proc/self/fd/%d", fd))
}
