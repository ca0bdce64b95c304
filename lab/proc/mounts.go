//go:build linux

package proc

import (
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Mounts lists the mounts in this process's mount namespace, in the order of mounting.
func (t Tree) Mounts() ([]*mountinfo.Info, error) {
	const file = "/proc/self/mountinfo"
	text, err := t.Read(file)
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(text), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return mounts, nil
}

// MountsBelow lists the mount points at and below dir, a path without symbolic links, in the order of mounting. A mount point with
// several mounts is listed as often.
func MountsBelow(dir string) ([]string, error) {
	mounts, err := Host.Mounts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range mounts {
		if within(dir, m.Mountpoint) {
			found = append(found, m.Mountpoint)
		}
	}
	return found, nil
}
