//go:build linux

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tare/lab/device"
	"tare/lab/ruler"
)

// MakeDevices makes the device nodes and links of every container in a guest's /dev. A guest's /dev is never the host's, because a
// workload must not reach the host's disks.
func MakeDevices(dev string) error {
	for _, d := range []struct {
		name         string
		major, minor uint32
	}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}} {
		path := filepath.Join(dev, d.name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // sets the mode whatever the umask
			return err
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// given is a device of the host in the form of a container's configuration, and the rule that lets the container's cgroup use it.
func given(n device.Node) (specs.LinuxDevice, specs.LinuxDeviceCgroup) {
	kind, major, minor := "c", int64(n.Major), int64(n.Minor)
	if n.Block {
		kind = "b"
	}
	return specs.LinuxDevice{Path: n.Path, Type: kind, Major: major, Minor: minor, FileMode: &n.Mode, UID: &n.UID, GID: &n.GID},
		specs.LinuxDeviceCgroup{Allow: true, Type: kind, Major: &major, Minor: &minor, Access: n.Access}
}

// mounts are the mounts that come with devices.
func mounts(all []device.Mount) (out []specs.Mount) {
	for _, m := range all {
		options := m.Options
		if !slices.Contains(options, "bind") && !slices.Contains(options, "rbind") {
			options = append(slices.Clone(options), "rbind")
		}
		out = append(out, specs.Mount{Source: m.Host, Destination: m.Path, Type: "bind", Options: options})
	}
	return out
}

// hooks are the programs that must run while a container is made; nil: none. The ruler's program, at this path on the host, becomes
// each of them: see [ruler.HookArgs].
func hooks(all []device.Hook, program string) *specs.Hooks {
	if len(all) == 0 {
		return nil
	}
	var h specs.Hooks
	for _, of := range all {
		read := of.Hook
		read.Path, read.Args = program, ruler.HookArgs(of.Path, of.Args)
		switch of.When {
		case "prestart", "createRuntime": // two names for one moment; the runtime specification has given up the first
			h.CreateRuntime = append(h.CreateRuntime, read)
		case "createContainer":
			h.CreateContainer = append(h.CreateContainer, read)
		case "startContainer": // the one that runs in the container, with its root
			read.Path = ruler.Program
			h.StartContainer = append(h.StartContainer, read)
		case "poststart":
			h.Poststart = append(h.Poststart, read)
		case "poststop":
			h.Poststop = append(h.Poststop, read)
		}
	}
	return &h
}
