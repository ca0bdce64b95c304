//go:build linux

package pagetable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sync/errgroup"

	"tare/lab/proc"
)

// blockPages is how many pages the program looks at together: as many as a table of the last level has entries.
const blockPages = 512

// blockBytes is what they map.
const blockBytes = blockPages << PageShift

// bits are a block's pages, one bit for each.
type bits [blockPages / 64]uint64

// place is a block of a process. Its address is a multiple of blockBytes.
type place struct {
	pid     int
	address uint64
}

// Used is the set of pages, each at an address of a process, whose entries the processor has used.
type Used map[place]bits

// Has reports whether the page at the address of the process is in the set. A huge page has all its pages of 4 KiB in the set, or none.
func (u Used) Has(pid int, address uint64) bool {
	at := address % blockBytes >> PageShift
	return u[place{pid, address &^ (blockBytes - 1)}][at/64]>>(at%64)&1 != 0
}

// And returns the pages that are in both sets.
func (u Used) And(v Used) Used {
	both := Used{}
	for at, b := range u {
		c, has := v[at]
		if !has {
			continue
		}
		for i := range b {
			b[i] &= c[i]
		}
		both[at] = b
	}
	return both
}

// Add adds the pages of another set.
func (u Used) Add(v Used) {
	for at, b := range v {
		both := u[at]
		for i := range b {
			both[i] |= b[i]
		}
		u[at] = both
	}
}

// block is bpf/pagetable.c's struct of that name.
type block struct {
	Direct, PGD, Address uint64
	Levels, _            uint32
	Skip                 uint64
	Bits                 bits
}

// Reader reads which entries the processor has used. Its methods are for one goroutine at a time.
type Reader struct {
	at   Map
	coll *ebpf.Collection
}

// Open loads the programs. An error says why this host does not support them. Close the reader.
func Open() (*Reader, error) {
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		return nil, fmt.Errorf("the kernel does not clear the accessed bits of pages (CONFIG_PROC_PAGE_MONITOR): %w", err)
	}
	at, err := Find()
	if err != nil {
		return nil, err
	}
	spec, err := specOf("find", "accessed")
	if err != nil {
		return nil, err
	}
	spec.Maps["roots"].MaxEntries = 1 << 16
	spec.Maps["roots"].Flags = 1 // BPF_F_NO_PREALLOC
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, refused(err)
	}
	r := &Reader{at, coll}
	if err := r.usable(); err != nil {
		coll.Close()
		return nil, err
	}
	return r, nil
}

// usable says why what this reader reads would be wrong here; nil if it would not.
func (r *Reader) usable() error {
	flags, err := proc.Host.CPUFlags()
	if err != nil {
		return err
	}
	// With it Linux 6.15 gives a process on many CPUs translations that no other process displaces (renew).
	if slices.Contains(flags, "invlpgb") {
		return errors.New("the CPU can keep a process's translations while others run (invlpgb), and sets no accessed bit for them")
	}
	self := os.Getpid()
	roots, err := r.roots([]int{self})
	if err == nil && roots[self] == 0 {
		err = errors.New("the kernel does not know processes by their numbers: tare is in its own PID namespace; run it on the host itself")
	}
	return err
}

// Close releases the programs.
func (r *Reader) Close() { r.coll.Close() }

// Since returns the pages of the processes whose entries the processor has used since the last call for them, or since they were mapped,
// and begins again. Processes that have ended have none.
func (r *Reader) Since(pids []int) (Used, error) {
	roots, err := r.roots(pids)
	if err != nil {
		return nil, err
	}
	used := Used{}
	for _, pid := range pids {
		err := r.read(pid, roots[pid], used)
		if err == nil {
			err = forget(pid)
		}
		if err != nil && !proc.Ended(err) {
			return nil, fmt.Errorf("page table of process %d: %w", pid, err)
		}
	}
	return used, renew(pids)
}

// forget clears the accessed bits of a process's entries (Documentation/filesystems/proc.rst, clear_refs).
func forget(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("1"), 0)
}

// renewals is how many processes make a CPU forget the translations of all others. The kernel keeps those of six address spaces for each CPU
// (TLB_NR_DYN_ASIDS), and gives a new one the place of the oldest.
const renewals = 8

// renew makes the CPUs forget the processes' translations. A CPU that has a translation sets no accessed bit, and clear_refs leaves the
// translations as they are, so the pages that are used most would seem unused.
func renew(pids []int) error {
	online, err := proc.OnlineCPUs()
	if err != nil {
		return err
	}
	cpus := map[int]bool{}
	for _, pid := range pids {
		allowed, err := proc.Host.AllowedCPUs(fmt.Sprint(pid))
		if err != nil && !proc.Ended(err) {
			return err
		}
		for _, c := range proc.IntersectCPUs(allowed, online) {
			cpus[c] = true
		}
	}
	var group errgroup.Group
	for c := range cpus {
		group.Go(func() error {
			return proc.Apart(func() error {
				if err := proc.Bind(0, []int{c}); err != nil {
					return fmt.Errorf("CPU %d: %w", c, err)
				}
				for range renewals {
					if err := exec.Command("true").Run(); err != nil {
						return fmt.Errorf("translations of CPU %d: true: %w", c, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// roots finds the page tables of processes. A process that has ended, or has no memory of its own, has none.
func (r *Reader) roots(pids []int) (at map[int]uint64, err error) {
	roots := r.coll.Maps["roots"]
	for _, pid := range pids {
		if err := roots.Put(uint32(pid), uint64(0)); err != nil {
			return nil, err
		}
	}
	it, err := link.AttachIter(link.IterOptions{Program: r.coll.Programs["find"]})
	if err != nil {
		return nil, refused(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	tasks, err := it.Open()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, tasks) // the program sees each task while this is read
	if err = errors.Join(err, tasks.Close()); err != nil {
		return nil, err
	}
	at = map[int]uint64{}
	for _, pid := range pids {
		var root uint64
		if err := roots.Lookup(uint32(pid), &root); err != nil {
			return nil, err
		}
		if err := roots.Delete(uint32(pid)); err != nil {
			return nil, err
		}
		if root != 0 {
			at[pid] = root
		}
	}
	return at, nil
}

// read adds the used pages of a process.
func (r *Reader) read(pid int, root uint64, to Used) error {
	if root == 0 {
		return nil
	}
	maps, err := proc.Maps(pid)
	if err != nil {
		return err
	}
	next := uint64(0)   // the first address that was not read
	absent := uint64(0) // no page before this address is mapped
	for _, m := range maps {
		for address := max(m.Start&^(blockBytes-1), next); address < m.End && address < 1<<63; address += blockBytes {
			next = address + blockBytes
			if next <= absent {
				continue
			}
			b := block{Direct: r.at.Direct, PGD: root, Address: address, Levels: r.at.Levels}
			if err := r.ask(&b); err != nil {
				return err
			}
			absent = b.Skip
			if b.Bits != (bits{}) {
				to[place{pid, address}] = b.Bits
			}
		}
	}
	return nil
}

func (r *Reader) ask(b *block) error {
	which := uint32(0)
	if err := r.coll.Maps["blocks"].Put(which, b); err != nil {
		return err
	}
	if _, err := r.coll.Programs["accessed"].Run(&ebpf.RunOptions{Context: &which}); err != nil {
		return err
	}
	return r.coll.Maps["blocks"].Lookup(which, b)
}
