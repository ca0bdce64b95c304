//go:build linux

package proc

import (
	"fmt"
	"strconv"
	"strings"
)

// NetDevice is what a network device has carried so far.
type NetDevice struct {
	Name                           string
	ReceivedBytes, ReceivedPackets uint64
	SentBytes, SentPackets         uint64
}

// NetDevices are the devices of a process's network (/proc/PID/net/dev, proc_pid_net(5)).
func (t Tree) NetDevices(pid int) ([]NetDevice, error) {
	return parsed(t, fmt.Sprintf("/proc/%d/net/dev", pid), parseNetDevices)
}

// parseNetDevices parses two header lines, and one line for each device.
func parseNetDevices(text string) (all []NetDevice, err error) {
	number := 0
	for line := range strings.Lines(text) {
		if number++; number <= 2 {
			continue
		}
		// A device's name may contain anything except white space and '/', including colons.
		i := strings.LastIndexByte(line, ':')
		f := strings.Fields(line[i+1:])
		d := NetDevice{Name: strings.TrimSpace(line[:max(i, 0)])}
		if d.Name == "" || len(f) < 10 {
			return nil, fmt.Errorf("line %d: %.100q: must be a device and at least 10 numbers", number, line)
		}
		for i, to := range map[int]*uint64{0: &d.ReceivedBytes, 1: &d.ReceivedPackets, 8: &d.SentBytes, 9: &d.SentPackets} {
			if *to, err = strconv.ParseUint(f[i], 10, 63); err != nil {
				return nil, fmt.Errorf("line %d: %.100q: %.30q must be a number", number, line, f[i])
			}
		}
		all = append(all, d)
	}
	return all, nil
}
