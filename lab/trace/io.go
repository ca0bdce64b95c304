//go:build linux

package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"tare/notebook"
)

// The tracer of block devices, as far as the kernel counts for a cgroup or a process, and of networks.
var _ = add(tracer{name: notebook.TracerIO, count: func(f files, c *counters, t counted) error {
	return errors.Join(f.blocks(c, t), f.processIO(c, t), f.network(c, t))
}})

// blocks reads what the guest's own cgroup has done on block devices. On newer kernels a version 1 cgroup counts only on devices
// for which some cgroup has a limit, and is empty without one.
func (f files) blocks(c *counters, t counted) error {
	dir, err := f.ownGroup(t, "blkio")
	if err != nil || dir == "" {
		return err
	}
	n := map[string]uint64{}
	put := func(device, name string, v uint64) error {
		as, err := f.device(device)
		if err == nil {
			n[as+"."+name] = v
		}
		return err
	}
	text, err := f.text(dir + "/io.stat")
	switch {
	case err == nil:
		if err := parseIOStat(text, put); err != nil {
			return fmt.Errorf("%s/io.stat: %w", dir, err)
		}
	case !gone(err):
		return err
	default:
		for file, names := range map[string][2]string{
			"blkio.throttle.io_serviced":      {"reads", "writes"},
			"blkio.throttle.io_service_bytes": {"read_bytes", "written_bytes"},
		} {
			text, err := f.text(dir + "/" + file + "_recursive") // including the cgroups below
			if gone(err) {
				text, err = f.text(dir + "/" + file)
			}
			if gone(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := parseBlkio(text, names, put); err != nil {
				return fmt.Errorf("%s/%s: %w", dir, file, err)
			}
		}
	}
	c.fallback = append(c.fallback, counts{notebook.TracerIO, dir, n, false})
	return nil
}

// device is the name of a block device by its number "MAJOR:MINOR".
func (f files) device(number string) (string, error) {
	file := "/sys/dev/block/" + number + "/uevent"
	text, err := f.text(file)
	if gone(err) {
		return number, nil // the device was removed; its counts are still the guest's
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok && name != "" {
			return name, nil
		}
	}
	return number, nil
}

// processIO reads the bytes that the guest's processes, and their waited-for children, have made devices read, or write later.
func (f files) processIO(c *counters, t counted) error {
	groups, err := f.processes(t)
	if err != nil {
		return err
	}
	sum, any := map[string]uint64{"read_bytes": 0, "written_bytes": 0}, false
	for _, g := range groups {
		disk, err := f.IO(string(g))
		if gone(err) {
			continue // it has ended, or the kernel does not count it
		}
		if err != nil {
			return err
		}
		any = true
		sum["read_bytes"] += disk.Read
		sum["written_bytes"] += max(disk.Written, disk.Cancelled) - disk.Cancelled
	}
	if any {
		c.fallback = append(c.fallback, counts{notebook.TracerIO, "the guest's processes", sum, false})
	}
	return nil
}

// network reads the devices of the guest's network namespace.
func (f files) network(c *counters, t counted) error {
	if t.PID == 0 {
		return errors.New("the network: no process of the guest is known, so its namespace cannot be found")
	}
	devices, err := f.NetDevices(t.PID)
	if err != nil {
		return err
	}
	n := map[string]uint64{}
	for _, d := range devices {
		n[d.Name+".received_bytes"], n[d.Name+".received_packets"] = d.ReceivedBytes, d.ReceivedPackets
		n[d.Name+".sent_bytes"], n[d.Name+".sent_packets"] = d.SentBytes, d.SentPackets
	}
	its, err := fs.ReadLink(f.FS, fmt.Sprintf("proc/%d/ns/net", t.PID))
	if err != nil {
		return err
	}
	mine, err := fs.ReadLink(f.FS, fmt.Sprintf("proc/%d/ns/net", f.self))
	if err != nil {
		return err
	}
	whole := its == mine
	if whole {
		c.missing.add(notebook.TracerIO, notebook.Say("network-of-whole-host"))
	}
	c.figures = append(c.figures, counts{notebook.TracerIO, "network " + its, n, whole})
	return nil
}

// parseBlkio parses a version 1 file of lines "MAJOR:MINOR Kind number", with "Total number" at the end, and passes those of the
// kinds Read and Write to put under the names.
func parseBlkio(text string, names [2]string, put func(device, name string, n uint64) error) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "Total" {
			continue
		}
		if len(f) != 3 || !isDevice(f[0]) {
			return fmt.Errorf("%.100q: must be a device's number, a kind and a number", line)
		}
		n, err := strconv.ParseUint(f[2], 10, 63)
		if err != nil {
			return fmt.Errorf("%.100q: must have a number", line)
		}
		switch f[1] {
		case "Read":
			err = put(f[0], names[0], n)
		case "Write":
			err = put(f[0], names[1], n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ioNames are those in version 2's io.stat.
var ioNames = map[string]string{"rios": "reads", "rbytes": "read_bytes", "wios": "writes", "wbytes": "written_bytes"}

// parseIOStat parses io.stat: lines "MAJOR:MINOR key=number …". A line may have only a device. The value of a key that some policy
// of the kernel adds may not be a number.
func parseIOStat(text string, put func(device, name string, n uint64) error) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if !isDevice(f[0]) {
			return fmt.Errorf("%.100q: must begin with a device's number", line)
		}
		for _, pair := range f[1:] {
			key, value, _ := strings.Cut(pair, "=")
			name := ioNames[key]
			if name == "" {
				continue
			}
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil {
				return fmt.Errorf("%.100q: must have a number after %s=", line, key)
			}
			if err := put(f[0], name, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// isDevice reports whether s is a device's "MAJOR:MINOR", and nothing that leads elsewhere in a path.
func isDevice(s string) bool {
	major, minor, ok := strings.Cut(s, ":")
	_, err := strconv.ParseUint(major, 10, 32)
	_, err2 := strconv.ParseUint(minor, 10, 32)
	return ok && err == nil && err2 == nil
}
