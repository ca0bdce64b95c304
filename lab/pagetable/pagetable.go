//go:build linux

// Package pagetable reads the page tables of processes with programs in the kernel: where the tables lie, and which of their entries the
// processor has used (paper "characterization", section 5.2.1).
package pagetable

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"

	"tare/lab/proc"
)

// Map is where the kernel has its page tables.
type Map struct {
	Direct uint64 // where the kernel maps all of physical memory
	Levels uint32 // of page tables
}

// Bits of an entry of x86-64's page tables.
const (
	Present   = 1 << 0
	FrameBits = 0x000f_ffff_ffff_f000
	PageShift = 12 // of the number of a frame, in the entry and in an address
)

// calibration is bpf/pagetable.c's struct of that name.
type calibration struct {
	Address, Direct, Entry uint64
	Levels, Size           uint32
	PGD                    uint64
}

// specOf reads the programs, of which only those of these names stay.
func specOf(programs ...string) (*ebpf.CollectionSpec, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("page tables can only be read on x86-64, and this host is %s", runtime.GOARCH)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil { // the object is embedded, so this is a defect of the program
		panic(err)
	}
	kept := map[string]*ebpf.ProgramSpec{}
	for _, name := range programs {
		kept[name] = spec.Programs[name]
	}
	spec.Programs = kept
	return spec, nil
}

func refused(err error) error { return Refused("read page tables", err) }

// Refused is the error where the kernel does not load programs that do this.
func Refused(does string, err error) error {
	why, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("the kernel does not load the programs that %s (they need Linux 5.17 with BTF, and root with CAP_BPF and CAP_PERFMON): %s", does, why)
}

// Find finds where the kernel maps all of physical memory, which it does not publish, and how many levels its page tables have. It uses
// the page table of this process and the frames of its own pages. An error says why this host does not support it.
func Find() (m Map, err error) {
	spec, err := specOf("calibrate")
	if err != nil {
		return m, err
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return m, refused(err)
	}
	defer coll.Close()
	try := func(at Map, address uint64) (calibration, error) {
		c := calibration{Address: address, Direct: at.Direct, Levels: at.Levels}
		if _, err := coll.Programs["calibrate"].Run(&ebpf.RunOptions{Context: &c, ContextOut: &c}); err != nil {
			return c, refused(err)
		}
		return c, nil
	}
	c, err := try(Map{}, 0)
	if err != nil {
		return m, err
	}
	// The page table itself lies in the direct map.
	m.Direct, err = proc.FindDirectMap(c.PGD, func(direct uint64) (is bool, err error) {
		for _, m.Levels = range []uint32{4, 5} {
			if is, err = proved(Map{direct, m.Levels}, try); is || err != nil {
				return is, err
			}
		}
		return false, nil
	})
	if err == nil && m.Direct == 0 {
		err = errors.New("the kernel's page tables could not be found here")
	}
	return m, err
}

// proved reports whether walks find the page table there. Wherever a walk reads, it may find by chance what looks like the entry of some page: a
// number in a program's memory passes for an entry of a huge page. So the walk has to see a new page's entry appear, exactly as the kernel reports it.
func proved(at Map, walk func(at Map, address uint64) (calibration, error)) (bool, error) {
	page, err := proc.NewPage()
	if err != nil {
		return false, err
	}
	defer page.Close()
	if none, err := walk(at, page.Address); err != nil || none.Size == 0 || none.Entry&Present != 0 {
		return false, err
	}
	page.Content[0] = 1
	for range 3 { // in case the kernel moves the page just then
		frame, err := page.Frame()
		if err != nil {
			return false, fmt.Errorf("%w; run tare as root on the host itself (sudo tare …)", err)
		}
		got, err := walk(at, page.Address)
		if err != nil {
			return false, err
		}
		if frame != 0 && got.Size == 1 && got.Entry&Present != 0 && (got.Entry&FrameBits)>>PageShift == frame {
			return true, nil
		}
	}
	return false, nil
}
