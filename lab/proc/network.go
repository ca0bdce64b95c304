//go:build linux

package proc

import (
	"fmt"
	"strconv"
	"strings"
)

// NetDevice is what a device of a network has carried so far.
type NetDevice struct {
	Name                           string
	ReceivedBytes, ReceivedPackets uint64
	SentBytes, SentPackets         uint64
}

// NetDevices are those of a process's network (/proc/PID/net/dev, proc_pid_net(5)).
func (t Tree) NetDevices(pid int) ([]NetDevice, error) {
	file := fmt.Sprintf("/proc/%d/net/dev", pid)
	text, err := t.Read(file)
	if err != nil {
		return nil, err
	}
	all, err := parseNetDevices(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// parseNetDevices reads two lines of headings, and one for each device.
func parseNetDevices(text string) (all []NetDevice, err error) {
	number := 0
	for line := range strings.Lines(text) {
		if number++; number <= 2 {
			continue
		}
		// A device's name may have anything but white space and '/' in it, colons too.
		i := strings.LastIndexByte(line, ':')
		f := strings.Fields(line[i+1:])
		d := NetDevice{Name: strings.TrimSpace(line[:max(i, 0)])}
		if d.Name == "" || len(f) < 10 {
			return nil, fmt.Errorf("line %d: %.100q: expected a device and 10 numbers or more", number, line)
		}
		for i, to := range map[int]*uint64{0: &d.ReceivedBytes, 1: &d.ReceivedPackets, 8: &d.SentBytes, 9: &d.SentPackets} {
			if *to, err = strconv.ParseUint(f[i], 10, 63); err != nil {
				return nil, fmt.Errorf("line %d: %.100q: expected a number, not %.30q", number, line, f[i])
			}
		}
		all = append(all, d)
	}
	return all, nil
}
