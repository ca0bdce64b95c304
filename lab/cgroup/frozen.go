//go:build linux

package cgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// Frozen reports whether the freezer holds process pid: its cgroup or one above is frozen, as by docker pause.
func Frozen(pid int) (bool, error) {
	is, err := host.frozen(strconv.Itoa(pid))
	if err != nil {
		return false, fmt.Errorf("cgroup: freezer of process %d: %w", pid, err)
	}
	return is, nil
}

func (s system) frozen(pid string) (is bool, err error) {
	g, err := s.find(pid, "freezer")
	if err != nil || g.Dir == "" || g.Dir == g.Top { // the root cannot be frozen
		return false, err
	}
	if g.Version == 1 {
		err = s.parse(g.Dir, "freezer.state", func(text string) error {
			is = strings.TrimSpace(text) != "THAWED"
			return nil
		})
		return is, err
	}
	err = s.parse(g.Dir, "cgroup.events", func(text string) error {
		n, err := pairs(text)
		is = n["frozen"] == 1
		return err
	})
	return is, err
}
