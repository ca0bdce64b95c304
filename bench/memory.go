//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/memory"
)

const (
	benchPages = 1 << 17 // 512 MiB, of a process that is read
	atOnce     = 64      // pages that a plain loop reads with one call: what is fastest
)

// memories compares a scan of a process's memory with the plainest loops over the same memory, on as many CPUs. Its pages are of 4 KiB and lie
// anywhere. Of contents nothing is promised: the scan also reads what the pages are, a call for almost each, and looks at the end whether they are
// still there.
func memories(ctx context.Context, dir string) error {
	target := filepath.Join(dir, "pages")
	if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", target, "lab/memory/testdata/pages.c").CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, said)
	}
	cmd := exec.CommandContext(ctx, target)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		in.Close() // which ends it
		cmd.Wait()
	}()
	fmt.Fprintf(in, "anon %d 1 1\n", benchPages)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	start, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return err
	}
	pid := cmd.Process.Pid
	timed := func(f func() error) func() (float64, error) {
		return func() (float64, error) {
			began := time.Now()
			err := f()
			return time.Since(began).Seconds(), err
		}
	}
	scan := func(o memory.Options) func() (float64, error) {
		return timed(func() error {
			s, err := memory.Scan(ctx, []int{pid}, o)
			if err != nil {
				return err
			}
			if n := len(s.Pages); n < benchPages {
				return fmt.Errorf("%d pages of %d", n, benchPages)
			}
			return s.Close()
		})
	}
	err = comparison{fmt.Sprintf("The contents of %d MiB of another process, on %d CPUs", benchPages*memory.PageSize>>20, runtime.GOMAXPROCS(0)), []way{
		{"process_vm_readv in a loop", 0, timed(func() error {
			return striped(func(first, n int) error {
				buffer := make([]byte, atOnce*memory.PageSize)
				for i := first; i < first+n; i += atOnce {
					got, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buffer[0], Len: uint64(len(buffer))}},
						[]unix.RemoteIovec{{Base: uintptr(start) + uintptr(i)*uintptr(memory.PageSize), Len: len(buffer)}}, 0)
					if err != nil || got < len(buffer) {
						return fmt.Errorf("process_vm_readv: %d bytes: %w", got, err)
					}
				}
				return nil
			})
		})},
		{"tare's scan, contents hashed", 0, scan(memory.Options{Contents: true})},
	}, time.Minute}.run()
	if err != nil {
		return err
	}
	return comparison{"Frames and flags of the same pages", []way{
		{"pagemap and kpageflags in a loop", 0, timed(func() error {
			return striped(func(first, n int) error { return plainly(pid, start/uint64(memory.PageSize)+uint64(first), n) })
		})},
		{"tare's scan", 1 / 0.8, scan(memory.Options{})},
	}, time.Minute}.run()
}

// striped does a part of the pages on each CPU.
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

// plainly reads each page's entry in pagemap, many with one call, and then its frame's flags, those of frames in a row with one call.
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
