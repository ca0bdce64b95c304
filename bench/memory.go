//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/memory"
	"tare/notebook"
)

const (
	benchPages = 1 << 17 // 512 MiB in the process that is read
	atOnce     = 64      // pages that a simple loop reads with one call: the fastest number
)

// memories compares a scan of a process's memory with simple loops over the same memory, on as many CPUs. The pages have 4 KiB and lie
// anywhere. They are either all different, as most pages are, or all alike, which a scan has to read twice.
func memories(ctx context.Context, dir string) error {
	target := filepath.Join(dir, "pages")
	if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", target, "lab/memory/testdata/pages.c").CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, said)
	}
	before, err := list(ctx) // without the process that is read
	if err != nil {
		return err
	}
	unlike, end, err := fill(ctx, target, 1)
	if err != nil {
		return err
	}
	defer end()
	after, err := list(ctx)
	if err != nil {
		return err
	}
	alike, endAlike, err := fill(ctx, target, 0)
	if err != nil {
		return err
	}
	defer endAlike()
	var broken error
	for _, c := range scans(ctx, unlike, alike) {
		broken = errors.Join(broken, c.run())
	}
	return errors.Join(broken, perPage(before, after))
}

// scans are the comparisons, for a process whose pages all differ and for one whose pages are all alike.
func scans(ctx context.Context, unlike, alike filled) []comparison {
	cpus := runtime.GOMAXPROCS(0)
	return []comparison{
		{fmt.Sprintf("The contents of %d MiB of another process, on %d CPUs", benchPages*memory.PageSize>>20, cpus), []way{
			{"process_vm_readv in a loop", 0, unlike.contents},
			{"tare's scan, contents compared", 1 / 0.85, unlike.scan(ctx, memory.Options{Contents: true})},
		}, time.Minute},
		{"The same, of pages that are all alike", []way{
			{"process_vm_readv in a loop", 0, alike.contents},
			{"tare's scan, contents compared", 0, alike.scan(ctx, memory.Options{Contents: true})},
		}, time.Minute},
		{"Frames and flags of the same pages", []way{
			{"pagemap and kpageflags in a loop", 0, unlike.frames},
			{"tare's scan", 1 / 0.8, unlike.scan(ctx, memory.Options{})},
		}, time.Minute},
		{fmt.Sprintf("The same scan on %d CPUs", cpus), []way{
			{"contents, on one CPU", 0, onOne(unlike.scan(ctx, memory.Options{Contents: true}))},
			{fmt.Sprintf("contents, on %d", cpus), 0, unlike.scan(ctx, memory.Options{Contents: true})},
			{"process_vm_readv, on one CPU", 0, onOne(unlike.contents)},
			{fmt.Sprintf("process_vm_readv, on %d", cpus), 0, unlike.contents},
		}, 30 * time.Second},
		{"Every process of the host", []way{
			{"smem", 0, command(ctx, "smem")},
			{"tare memory --contents=false", 0, command(ctx, "bin/tare", "memory", "--contents=false")},
			{"tare memory", 0, command(ctx, "bin/tare", "memory")},
		}, time.Minute},
	}
}

// perPage prints the memory that `tare memory` needs for one more page. The error says that it is too much.
func perPage(before, after listed) (broken error) {
	const most = 40 // bytes a page
	each, verdict := float64(after.bytes-before.bytes)/float64(after.pages-before.pages), met
	if each > most {
		verdict = notMet
		broken = fmt.Errorf("tare memory needs %.1f bytes a page; must be at most %d", each, most)
	}
	fmt.Printf("\nMemory of `tare memory`\n  %d MiB with %d pages, %d MiB with %d: %.1f bytes for one more   at most %d: %s\n",
		before.bytes>>20, before.pages, after.bytes>>20, after.pages, each, most, verdict)
	return broken
}

// timed is the time of f in seconds.
func timed(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return time.Since(began).Seconds(), err
}

// onOne times f on one CPU.
func onOne(f func() (float64, error)) func() (float64, error) {
	return func() (float64, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		return f()
	}
}

// filled is a process with its pages at an address.
type filled struct {
	pid   int
	start uint64
}

// scan times a scan of the process.
func (p filled) scan(ctx context.Context, o memory.Options) func() (float64, error) {
	return func() (float64, error) {
		return timed(func() error {
			s, err := memory.Scan(ctx, []int{p.pid}, o)
			if err != nil {
				return err
			}
			if n := len(s.Pages); n < benchPages {
				return fmt.Errorf("%d pages of %d", n, benchPages)
			}
			return s.Close()
		})
	}
}

// contents times a simple loop that reads the pages.
func (p filled) contents() (float64, error) {
	return timed(func() error {
		return striped(func(first, n int) error {
			buffer := make([]byte, atOnce*memory.PageSize)
			for i := first; i < first+n; i += atOnce {
				got, err := unix.ProcessVMReadv(p.pid, []unix.Iovec{{Base: &buffer[0], Len: uint64(len(buffer))}},
					[]unix.RemoteIovec{{Base: uintptr(p.start) + uintptr(i)*uintptr(memory.PageSize), Len: len(buffer)}}, 0)
				if err != nil || got < len(buffer) {
					return fmt.Errorf("process_vm_readv: %d bytes: %w", got, err)
				}
			}
			return nil
		})
	})
}

// frames times a simple loop that reads the pages' frames and their flags.
func (p filled) frames() (float64, error) {
	return timed(func() error {
		return striped(func(first, n int) error { return plainly(p.pid, p.start/uint64(memory.PageSize)+uint64(first), n) })
	})
}

// fill starts a process whose pages differ from one to the next by step. end ends the process.
func fill(ctx context.Context, program string, step int) (p filled, end func(), err error) {
	cmd := exec.CommandContext(ctx, program)
	in, err := cmd.StdinPipe()
	if err != nil {
		return p, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return p, nil, err
	}
	if err := cmd.Start(); err != nil {
		return p, nil, err
	}
	end = func() {
		in.Close() // ends the process
		cmd.Wait()
	}
	fmt.Fprintf(in, "anon %d 1 %d\n", benchPages, step)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		p.start, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	}
	if err != nil {
		end()
		return p, nil, err
	}
	p.pid = cmd.Process.Pid
	return p, end, nil
}

// command times a program from start to end.
func command(ctx context.Context, name string, args ...string) func() (float64, error) {
	return func() (float64, error) {
		began := time.Now()
		said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %.300s", name, err, said)
		}
		return time.Since(began).Seconds(), err
	}
}

// listed is the memory that `tare memory` needed to list this many pages.
type listed struct{ bytes, pages int64 }

// list lists the host's pages five times and returns the least memory, because the size of Go's heap varies.
func list(ctx context.Context) (least listed, err error) {
	for i := range 5 {
		l, err := listOnce(ctx)
		if err != nil {
			return least, err
		}
		if i == 0 || l.bytes < least.bytes {
			least = l
		}
	}
	return least, nil
}

func listOnce(ctx context.Context) (l listed, err error) {
	cmd := exec.CommandContext(ctx, "bin/tare", "memory", "--format", "json")
	out, err := cmd.Output()
	if err != nil {
		return l, fmt.Errorf("tare memory: %w", err)
	}
	var a notebook.MemoryAccount
	if err := json.Unmarshal(out, &a); err != nil {
		return l, err
	}
	for _, g := range a.Guests {
		for _, k := range g.Kinds {
			l.pages += (k.RSS + k.Other) / memory.PageSize
		}
	}
	l.bytes = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	return l, nil
}

// striped reads a part of the pages on each CPU.
func striped(f func(first, n int) error) error {
	cpus := runtime.GOMAXPROCS(0)
	errs := make([]error, cpus)
	var all sync.WaitGroup
	for i := range cpus {
		all.Go(func() { errs[i] = f(i*(benchPages/cpus), benchPages/cpus) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// plainly reads the pages' entries in pagemap, many with one call, and then the frames' flags, those of consecutive frames with one call.
func plainly(pid int, page uint64, n int) error {
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return err
	}
	defer pagemap.Close()
	flags, err := os.Open("/proc/kpageflags")
	if err != nil {
		return err
	}
	defer flags.Close()
	entries, of := make([]byte, 8*n), make([]byte, 8*n)
	if _, err := pagemap.ReadAt(entries, int64(page)*8); err != nil {
		return err
	}
	frame := func(i int) uint64 { return binary.NativeEndian.Uint64(entries[8*i:]) & (1<<55 - 1) }
	for i := 0; i < n; {
		j := i + 1
		for j < n && frame(j) == frame(j-1)+1 {
			j++
		}
		if _, err := flags.ReadAt(of[8*i:8*j], int64(frame(i))*8); err != nil && err != io.EOF {
			return err
		}
		i = j
	}
	return nil
}
