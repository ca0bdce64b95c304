//go:build linux

package trace

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"tare/notebook"
)

// The tracer of CPU quotas.
var _ = add(tracer{name: notebook.TracerBandwidth, count: files.bandwidth})

// Names in the kernel's files, and the figures' names here.
var (
	bandwidthV1 = map[string]string{"nr_periods": "periods", "nr_throttled": "throttled_periods", "throttled_time": "throttled_s"}
	bandwidthV2 = map[string]string{"nr_periods": "periods", "nr_throttled": "throttled_periods", "throttled_usec": "throttled_s"}
)

// bandwidth reads cpu.stat of the nearest cgroup of the guest that has a quota. Without one, nothing is throttled and nothing is
// missing.
func (f files) bandwidth(c *counters, t counted) error {
	if t.PID == 0 {
		return nil
	}
	dir, err := f.group(t.PID, "cpu")
	if err != nil || dir == "" {
		return err
	}
	mine, err := f.group(f.self, "cpu")
	if err != nil {
		return err
	}
	found := false
	for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(f.FS, strings.TrimPrefix(dir, "/")+"/cgroup.procs"); gone(err) {
			break // above the hierarchy
		} else if err != nil {
			return err
		}
		version, err := f.quota(dir)
		if err != nil {
			return err
		}
		if version == 0 {
			continue
		}
		if found {
			c.missing.add(notebook.TracerBandwidth, notebook.Say("quota-above-uncounted", "cgroup", dir))
			continue
		}
		found = true
		want, unit := bandwidthV1, uint64(time.Nanosecond)
		if version == 2 {
			want, unit = bandwidthV2, uint64(time.Microsecond)
		}
		n, err := f.take(dir+"/cpu.stat", want, unit)
		if err != nil {
			return err
		}
		c.figures = append(c.figures, counts{notebook.TracerBandwidth, dir + "/cpu.stat", n, false})
		if holds(dir, mine) {
			c.missing.add(notebook.TracerBandwidth, notebook.Say("quota-shared-with-tare", "cgroup", dir))
		}
	}
	return nil
}

// quota returns the version of the cgroup if it has a CPU quota; otherwise 0.
func (f files) quota(dir string) (version int, err error) {
	for file, version := range map[string]int{"cpu.max": 2, "cpu.cfs_quota_us": 1} {
		text, err := f.text(dir + "/" + file)
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		q, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		if q == "max" || q == "-1" {
			return 0, nil
		}
		if n, err := strconv.ParseUint(q, 10, 63); err != nil || n == 0 {
			return 0, fmt.Errorf("%s/%s: %.60q: must be a quota in µs, max or -1", dir, file, text)
		}
		return version, nil
	}
	return 0, nil
}
