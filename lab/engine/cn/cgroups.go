//go:build linux

package cn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/lab/cgroup"
)

// removeCgroups kills what is in the cgroup of that name in every hierarchy, and removes it.
func removeCgroups(ctx context.Context, name string) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range hs {
		errs = append(errs, cgroup.Remove(ctx, filepath.Join(h.at, name)))
	}
	return errors.Join(errs...)
}

// hierarchy is a mounted hierarchy of cgroups.
type hierarchy struct {
	at      string // mount point
	v2      bool
	options []string // v1: among them the controllers
}

type mounted []hierarchy

// hierarchies lists those that are mounted.
func hierarchies() (mounted, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseHierarchies(string(info))
}

func parseHierarchies(info string) (mounted, error) {
	var hs mounted
	for line := range strings.Lines(info) {
		mount, super, ok := strings.Cut(strings.TrimSpace(line), " - ")
		m, s := strings.Fields(mount), strings.Fields(super)
		if !ok || len(m) < 5 || len(s) < 3 {
			return nil, fmt.Errorf("/proc/self/mountinfo: %q: want \"… - TYPE SOURCE OPTIONS\"", line)
		}
		if s[0] == "cgroup" || s[0] == "cgroup2" {
			hs = append(hs, hierarchy{m[4], s[0] == "cgroup2", strings.Split(s[2], ",")})
		}
	}
	return hs, nil
}

// unified says whether all controllers are on cgroup v2.
func (hs mounted) unified() bool { return hs.v1("memory") == nil }

func (hs mounted) v1(controller string) *hierarchy {
	for _, h := range hs {
		for _, o := range h.options {
			if !h.v2 && o == controller {
				return &h
			}
		}
	}
	return nil
}

// accountsSwap says whether the kernel can limit a cgroup's swap.
func (hs mounted) accountsSwap() bool {
	file := "/proc/swaps" // cgroup v2 accounts it wherever there is swap at all
	if h := hs.v1("memory"); h != nil {
		file = filepath.Join(h.at, "memory.memsw.limit_in_bytes")
	}
	_, err := os.Stat(file)
	return err == nil
}
