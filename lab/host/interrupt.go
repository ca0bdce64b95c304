//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
	"tare/notebook"
)

// irqFolder contains a folder for each interrupt (the kernel's Documentation/core-api/irq/irq-affinity.rst).
const irqFolder = "/proc/irq"

// The files of an interrupt: the CPUs that may serve it, and the one among them that the kernel has chosen.
const (
	irqAllowed = "smp_affinity_list"
	irqServed  = "effective_affinity_list"
)

// affinity is the CPUs that serve an interrupt.
type affinity struct {
	Allowed string `json:"allowed"`
	Served  string `json:"served,omitempty"` // "": the kernel does not say
}

// interruptsOn reads, by number, the affinities of the interrupts that one of the CPUs serves or may serve. The kernel moves them
// away when the CPU goes offline, and does not move them back.
func interruptsOn(folder string, cpus []int) (map[int]affinity, error) {
	dirs, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without movable interrupts
	}
	if err != nil {
		return nil, err
	}
	all := map[int]affinity{}
	for _, d := range dirs {
		n, err := strconv.Atoi(d.Name())
		if err != nil {
			continue // default_smp_affinity, which does not change when a CPU goes
		}
		a, err := affinityOf(folder, n)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the interrupt is gone, or has no affinity
		}
		if err != nil {
			return nil, err
		}
		allowed, err := notebook.ParseCPUList(a.Allowed)
		served, err2 := notebook.ParseCPUList(a.Served)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("interrupt %d: %w", n, err)
		}
		if slices.ContainsFunc(slices.Concat(allowed, served), func(c int) bool { return slices.Contains(cpus, c) }) {
			all[n] = a
		}
	}
	return all, nil
}

func affinityOf(folder string, n int) (a affinity, err error) {
	dir := filepath.Join(folder, strconv.Itoa(n))
	if a.Allowed, err = readLine(filepath.Join(dir, irqAllowed)); err != nil {
		return a, err
	}
	a.Served, err = readLine(filepath.Join(dir, irqServed))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EIO) {
		a.Served, err = "", nil
	}
	return a, err
}

func readLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// restoreInterrupts restores the affinities of interrupts. It skips those that are gone, and those that the kernel manages itself
// and nobody else can set.
func restoreInterrupts(folder string, had map[int]affinity) error {
	for _, n := range slices.Sorted(maps.Keys(had)) {
		if err := restoreInterrupt(folder, n, had[n]); err != nil {
			return fmt.Errorf("interrupt %d cannot have its CPUs back: %w; echo %s >%s", n, err, had[n].Allowed, filepath.Join(folder, strconv.Itoa(n), irqAllowed))
		}
	}
	return nil
}

func restoreInterrupt(folder string, n int, had affinity) error {
	has, err := affinityOf(folder, n)
	if errors.Is(err, fs.ErrNotExist) || err == nil && has == had {
		return nil
	}
	if err != nil {
		return err
	}
	file := filepath.Join(folder, strconv.Itoa(n), irqAllowed)
	values := []string{had.Allowed}
	if had.Served != "" && has.Served != had.Served {
		// An interrupt stays where it is as long as it may, so first send it to the CPU that served it. This does not move it on a
		// kernel that moves interrupts only when the next one comes.
		values = []string{had.Served, had.Allowed}
	}
	for i, v := range values {
		err := proc.WriteSetting(file, v)
		switch {
		case errors.Is(err, fs.ErrNotExist), i == 0 && (errors.Is(err, unix.EIO) || errors.Is(err, unix.EPERM)):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}
