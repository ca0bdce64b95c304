//go:build linux

package pagetable

import (
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// opened is a reader; the test is skipped where this host does not support one.
func opened(t *testing.T) *Reader {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r, err := Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(r.Close)
	return r
}

// Since sees which pages a process has touched since the last call, and nothing else.
func TestPagesThatWereUsed(t *testing.T) {
	r := opened(t)
	const pages = 3 * blockPages / 2
	const moving = 3 // pages that the kernel may be moving, for another process that wants a huge page, when their entries are read
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	self := []int{os.Getpid()}
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	touch := func(every int) {
		for i := 0; i < pages-100; i += every {
			memory[i*page]++
		}
	}
	check := func(what string, used Used, want func(i int) bool) {
		t.Helper()
		var wrong []int
		for i := range pages {
			if used.Has(self[0], start+uint64(i*page)) != want(i) {
				wrong = append(wrong, i)
			}
		}
		if len(wrong) > moving {
			t.Fatalf("%s: it is wrong of %d pages: %v", what, len(wrong), wrong)
		}
	}
	since := func() Used {
		t.Helper()
		used, err := r.Since(self)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	touch(1)
	check("mapped", since(), func(i int) bool { return i < pages-100 })
	check("idle", since(), func(int) bool { return false })
	touch(2)
	evens := since()
	check("every second page", evens, func(i int) bool { return i < pages-100 && i%2 == 0 })
	touch(3)
	check("both", since().And(evens), func(i int) bool { return i < pages-100 && i%6 == 0 })
}

// A process that has ended, or that never was, has no used pages and causes no error.
func TestPagesOfAProcessThatHasEnded(t *testing.T) {
	r := opened(t)
	c := exec.Command("/proc/self/exe", "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	used, err := r.Since([]int{c.ProcessState.Pid(), 1 << 22})
	if err != nil || len(used) != 0 {
		t.Errorf("%v, %v", used, err)
	}
}

// Kernel threads have no page table of their own.
func TestPagesOfAKernelThread(t *testing.T) {
	r := opened(t)
	if used, err := r.Since([]int{2}); err != nil || len(used) != 0 {
		t.Errorf("%v, %v", used, err)
	}
}

// What other memory holds is not taken for a page table: not numbers that look like an entry of a huge page, not memory of zeros, and not an
// old copy of this process's page table.
func TestOnlyThePageTableItselfIsFound(t *testing.T) {
	opened(t)
	at := Map{0xffff888000000000, 4}
	frame := func(address uint64) uint64 {
		t.Helper()
		f, err := (&proc.Page{Address: address}).Frame()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	table := func(address uint64) calibration {
		if f := frame(address); f != 0 {
			return calibration{Entry: f<<PageShift | Present, Size: 1}
		}
		return calibration{Size: 1}
	}
	for _, c := range []struct {
		what string
		walk func(address uint64, n int) calibration // the nth walk
		want bool
	}{
		{"the page table", func(address uint64, _ int) calibration { return table(address) }, true},
		{"a huge page of 1 GiB that has the frame", func(address uint64, n int) calibration {
			if n == 0 {
				return calibration{Size: 1}
			}
			return calibration{Entry: frame(address)>>18<<30 | 0x81, Size: 1 << 18}
		}, false},
		{"an old copy, in which the page is mapped already", func(address uint64, n int) calibration {
			if n == 0 {
				return calibration{Entry: 0x1234<<PageShift | Present, Size: 1}
			}
			return table(address)
		}, false},
		{"zeros", func(uint64, int) calibration { return calibration{Size: 1 << 18} }, false},
		{"memory that cannot be read", func(uint64, int) calibration { return calibration{} }, false},
		{"another frame", func(address uint64, _ int) calibration {
			c := table(address)
			c.Entry ^= 1 << PageShift
			return c
		}, false},
	} {
		n := -1
		got, err := proved(at, func(_ Map, address uint64) (calibration, error) {
			n++
			return c.walk(address, n), nil
		})
		if err != nil || got != c.want {
			t.Errorf("%s is found: %t (%v), want %t", c.what, got, err, c.want)
		}
	}
}

// Reading must be quick, because the guests go on with their work.
func BenchmarkSince(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	r, err := Open()
	if err != nil {
		b.Skip(err)
	}
	defer r.Close()
	const mib = 256
	memory, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Munmap(memory)
	began := time.Now()
	for b.Loop() {
		if _, err := r.Since([]int{os.Getpid()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(time.Since(began).Seconds()*1000/float64(b.N)/mib, "ms/MiB")
}
