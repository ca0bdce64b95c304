//go:build linux

// Package symbols finds the functions of addresses: in the kernel and in programs, including stripped Go programs.
package symbols

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Table is functions by address.
type Table struct {
	at    []uint64
	names []string
}

// maxSymbols bounds the kept part of /proc/kallsyms.
const maxSymbols = 1 << 21

// Kernel reads the running kernel's functions.
func Kernel() (*Table, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f)
}

// Parse reads /proc/kallsyms: ADDRESS TYPE NAME [MODULE]. It keeps only functions.
func Parse(r io.Reader) (*Table, error) {
	type symbol struct {
		at   uint64
		name string
	}
	var all []symbol
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 3 || f[1] != "t" && f[1] != "T" {
			continue
		}
		at, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/kallsyms: %q is not an address", f[0])
		}
		if at == 0 {
			return nil, fmt.Errorf("/proc/kallsyms shows no addresses: set sysctl kernel.kptr_restrict=1, and run as root")
		}
		if len(all) == maxSymbols {
			return nil, fmt.Errorf("/proc/kallsyms: must have at most %d functions", maxSymbols)
		}
		all = append(all, symbol{at, f[2]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("/proc/kallsyms: %w", err)
	}
	slices.SortStableFunc(all, func(a, b symbol) int { return cmp.Compare(a.at, b.at) })
	s := &Table{}
	for _, y := range all {
		s.at, s.names = append(s.at, y.at), append(s.names, y.name)
	}
	return s, nil
}

// Name is the function at the address.
func (s *Table) Name(ip uint64) string {
	i, found := slices.BinarySearch(s.at, ip)
	if !found {
		i--
	}
	if i < 0 {
		return fmt.Sprintf("%#x", ip)
	}
	return s.names[i]
}
