package cgroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Throttled returns how long CPU quotas have held back process pid's cgroup and those above it so far, summed over CPUs, as the
// kernel counts. It is 0 where no quota limits the process.
func Throttled(pid int) (time.Duration, error) {
	d, err := host.throttled(strconv.Itoa(pid))
	if err != nil {
		return 0, fmt.Errorf("cgroup: how long process %d was throttled: %w", pid, err)
	}
	return d, nil
}

func (s system) throttled(pid string) (sum time.Duration, err error) {
	g, err := s.find(pid, "cpu")
	if err != nil {
		return 0, err
	}
	for _, dir := range g.upwards() {
		q, err := s.quota(dir, g.Version)
		if err != nil {
			return 0, err
		}
		if q == 0 {
			continue
		}
		if err := s.parse(dir, "cpu.stat", func(text string) error {
			d, err := parseThrottled(text)
			sum += d
			return err
		}); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// parseThrottled parses throttled_usec of version 2's cpu.stat, or throttled_time, in nanoseconds, of version 1's.
func parseThrottled(text string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != "throttled_usec" && f[0] != "throttled_time" {
			continue
		}
		unit := time.Nanosecond
		if f[0] == "throttled_usec" {
			unit = time.Microsecond
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 || n > int64(1<<62/unit) {
			return 0, fmt.Errorf("%.60q: %s must be a time", line, f[0])
		}
		return time.Duration(n) * unit, nil
	}
	return 0, fmt.Errorf("%.60q: has neither throttled_usec nor throttled_time", text)
}
