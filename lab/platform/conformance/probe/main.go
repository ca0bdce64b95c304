//go:build linux

// Command probe is what the conformance suite runs inside a guest where a shell cannot do it: it uses CPU time,
// eats memory and leaves daemons behind.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fail("usage: probe burn-THREADS MILLISECONDS | eat BYTES | daemons-N NAME | rabbits-N NAME | linger NAME | hop NAME")
	}
	switch what, arg := os.Args[1], os.Args[2]; what {
	case "eat":
		eat(number(arg))
	case "linger":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		for { // until it is killed; arg is there to be found by
			time.Sleep(time.Hour)
		}
	case "hop":
		leave(1, "hop", arg) // and be gone, with another in its place
	default:
		var n int
		if _, err := fmt.Sscanf(what, "daemons-%d", &n); err == nil {
			leave(n, "linger", arg)
			fmt.Println("left", n)
		} else if _, err := fmt.Sscanf(what, "rabbits-%d", &n); err == nil {
			leave(n, "hop", arg)
		} else if _, err := fmt.Sscanf(what, "burn-%d", &n); err == nil {
			burn(n, time.Duration(number(arg))*time.Millisecond)
		} else {
			fail("unknown order " + what)
		}
	}
}

// burn keeps so many threads busy for so long by the wall's clock.
func burn(threads int, d time.Duration) {
	runtime.GOMAXPROCS(threads)
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			for time.Now().Before(end) {
			}
		})
	}
	wg.Wait()
}

// eat takes memory and touches every page of it, so that it is really there.
func eat(bytes int64) {
	const chunk = 4 << 20
	for got := int64(0); got < bytes; got += chunk {
		m, err := syscall.Mmap(-1, 0, chunk, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fail(fmt.Sprintf("after %d bytes: %v", got, err))
		}
		for i := 0; i < chunk; i += 4096 {
			m[i] = 1
		}
	}
	fmt.Println("ate", bytes)
}

// leave leaves so many processes behind, each in its own session and with no parent. Those that linger stay; those
// that hop are another process every few milliseconds, and so hard to catch.
func leave(n int, what, name string) {
	self, err := os.Executable()
	if err != nil {
		fail(err.Error())
	}
	for range n {
		c := exec.Command(self, what, name)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			fail(err.Error())
		}
		if err := c.Process.Release(); err != nil {
			fail(err.Error())
		}
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		fail(err.Error())
	}
	return n
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
